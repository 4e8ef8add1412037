//! Ways between servers that can be cut.

use std::future::pending;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
    time::sleep,
};

use crate::POLL;

/// Carries all that one server sends another, and the answers, until it is cut.
pub(super) struct Way {
    pub(super) port: u16,
    listener: Option<std::net::TcpListener>,
    is_cut: watch::Sender<bool>,
    /// Its tasks end with this value.
    carriers: JoinSet<()>,
}

/// What the first bytes on a connection have, and what is carried instead: as many bytes.
pub(super) type Instead = (String, String);

impl Way {
    /// A way that leads nowhere yet.
    pub(super) fn new() -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self {
            port: listener.local_addr().unwrap().port(),
            listener: Some(listener),
            is_cut: watch::channel(false).0,
            carriers: JoinSet::new(),
        }
    }

    /// It leads to 127.0.0.1:`server`.
    pub(super) fn lead_to(&mut self, server: u16, instead: Option<Instead>) {
        let listener = self.listener.take().expect("it leads nowhere yet");
        let listener = TcpListener::from_std(listener).unwrap();
        let state = self.is_cut.subscribe();
        self.carriers.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(relay(client, server, instead.clone(), state.clone()));
            }
        });
    }

    /// From now on nothing passes, and no connection ends; or the way is whole again, and those ends.
    pub(super) fn cut(&self, is_cut: bool) {
        self.is_cut.send_replace(is_cut);
    }
}

async fn relay(
    client: TcpStream,
    server: u16,
    instead: Option<Instead>,
    is_cut: watch::Receiver<bool>,
) {
    let mut heals = is_cut.clone();
    let carried = async {
        // A server that takes a connection waits for its first bytes, and takes no other one meanwhile.
        if *is_cut.borrow() {
            pending::<()>().await;
        }
        let server = listening(server).await;
        let ((from_client, to_client), (from_server, to_server)) =
            (client.into_split(), server.into_split());
        tokio::select! {
            () = carry(from_client, to_server, instead, is_cut.clone()) => {}
            () = carry(from_server, to_client, None, is_cut.clone()) => {}
        }
    };
    let healed = async {
        let _ = heals.wait_for(|is_cut| *is_cut).await;
        let _ = heals.wait_for(|is_cut| !*is_cut).await;
    };
    tokio::select! {
        () = carried => {}
        () = healed => {}
    }
}

/// A connection to a server. One that does not listen yet would refuse it, and be asked again: the way took it already.
async fn listening(port: u16) -> TcpStream {
    loop {
        match TcpStream::connect(("127.0.0.1", port)).await {
            Ok(server) => return server,
            Err(_) => sleep(POLL).await,
        }
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut instead: Option<Instead>,
    mut is_cut: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        // It is dropped as soon as the way is whole again.
        if is_cut.wait_for(|is_cut| !*is_cut).await.is_err() {
            return;
        }
        if let Some((old, new)) = instead.take() {
            let at = bytes
                .windows(old.len())
                .position(|part| part == old.as_bytes());
            if let Some(at) = at {
                bytes[at..][..new.len()].copy_from_slice(new.as_bytes());
            }
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
