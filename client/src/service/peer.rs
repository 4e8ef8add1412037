//! What answers at an address where no coordinator does: a wrong port or scheme is named.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tonic::transport::Uri;

/// How long it is waited for.
const WITHIN: Duration = Duration::from_secs(1);

/// How every connection of HTTP/2 begins (RFC 9113, section 3.4), with empty settings.
const BEGINNING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Of a server of pages.
const WITHOUT_GRPC: &str = "there is no gRPC, as at the address in `monitor`";

/// What to change in the address, if this is what an answer without gRPC says.
pub(super) fn without_grpc(message: &str) -> Option<&'static str> {
    message
        .contains("grpc-status header missing")
        .then_some(WITHOUT_GRPC)
}

/// What to change in the address, if what answers there shows it.
pub(super) async fn advice(address: &Uri) -> Option<&'static str> {
    let begins = timeout(WITHIN, begins(address)).await.ok()?.ok()?;
    judge(&begins, address.scheme_str() == Some("https"))
}

/// The first bytes of its answer to a connection without TLS.
async fn begins(address: &Uri) -> io::Result<[u8; 4]> {
    let host = address.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut connection = TcpStream::connect((host, address.port_u16().unwrap_or_default())).await?;
    connection.write_all(BEGINNING).await?;
    let mut bytes = [0; 4];
    connection.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn judge(begins: &[u8; 4], with_tls: bool) -> Option<&'static str> {
    match begins {
        b"-ERR" | b"-NOA" | b"-DEN" => {
            Some("a Redis server is there: name it with --redis, or Builder::servers")
        }
        b"HTTP" => Some(WITHOUT_GRPC),
        // An alert of TLS.
        [0x15, 3, ..] if !with_tls => Some("TLS is spoken there: its URL begins with https://"),
        // A frame with settings of HTTP/2.
        [0, 0, _, 4] if with_tls => {
            Some("it is spoken to without TLS there: its URL begins with http://")
        }
        _ => None,
    }
}
