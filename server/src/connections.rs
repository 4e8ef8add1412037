//! Accepts connections, up to the limit. Others wait in the system's backlog. Limits the calls of each.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, stream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Sleep, sleep},
};
use tonic::transport::server::Connected;

/// Calls at a time on a connection beyond its places: renewals and releases, which need no place.
pub(crate) const STREAMS_KEPT: u32 = 64;

/// A connection that sends nothing within this time is closed: it would keep its place from others.
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(5);

/// The places for calls on one connection.
#[derive(Clone, Debug)]
pub(crate) struct Places(pub(crate) Arc<Semaphore>);

/// A connection, which counts until it is dropped.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Until the first byte: when it is closed.
    silent_until: Option<Pin<Box<Sleep>>>,
    places: Places,
    _counted: OwnedSemaphorePermit,
}

/// The connections of `listener`, at most `max` at a time, with `streams` places each.
pub(crate) fn accept(
    listener: TcpListener,
    max: usize,
    streams: u32,
) -> impl Stream<Item = io::Result<Connection>> {
    let free = Arc::new(Semaphore::new(max));
    stream::unfold((listener, free), move |(listener, free)| async move {
        let counted = free.clone().acquire_owned().await.ok()?;
        let accepted = listener.accept().await.and_then(|(stream, _)| {
            stream.set_nodelay(true)?;
            Ok(Connection {
                stream,
                silent_until: Some(Box::pin(sleep(FIRST_BYTE_WITHIN))),
                places: Places(Arc::new(Semaphore::new(streams as usize))),
                _counted: counted,
            })
        });
        Some((accepted, (listener, free)))
    })
}

impl Connected for Connection {
    type ConnectInfo = Places;

    fn connect_info(&self) -> Places {
        self.places.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let is_silent = read.is_pending();
        match &mut self.silent_until {
            Some(until) if is_silent => match until.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                Poll::Pending => Poll::Pending,
            },
            silent_until => {
                *silent_until = None;
                read
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
