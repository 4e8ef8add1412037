//! A connection, with TLS if the port has it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::either::Either;
use tonic::transport::server::Connected;

use crate::{
    connections::{Connection, Places, SETTINGS},
    frames::Frames,
};

/// A connection whose handshake takes longer is closed.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// A connection, with TLS if the port has it. Limits and deadlines are those of the connection below, so they hold in the
/// handshake, too.
#[derive(Debug)]
pub(crate) struct Secured {
    stream: Either<Connection, Box<TlsStream<Connection>>>,
    places: Places,
    frames: Frames,
}

impl Secured {
    pub(crate) async fn new(connection: Connection, tls: Option<&TlsAcceptor>) -> io::Result<Self> {
        let mut places = connection.places.clone();
        let stream = match tls {
            None => Either::Left(connection),
            Some(tls) => {
                let stream = timeout(HANDSHAKE_WITHIN, tls.accept(connection)).await??;
                let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
                places.certificate = certificates.first().cloned();
                Either::Right(Box::new(stream))
            }
        };
        Ok(Self {
            stream,
            places,
            frames: Frames::new(),
        })
    }
}

impl Connected for Secured {
    type ConnectInfo = Places;

    fn connect_info(&self) -> Places {
        self.places.clone()
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let received = self.frames.receive(&buffer.filled()[before..]);
        Poll::Ready(received.map_err(|_| {
            self.places.limited(SETTINGS);
            io::ErrorKind::ConnectionAborted.into()
        }))
    }
}

impl AsyncWrite for Secured {
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
