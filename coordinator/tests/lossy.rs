//! A relay that loses answers.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// What becomes of a server's answers.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Answers {
    Carried,
    Held,
    /// With the connections on which some were held; others carry them again.
    Lost,
}

/// A relay to a server.
pub(crate) struct Lossy {
    pub(crate) port: u16,
    pub(crate) answers: watch::Sender<Answers>,
    _carriers: JoinSet<()>,
}

impl Lossy {
    pub(crate) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answers, state) = watch::channel(Answers::Carried);
        let mut carriers = JoinSet::new();
        carriers.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                connections.spawn(relay(client, server, state.clone()));
            }
        });
        Self {
            port,
            answers,
            _carriers: carriers,
        }
    }
}

async fn relay(client: TcpStream, server: TcpStream, mut answers: watch::Receiver<Answers>) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let back = async {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
            if *answers.borrow_and_update() == Answers::Held {
                let _ = answers.changed().await;
                return;
            }
            if to_client.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
        () = back => {}
    }
}
