//! Connections that say little.

use std::{io, net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{sleep, timeout},
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};

use super::attacker::{Tally, connect};

/// One that was closed comes back after this time.
const BACK_AFTER: Duration = Duration::from_millis(500);
/// TLS handshakes at a time.
const HANDSHAKES: usize = 32;

/// Keeps `count` connections open, from as many `addresses`, each of which says `first`.
pub(super) async fn hold(
    (to, tls): (SocketAddr, Option<&TlsConnector>),
    (count, addresses): (usize, usize),
    first: &[u8],
    tally: &Tally,
) {
    tally.height(count);
    let holds = (0..count).map(async |number| {
        loop {
            let _ = held((to, tls), number % addresses, first, tally).await;
            sleep(BACK_AFTER).await;
        }
    });
    join_all(holds).await;
}

async fn held(
    (to, tls): (SocketAddr, Option<&TlsConnector>),
    address: usize,
    first: &[u8],
    tally: &Tally,
) -> io::Result<()> {
    let stream = connect(address, to).await?;
    match tls {
        None => {
            tally.sent();
            say(stream, first).await
        }
        Some(tls) => {
            // One whose handshake waits for a place counts: others have the places.
            tally.sent();
            say(shaken(tls, stream).await?, first).await
        }
    }
}

/// Says `first`, and waits for the end.
async fn say(mut stream: impl AsyncRead + AsyncWrite + Unpin, first: &[u8]) -> io::Result<()> {
    stream.write_all(first).await?;
    stream.flush().await?;
    let mut answer = [0; 256];
    while stream.read(&mut answer).await? > 0 {}
    Ok(())
}

async fn shaken<S>(tls: &TlsConnector, stream: S) -> io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    tls.connect(name, stream).await
}

/// Handshakes, one after the other.
pub(super) async fn handshakes(to: SocketAddr, tls: &TlsConnector, tally: &Tally) {
    tally.height(HANDSHAKES);
    let shake = (0..HANDSHAKES).map(async |number| {
        loop {
            let shake = async { shaken(tls, connect(number, to).await?).await.map(drop) };
            match timeout(BACK_AFTER, shake).await {
                Ok(Ok(())) => tally.sent(),
                _ => sleep(BACK_AFTER).await,
            }
        }
    });
    join_all(shake).await;
}

/// Requests to a monitor whose headers come byte by byte.
pub(super) async fn slow_headers(to: SocketAddr, tally: &Tally) {
    const COUNT: usize = 800;
    tally.height(COUNT);
    let slow = (0..COUNT).map(async |number| {
        loop {
            let _ = slow(to, number % 10, tally).await;
            sleep(BACK_AFTER).await;
        }
    });
    join_all(slow).await;
}

async fn slow(to: SocketAddr, address: usize, tally: &Tally) -> io::Result<()> {
    let mut stream = connect(address, to).await?;
    tally.sent();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nslow: ").await?;
    loop {
        sleep(Duration::from_secs(1)).await;
        stream.write_all(b"x").await?;
    }
}
