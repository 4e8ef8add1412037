//! A slow relay to a server.

use std::{future::pending, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::{JoinSet, yield_now},
    time::sleep,
};

/// Bytes carried per turn of the scheduler, connection and direction.
const BYTES_A_TURN: usize = 48;

/// Relays bytes to a server and back, a few in each turn of a current-thread runtime. So a future
/// that waits for an answer can be dropped with any part of the request or the answer under way.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    forgets: watch::Sender<()>,
    /// Its tasks end with this value.
    _carriers: JoinSet<()>,
}

/// Bytes carried at a time, and the pause after them; none: a turn.
#[derive(Clone, Copy)]
struct Pace {
    bytes: usize,
    pause: Option<Duration>,
}

impl Relay {
    /// A relay to the listener on 127.0.0.1:`server` at the time of each connection.
    pub async fn to(server: u16) -> Self {
        Self::in_pieces(server, BYTES_A_TURN).await
    }

    /// The same, with a pause instead of a turn: between two requests that are sent at once, there is time for those of others.
    pub async fn paced(server: u16, pause: Duration) -> Self {
        let pause = Some(pause);
        let bytes = BYTES_A_TURN;
        Self::at(server, Pace { bytes, pause }).await
    }

    /// One that carries up to `bytes` a turn.
    pub async fn in_pieces(server: u16, bytes: usize) -> Self {
        let pause = None;
        Self::at(server, Pace { bytes, pause }).await
    }

    async fn at(server: u16, pace: Pace) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (forgets, forgotten) = watch::channel(());
        let mut carriers = JoinSet::new();
        carriers.spawn(accept(listener, server, pace, forgotten));
        Self {
            port,
            forgets,
            _carriers: carriers,
        }
    }

    /// The port on 127.0.0.1 on which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Forgets its connections without a word, as a firewall does: they stay open, and carry nothing more. New ones are
    /// carried.
    pub fn forget(&self) {
        self.forgets.send_replace(());
    }
}

async fn accept(listener: TcpListener, server: u16, pace: Pace, forgotten: watch::Receiver<()>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let mut forgotten = forgotten.clone();
        forgotten.mark_unchanged();
        connections.spawn(async move {
            if let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await {
                // A request that waits for an acknowledgement waits for long.
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                let carried = async {
                    tokio::join!(
                        carry(from_client, to_server, pace),
                        carry(from_server, to_client, pace)
                    );
                };
                tokio::pin!(carried);
                tokio::select! {
                    () = &mut carried => {}
                    // It keeps both ends.
                    _ = forgotten.changed() => pending().await,
                }
            }
        });
    }
}

/// Relays all bytes, and then closes its destination.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, pace: Pace) {
    let mut bytes = vec![0; pace.bytes];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
        match pace.pause {
            Some(pause) => sleep(pause).await,
            None => yield_now().await,
        }
    }
}
