//! Explains why a server that takes connections is not the Redis server that its URL names.

use std::{borrow::Cow, io, time::Duration};

use redis::{ErrorKind, RedisError};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use super::{RedisOptions, address::Address, classify, tls::Tls};
use crate::shard::ShardError;

/// Longest wait for the answer to a probe.
const ANSWER_WITHIN: Duration = Duration::from_millis(300);

/// Bytes of an answer that are examined.
const ANSWER_BYTES: usize = 64;

/// Redis answers the first line, and ignores the second; an HTTP server waits for both.
const PING: &[u8] = b"PING\r\n\r\n";

/// PostgreSQL's SSLRequest. The server answers one byte: S or N.
const SSL_REQUEST: &[u8] = &[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Of a server with as many connections as it may have.
const FULL: &str = "max number of clients reached (raise its maxclients)";

/// The first bytes of a TLS alert: its type, and the major version.
const TLS_ALERT: &[u8] = &[0x15, 0x03];

/// Explains `error`, which a handshake with the server at `options` met. If the server's answer is not Redis's, this
/// probes it again over another connection.
pub(super) async fn of_handshake(options: &RedisOptions, error: RedisError) -> ShardError {
    let address = &options.address;
    let text = error.to_string();
    if error.kind() == ErrorKind::RESP3NotSupported {
        return unusable(address, &lacks("HELLO"));
    }
    match (error.code(), classify("the handshake", &error)) {
        (Some("NOAUTH"), _) => return unusable(address, "it wants a password (NOAUTH)"),
        (Some("WRONGPASS"), _) => {
            return unusable(
                address,
                "the user name or the password is wrong (WRONGPASS)",
            );
        }
        (_, ShardError::Unusable { reason }) => return unusable(address, &reason),
        _ if text.contains("invalid peer certificate")
            || error.kind() == ErrorKind::InvalidClientConfig =>
        {
            return unusable(address, &text);
        }
        _ => {}
    }
    let may_be_another = error.kind() == ErrorKind::Parse
        || error.is_connection_dropped()
        || text.contains("received corrupt message")
        || text.contains("the connection was closed");
    if may_be_another && is_full(address).await {
        return unreachable(address, FULL);
    }
    if may_be_another && let Some(what) = what_answers(address).await {
        return unusable(address, &what);
    }
    unreachable(address, &in_words(&text))
}

/// Explains a handshake that got no answer `within` that time.
pub(super) async fn of_silence(options: &RedisOptions, within: Duration) -> ShardError {
    let address = &options.address;
    // A server without TLS takes the handshake for the start of a line and waits for its end.
    if address.tls().is_some()
        && let Some(what) = what_answers(address).await
    {
        return unusable(address, &what);
    }
    unreachable(address, &format!("no answer within {within:?}"))
}

/// What it means that a server does not know `command`: it is too old, or the command is renamed or disabled there.
pub(super) fn lacks(command: &str) -> String {
    let why = match command.to_ascii_uppercase().as_str() {
        "HELLO" => "Redis 6.2 or later is needed",
        "FCALL" | "FUNCTION" => {
            "the rules of locks and accounts are Redis Functions (Redis 7.0 or later), or else scripts by EVALSHA and SCRIPT \
             LOAD, and it has neither"
        }
        "INFO" => {
            "it tells whether the server keeps what it has, and it may not be renamed or disabled"
        }
        "CLIENT" => "it names connections and ends old ones, and it may not be renamed or disabled",
        _ => "it may not be renamed or disabled",
    };
    format!("it does not know the command {command}: {why}")
}

pub(super) fn unusable(address: &Address, why: &str) -> ShardError {
    ShardError::Unusable {
        reason: format!("{address} is unusable: {why}"),
    }
}

pub(super) fn unreachable(address: &Address, why: &str) -> ShardError {
    ShardError::Unreachable {
        reason: format!("{address}: {why}"),
    }
}

/// The operating system's error, in plain words.
fn in_words(text: &str) -> Cow<'_, str> {
    if text.contains("Sentinel") {
        text.into()
    } else if text.contains("Connection refused") {
        "Connection refused: no server listens on this port".into()
    } else if text.contains("failed to lookup address") {
        format!("this host name is not known ({text})").into()
    } else {
        text.into()
    }
}

/// Whether the server has as many connections as it may: it says so before it is asked, and closes the connection.
async fn is_full(address: &Address) -> bool {
    let said = answer(address, &[]).await.unwrap_or_default();
    said.starts_with(b"-ERR max number of clients")
}

/// The kind of server that answers instead of the Redis server that `address` names; `None` if
/// unknown.
async fn what_answers(address: &Address) -> Option<String> {
    let said = answer(address, PING).await.unwrap_or_default();
    let is_redis = said.starts_with(b"+PONG") || said.starts_with(b"-");
    match (address.tls().is_some(), &said[..]) {
        (true, _) if is_redis => Some("the server does not speak TLS: write redis://".into()),
        (_, said) if is_http(said) => Some("an HTTP server answers, not Redis".into()),
        (false, said) if said.starts_with(TLS_ALERT) => Some(speaks_tls()),
        (_, []) => match answer(address, SSL_REQUEST).await.as_deref() {
            Ok([b'S' | b'N']) => Some("a PostgreSQL server answers, not Redis".into()),
            _ if address.tls().is_none() && is_tls(address).await => Some(speaks_tls()),
            _ => None,
        },
        _ if is_redis || said.starts_with(TLS_ALERT) => None,
        (_, said) => Some(format!(
            "the answer to PING is not Redis's: {}",
            said.escape_ascii()
        )),
    }
}

/// A server that takes PING for HTTP/0.9 answers with a page alone.
fn is_http(said: &[u8]) -> bool {
    said.starts_with(b"HTTP/") || said.starts_with(b"<")
}

fn speaks_tls() -> String {
    "the server speaks TLS: write rediss://".into()
}

/// The first answer of the server at `address` to `bytes`, without TLS.
async fn answer(address: &Address, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let exchange = async {
        let mut stream = address.stream().await?;
        stream.write_all(bytes).await?;
        let mut said = vec![0; ANSWER_BYTES];
        let length = stream.read(&mut said).await?;
        said.truncate(length);
        Ok(said)
    };
    timeout(ANSWER_WITHIN, exchange).await?
}

/// Whether the server at `address` answers a TLS handshake.
async fn is_tls(address: &Address) -> bool {
    let exchange = async { Tls::is_spoken_by(address.stream().await?).await };
    matches!(timeout(ANSWER_WITHIN, exchange).await, Ok(Ok(true)))
}

/// A connection before TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}
