//! Accepts connections, up to the limits. Others wait in the system's backlog, or are closed. Limits the calls of each.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, stream};
use hashbrown::HashMap;
use parking_lot::Mutex;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep},
};
use tonic::transport::server::Connected;

use crate::access::Caller;

/// Calls at a time on a connection beyond its places: renewals and releases, which need no place.
pub(crate) const STREAMS_KEPT: u32 = 64;

/// A connection without a first call, or a request, within this time is closed: it would keep its place from others.
const FIRST_CALL_WITHIN: Duration = Duration::from_secs(10);

/// A connection of the monitor that was answered may be silent for this long.
const NEXT_REQUEST_WITHIN: Duration = Duration::from_secs(60);

/// First and longest pause after the system refused a connection: it may be out of descriptors.
const ACCEPT_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// A limit that is reached is logged no more often than this.
const LOGGED_EVERY: Duration = Duration::from_secs(10);

/// The limits that a connection may reach, as a label, and what happens then.
type Limit = (&'static str, &'static str);
const CONNECTIONS: Limit = ("connections", "more connections wait");
const PER_ADDRESS: Limit = ("connections_per_address", "the connection is closed");
const FIRST_CALL: Limit = (
    "first_call",
    "a connection without a call by a known caller is closed",
);
const DESCRIPTORS: Limit = ("descriptors", "connections wait");

/// The places for calls on one connection, and whether it made a call by a known caller.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) calls: Arc<Semaphore>,
    is_known: Arc<AtomicBool>,
    /// Who makes its calls, where callers need no identity.
    caller: Arc<OnceLock<Arc<Caller>>>,
    /// Where its caller is.
    pub(crate) address: Option<IpAddr>,
}

impl Places {
    /// A known caller makes a call.
    pub(crate) fn known(&self) {
        self.is_known.store(true, Relaxed);
    }

    /// The one caller that the connection is, where callers need no identity.
    pub(crate) fn caller(&self, anybody: &Caller) -> Arc<Caller> {
        let own = || Arc::new(anybody.with_own_rate());
        self.caller.get_or_init(own).clone()
    }
}

/// The connections of all ports, counted by the name of the port; the sessions; and the calls that reached a limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    open: Family<[(&'static str, &'static str); 1], Gauge>,
    limited: Family<[(&'static str, &'static str); 2], Counter>,
    sessions: Gauge,
    limited_calls: Family<[(&'static str, &'static str); 1], Counter>,
}

/// A session is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenSession(Gauge);

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Numbers {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "connections",
            "Open connections of callers.",
            self.open.clone(),
        );
        registry.register(
            "connections_limited",
            "Connections that reached a limit.",
            self.limited.clone(),
        );
        registry.register("sessions", "Open sessions.", self.sessions.clone());
        registry.register(
            "calls_limited",
            "Calls, and asks within sessions, that were refused for a limit.",
            self.limited_calls.clone(),
        );
    }

    /// A session is open.
    pub(crate) fn session(&self) -> OpenSession {
        self.sessions.inc();
        OpenSession(self.sessions.clone())
    }

    /// A call, or an ask within a session, is refused for `limits.{limit}`.
    pub(crate) fn refused(&self, limit: &'static str) {
        self.limited_calls.get_or_create(&[("limit", limit)]).inc();
    }
}

/// The connections of one port.
#[derive(Debug)]
pub(crate) struct Port {
    name: &'static str,
    free: Arc<Semaphore>,
    per_address: usize,
    of_address: Mutex<HashMap<IpAddr, usize>>,
    numbers: Numbers,
    logged: Mutex<HashMap<&'static str, Instant>>,
}

impl Port {
    /// At most `max` connections at a time, and `per_address` of one address.
    pub(crate) fn new(
        name: &'static str,
        (max, per_address): (usize, usize),
        numbers: &Numbers,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            free: Arc::new(Semaphore::new(max)),
            per_address,
            of_address: Mutex::default(),
            numbers: numbers.clone(),
            logged: Mutex::default(),
        })
    }

    /// The next connection of `listener`, with `streams` places. A port that is out of descriptors is asked again after a
    /// pause.
    async fn accept(self: &Arc<Self>, listener: &TcpListener, streams: u32) -> Connection {
        let mut pause = ACCEPT_AGAIN.0;
        loop {
            let free = self.free.clone();
            let counted = match free.clone().try_acquire_owned() {
                Ok(counted) => counted,
                Err(_) => {
                    self.limited(CONNECTIONS);
                    free.acquire_owned().await.expect("it is never closed")
                }
            };
            match listener.accept().await {
                Ok((stream, address)) => {
                    pause = ACCEPT_AGAIN.0;
                    let Some(counted) = self.count(address.ip(), counted) else {
                        self.limited(PER_ADDRESS);
                        continue;
                    };
                    // Without it, answers come late.
                    let _ = stream.set_nodelay(true);
                    return Connection::new(stream, streams, counted);
                }
                // The connection ended before it was accepted.
                Err(error) if is_its_own(&error) => {}
                Err(error) => {
                    tracing::debug!(%error, port = self.name, "cannot accept");
                    self.limited(DESCRIPTORS);
                    sleep(pause).await;
                    pause = (2 * pause).min(ACCEPT_AGAIN.1);
                }
            }
        }
    }

    fn count(self: &Arc<Self>, address: IpAddr, permit: OwnedSemaphorePermit) -> Option<Counted> {
        let mut of_address = self.of_address.lock();
        let count = of_address.entry(address).or_default();
        if *count >= self.per_address {
            return None;
        }
        *count += 1;
        self.numbers
            .open
            .get_or_create(&[("port", self.name)])
            .inc();
        Some(Counted {
            port: self.clone(),
            address,
            _permit: permit,
        })
    }

    fn limited(&self, (limit, then): Limit) {
        let labels = [("port", self.name), ("limit", limit)];
        self.numbers.limited.get_or_create(&labels).inc();
        let now = Instant::now();
        let mut logged = self.logged.lock();
        let is_due = |last: &Instant| now.duration_since(*last) >= LOGGED_EVERY;
        if logged.get(limit).is_none_or(is_due) {
            logged.insert(limit, now);
            tracing::warn!(port = self.name, limit, "a limit is reached: {then}");
        }
    }
}

fn is_its_own(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// A connection is counted until this is dropped.
#[derive(Debug)]
struct Counted {
    port: Arc<Port>,
    address: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Self { port, address, .. } = self;
        port.numbers
            .open
            .get_or_create(&[("port", port.name)])
            .dec();
        let mut of_address = port.of_address.lock();
        if let Some(count) = of_address.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                of_address.remove(address);
            }
        }
    }
}

/// A connection, which counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// When it is closed, unless a known caller makes a call.
    closes: Option<Pin<Box<Sleep>>>,
    /// Whether each answer is a reason to keep it for longer.
    answers_count: bool,
    places: Places,
    counted: Counted,
}

/// The connections of `listener`, with `streams` places each.
pub(crate) fn accept(
    listener: Arc<TcpListener>,
    port: Arc<Port>,
    streams: u32,
) -> impl Stream<Item = io::Result<Connection>> {
    stream::unfold((listener, port), move |(listener, port)| async move {
        let connection = port.accept(&listener, streams).await;
        Some((Ok(connection), (listener, port)))
    })
}

/// A port for requests over HTTP/1, which need no known caller.
pub(crate) struct Requests {
    pub(crate) listener: TcpListener,
    pub(crate) port: Arc<Port>,
}

impl axum::serve::Listener for Requests {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let mut connection = self.port.accept(&self.listener, 0).await;
            connection.answers_count = true;
            if let Ok(address) = connection.stream.peer_addr() {
                return (connection, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connection {
    fn new(stream: TcpStream, streams: u32, counted: Counted) -> Self {
        let places = Places {
            calls: Arc::new(Semaphore::new(streams as usize)),
            is_known: Arc::default(),
            caller: Arc::default(),
            address: stream.peer_addr().ok().map(|address| address.ip()),
        };
        Self {
            stream,
            closes: Some(Box::pin(sleep(FIRST_CALL_WITHIN))),
            answers_count: false,
            places,
            counted,
        }
    }

    /// Whether it has to be closed; otherwise the task is woken when it has to be.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        if self.places.is_known.load(Relaxed) {
            self.closes = None;
        }
        let Some(closes) = &mut self.closes else {
            return false;
        };
        let is_over = closes.as_mut().poll(context).is_ready();
        if is_over {
            self.counted.port.limited(FIRST_CALL);
        }
        is_over
    }

    fn written(&mut self, written: &Poll<io::Result<usize>>) {
        if let (Some(closes), true, Poll::Ready(Ok(_))) =
            (&mut self.closes, self.answers_count, written)
        {
            closes.as_mut().reset(Instant::now() + NEXT_REQUEST_WITHIN);
        }
    }
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
        match self.is_over(context) {
            true => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            false => Pin::new(&mut self.stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(&written);
        written
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
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
