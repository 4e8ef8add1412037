//! The process of an attack.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::{
    net::{TcpSocket, TcpStream},
    time::sleep,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, pem::PemObject},
    },
};
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};

use super::{Attack, calls, frames, sessions, silent};

/// Between two lines about what was sent.
const SAY_EVERY: Duration = Duration::from_millis(50);

/// What is attacked, and how.
#[derive(Args, Clone, Debug)]
pub struct AttackerArgs {
    attack: Attack,
    /// The address of the service.
    #[arg(long)]
    pub(super) service: SocketAddr,
    /// The address of its monitor.
    #[arg(long)]
    pub(super) monitor: SocketAddr,
    /// The authority of its certificate, if it has one.
    #[arg(long)]
    authority: Option<PathBuf>,
}

/// Counts what is sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(Arc<[AtomicU64; 2]>);

impl Tally {
    /// One more connection, call or frame.
    pub(super) fn sent(&self) {
        self.0[0].fetch_add(1, Relaxed);
    }

    /// The attack is at its height once so many were sent.
    pub(super) fn height(&self, sent: usize) {
        self.0[1].store(sent as u64, Relaxed);
    }

    /// Says how many were sent, and whether it is at its height, for ever.
    async fn say(&self) {
        loop {
            let [sent, height] = [0, 1].map(|index| self.0[index].load(Relaxed));
            let is_on = if sent >= height && sent > 0 {
                "on"
            } else {
                "off"
            };
            println!("{sent} {is_on}");
            sleep(SAY_EVERY).await;
        }
    }
}

/// Attacks until it is killed.
///
/// # Errors
///
/// The certificate of the authority cannot be read.
pub async fn run(args: AttackerArgs) -> io::Result<()> {
    let (_, descriptors) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, descriptors, descriptors)?;
    let tally = Tally::default();
    tokio::select! {
        done = attack(&args, &tally) => done,
        () = tally.say() => Ok(()),
    }
}

async fn attack(at: &AttackerArgs, tally: &Tally) -> io::Result<()> {
    let (service, monitor) = (at.service, at.monitor);
    match at.attack {
        Attack::OneByte => silent::hold((service, None), (1500, 1), b"P", tally).await,
        Attack::OneByteManyAddresses => {
            silent::hold((service, None), (2000, 10), b"P", tally).await
        }
        Attack::OneByteTls => {
            let tls = at.connector()?;
            silent::hold((service, Some(&tls)), (2000, 10), b"P", tally).await;
        }
        Attack::Handshakes => silent::handshakes(service, &at.connector()?, tally).await,
        Attack::Descriptors => silent::hold((service, None), (600, 10), b"P", tally).await,
        Attack::Connections => calls::connections(at, tally).await,
        Attack::Monitor => silent::hold((monitor, None), (800, 10), b"", tally).await,
        Attack::SlowHeaders => silent::slow_headers(monitor, tally).await,
        Attack::Labels => calls::labels(at, tally).await,
        Attack::Holds => calls::holds(at, tally).await,
        Attack::AsksWithoutRole => sessions::asks_without_role(at, tally).await,
        Attack::UnreadSessions => sessions::unread(at, tally).await,
        Attack::UnreadPings => sessions::unread_pings(at, tally).await,
        Attack::Pings => sessions::pings(at, tally).await,
        Attack::Resumptions => sessions::resumptions(at, tally).await,
        Attack::UnknownTokens => calls::acquire_as("unknown", at, tally).await,
        Attack::WithoutRole => calls::acquire_as(super::target::OUTSIDER, at, tally).await,
        Attack::EndedLocks => calls::ended_locks(at, tally).await,
        Attack::ForgedHandles => calls::forged_handles(at, tally).await,
        Attack::Latches => calls::latches(at, tally).await,
        Attack::Lists => calls::lists(at, tally).await,
        Attack::UnreadLists => {
            calls::fill(at).await;
            frames::unread_lists(service, tally).await;
        }
        Attack::Watches => calls::watches(at, tally).await,
        Attack::Reflection => calls::reflection(at, tally).await,
        Attack::RapidReset => frames::rapid_reset(service, tally).await,
        Attack::PingFrames => frames::unread(service, frames::PING, tally).await,
        Attack::SettingsFrames => frames::unread(service, frames::SETTINGS, tally).await,
        Attack::Headers => frames::headers(service, tally).await,
        Attack::HalfMessages => frames::half_messages(service, frames::ACQUIRE, tally).await,
        Attack::HalfChecks => frames::half_messages(service, frames::CHECK, tally).await,
    }
    Ok(())
}

impl AttackerArgs {
    fn connector(&self) -> io::Result<TlsConnector> {
        let path = self.authority.as_ref().expect("the service has TLS");
        let authority = CertificateDer::from_pem_file(path).map_err(io::Error::other)?;
        let mut authorities = RootCertStore::empty();
        authorities.add(authority).map_err(io::Error::other)?;
        let config = ClientConfig::builder().with_root_certificates(authorities);
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }

    /// A connection of its own, opened with its first call, from the attackers' address of this number.
    pub(super) fn channel(&self, number: usize) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.service));
        let endpoint = endpoint.expect("an address is a valid URL");
        // Answers that are not read stay with the coordinator.
        let endpoint = endpoint.initial_stream_window_size(1024);
        endpoint
            .local_address(Some(address(number).into()))
            .connect_lazy()
    }
}

/// The address of attackers that has this number.
pub(super) fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, 1 + (number % 250) as u8)
}

/// A connection from the attackers' address of this number.
pub(super) async fn connect(number: usize, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((address(number), 0).into())?;
    socket.connect(to).await
}

/// `message`, with a bearer token.
pub(super) fn with<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let header = format!("Bearer {token}").parse();
    let header = header.expect("tokens have letters alone");
    request.metadata_mut().insert("authorization", header);
    request
}
