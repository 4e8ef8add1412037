//! Tells systemd the state of the service, as sd_notify does.

#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::{
    env, io,
    os::unix::{
        ffi::OsStrExt,
        net::{SocketAddr, UnixDatagram},
    },
};

/// The service can be used.
pub(super) fn ready() {
    notify("READY=1");
}

/// The service stops.
pub(super) fn stopping() {
    notify("STOPPING=1");
}

/// Sends `state` to the socket in `NOTIFY_SOCKET`, if systemd has set it. A failure is logged only: the
/// service works without.
fn notify(state: &str) {
    if let Some(socket) = env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(socket.as_bytes(), state)
    {
        tracing::warn!(%error, ?socket, "cannot notify systemd");
    }
}

fn send(socket: &[u8], state: &str) -> io::Result<()> {
    let address = match socket.strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        Some(name) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(socket))?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}
