//! Accepts connections, up to the limits. Others wait in the system's backlog, or are closed. Limits the calls of each.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    ops::Deref,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt, Stream, StreamExt, stream};
use hashbrown::HashMap;
use parking_lot::Mutex;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use ringfence_api::MESSAGE_BYTES_MAX;
use rustls::pki_types::CertificateDer;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, Sleep, sleep, sleep_until, timeout},
};
use tokio_rustls::TlsAcceptor;

use crate::{access::Caller, secured::Secured};

/// Calls at a time on a connection beyond its places: renewals and releases, which need no place.
pub(crate) const STREAMS_KEPT: u32 = 64;

/// A connection without a first call, or a request, within this time is closed: it would keep its place from others.
const FIRST_CALL_WITHIN: Duration = Duration::from_secs(10);

/// Bytes that a connection may send before its first call, or before an answer of the monitor, at most: of a handshake, and a long
/// call. One that sends more floods.
const FIRST_CALL_BYTES_MAX: usize = 128 << 10;

/// Bytes that are read from a connection before others have their turn: a flood of short frames in one turn keeps others waiting
/// for long.
const TURN_BYTES: usize = 8 << 10;

/// A connection of the monitor that was answered may be silent for this long.
const NEXT_REQUEST_WITHIN: Duration = Duration::from_secs(60);

/// A host that is silent for this long is asked whether it is there, so often.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 2);

/// A connection whose caller takes no byte of what is written for this long is closed: nothing more is read from it, so no
/// other deadline ends it.
const TAKES_WITHIN: Duration = Duration::from_secs(15);

/// Between two connections that make room for one that waits.
const ROOM_EVERY: Duration = Duration::from_millis(5);

/// Calls at a time on a connection that need no role: of health and reflection. Their streams may stay open without end.
pub(crate) const WITHOUT_ROLE_MAX: usize = 8;

/// Bytes of unfinished messages on a connection, at most: of two long ones.
pub(crate) const UNFINISHED_MAX: usize = 2 * MESSAGE_BYTES_MAX;

/// The pause after the system refused a connection: it may be out of descriptors, and as many connections then make room. The
/// other port may be quicker to use theirs.
const ACCEPT_AGAIN: (Duration, usize) = (Duration::from_millis(20), 16);

/// A limit that is reached is logged no more often than this.
const LOGGED_EVERY: Duration = Duration::from_secs(10);

/// The limits that a connection may reach, as a label, and what happens then.
pub(crate) type Limit = (&'static str, &'static str);
const CONNECTIONS: Limit = (
    "connections",
    "a connection without a call by a known caller makes room, or more connections wait",
);
const PER_ADDRESS: Limit = ("connections_per_address", "the connection is closed");
const PER_PRINCIPAL: Limit = (
    "connections_per_principal",
    "the calls of the connection are refused",
);
const FIRST_CALL: Limit = (
    "first_call",
    "a connection without a call by a known caller is closed",
);
const UNREAD: Limit = (
    "unread",
    "a connection whose caller reads nothing is closed",
);
pub(crate) const SETTINGS: Limit = ("settings_frames", "the connection is closed");
const DESCRIPTORS: Limit = (
    "descriptors",
    "connections without a call by a known caller make room, or connections wait",
);

/// The places for calls on one connection, and whether it made a call by a known caller.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) calls: Arc<Semaphore>,
    /// Those of calls that need no role.
    pub(crate) without_role: Arc<Semaphore>,
    /// Bytes of messages that are not complete yet.
    pub(crate) unfinished: Arc<Semaphore>,
    /// Set by the first call of a known caller. The connection counts as one of that principal.
    known: Arc<OnceLock<Option<Counted>>>,
    /// Who makes its calls, where callers need no identity.
    caller: Arc<OnceLock<Arc<Caller>>>,
    /// Where its caller is.
    pub(crate) address: Option<IpAddr>,
    /// The certificate of its caller, which the handshake has verified.
    pub(crate) certificate: Option<CertificateDer<'static>>,
    port: Arc<Port>,
}

impl Places {
    fn new(port: &Arc<Port>, address: Option<IpAddr>, streams: u32) -> Self {
        Self {
            calls: Arc::new(Semaphore::new(streams as usize)),
            without_role: Arc::new(Semaphore::new(WITHOUT_ROLE_MAX)),
            unfinished: Arc::new(Semaphore::new(UNFINISHED_MAX)),
            known: Arc::default(),
            caller: Arc::default(),
            address,
            certificate: None,
            port: port.clone(),
        }
    }

    /// A known caller makes a call. The error is the number of connections that its principal may have, and has.
    pub(crate) fn known(&self, principal: Option<&str>) -> Result<(), usize> {
        if self.is_known() {
            return Ok(());
        }
        let max = self.port.per_principal;
        let count = |name: &str| self.port.count(Whose::Principal(name.into()), max);
        let counted = principal.map(|name| count(name).ok_or(max)).transpose();
        let counted = counted.inspect_err(|_| self.port.limited(PER_PRINCIPAL))?;
        // A call that came at the same time may have been quicker.
        let _ = self.known.set(counted);
        Ok(())
    }

    /// The connection reaches `limit`.
    pub(crate) fn limited(&self, limit: Limit) {
        self.port.limited(limit);
    }

    fn is_known(&self) -> bool {
        self.known.get().is_some()
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
    /// Three quarters of all: one principal leaves places to others.
    per_principal: usize,
    counts: Mutex<HashMap<Whose, usize>>,
    /// The connections that are to be closed, by time and number. Dropping the sender closes one now.
    closing: Mutex<BTreeMap<Closes, oneshot::Sender<()>>>,
    numbers: Numbers,
    logged: Mutex<HashMap<&'static str, Instant>>,
}

/// Whose connections are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Whose {
    Address(IpAddr),
    Principal(String),
}

/// When a connection is to be closed, and its number, by which none is like another.
type Closes = (Instant, u64);

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
            per_principal: max - max / 4,
            counts: Mutex::default(),
            closing: Mutex::default(),
            numbers: numbers.clone(),
            logged: Mutex::default(),
        })
    }

    /// The next connection of `listener`, with `streams` places. A port that is out of descriptors is asked again after a
    /// pause.
    async fn accept(self: &Arc<Self>, listener: &TcpListener, streams: u32) -> Connection {
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    let whose = Whose::Address(address.ip());
                    let Some(counted) = self.count(whose, self.per_address) else {
                        self.limited(PER_ADDRESS);
                        continue;
                    };
                    let place = self.place().await;
                    // Without it, answers come late.
                    let _ = stream.set_nodelay(true);
                    keep_alive(&stream);
                    let places = Places::new(self, Some(address.ip()), streams);
                    return Connection::new(stream, places, (counted, place));
                }
                // The connection ended before it was accepted.
                Err(error) if is_its_own(&error) => {}
                Err(error) => {
                    tracing::debug!(%error, port = self.name, "cannot accept");
                    self.limited(DESCRIPTORS);
                    let (pause, count) = ACCEPT_AGAIN;
                    // One that came just now is to have its answer.
                    let older = self.closing.lock().len() / 2;
                    (0..count.min(older)).for_each(|_| self.make_room());
                    sleep(pause).await;
                }
            }
        }
    }

    /// A place. If all are taken, the connection that would be closed first is closed now: whoever opens connections that
    /// say nothing keeps nobody out.
    async fn place(&self) -> OwnedSemaphorePermit {
        if let Ok(place) = self.free.clone().try_acquire_owned() {
            return place;
        }
        self.limited(CONNECTIONS);
        loop {
            self.make_room();
            // One that was chosen may have become known meanwhile, and stays.
            let place = timeout(ROOM_EVERY, self.free.clone().acquire_owned()).await;
            if let Ok(place) = place {
                return place.expect("it is never closed");
            }
        }
    }

    /// Closes the connection that would be closed first, if there is one.
    fn make_room(&self) {
        self.closing.lock().pop_first();
    }

    fn count(self: &Arc<Self>, whose: Whose, max: usize) -> Option<Counted> {
        let mut counts = self.counts.lock();
        let count = counts.entry(whose.clone()).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        let port = self.clone();
        Some(Counted { port, whose })
    }

    fn open(&self) -> impl Deref<Target = Gauge> {
        self.numbers.open.get_or_create(&[("port", self.name)])
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

/// Has the system notice that the other host is gone. HTTP/2 notices by itself; over HTTP/1, the caller of a call that waits
/// sends nothing.
fn keep_alive(stream: &TcpStream) {
    let (silence, interval, retries) = KEEPALIVE;
    let keepalive = TcpKeepalive::new().with_time(silence);
    let keepalive = keepalive.with_interval(interval).with_retries(retries);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
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
    whose: Whose,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.port.counts.lock();
        if let Some(count) = counts.get_mut(&self.whose) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.whose);
            }
        }
    }
}

/// When a connection is closed, unless a known caller makes a call.
#[derive(Debug)]
struct Closing {
    port: Arc<Port>,
    closes: Closes,
    at: Pin<Box<Sleep>>,
    now: oneshot::Receiver<()>,
    /// Bytes that it may still send.
    bytes: usize,
}

impl Closing {
    fn new(port: &Arc<Port>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let at = Instant::now() + FIRST_CALL_WITHIN;
        let closes = (at, NUMBER.fetch_add(1, Relaxed));
        let (close, now) = oneshot::channel();
        port.closing.lock().insert(closes, close);
        Self {
            port: port.clone(),
            closes,
            at: Box::pin(sleep_until(at)),
            now,
            bytes: FIRST_CALL_BYTES_MAX,
        }
    }

    /// It is closed at `at`, and not earlier, unless it has to make room.
    fn later(&mut self, at: Instant) {
        self.bytes = FIRST_CALL_BYTES_MAX;
        let mut closing = self.port.closing.lock();
        // Otherwise it makes room already.
        if let Some(close) = closing.remove(&self.closes) {
            self.closes.0 = at;
            closing.insert(self.closes, close);
            self.at.as_mut().reset(at);
        }
    }

    fn is_due(&mut self, context: &mut Context<'_>) -> bool {
        self.bytes == 0
            || self.at.poll_unpin(context).is_ready()
            || self.now.poll_unpin(context).is_ready()
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.port.closing.lock().remove(&self.closes);
    }
}

/// A connection, which counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    pub(crate) places: Places,
    /// When it is closed, unless a known caller makes a call.
    closing: Option<Closing>,
    /// When it is closed, unless its caller takes what is written.
    takes_until: Option<Pin<Box<Sleep>>>,
    is_over: bool,
    /// Bytes that were read in this turn.
    turn: usize,
    /// Whether each answer is a reason to keep it for longer.
    answers_count: bool,
    _counted: (Counted, OwnedSemaphorePermit),
}

/// The connections of `listener`, with `streams` places each, after their handshakes if there is TLS.
pub(crate) fn accept(
    listener: Arc<TcpListener>,
    port: Arc<Port>,
    streams: u32,
    tls: Option<TlsAcceptor>,
) -> impl Stream<Item = io::Result<Secured>> {
    let accepted = stream::unfold((listener, port), move |(listener, port)| async move {
        let connection = port.accept(&listener, streams).await;
        Some((connection, (listener, port)))
    });
    let secured = move |connection| {
        let tls = tls.clone();
        async move { Secured::new(connection, tls.as_ref()).await }
    };
    // The port limits their number.
    accepted.map(secured).buffer_unordered(usize::MAX)
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
    fn new(stream: TcpStream, places: Places, counted: (Counted, OwnedSemaphorePermit)) -> Self {
        places.port.open().inc();
        Self {
            stream,
            closing: Some(Closing::new(&places.port)),
            places,
            takes_until: None,
            is_over: false,
            turn: 0,
            answers_count: false,
            _counted: counted,
        }
    }

    /// Whether it has to be closed; otherwise the task is woken when it has to be.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        if self.places.is_known() {
            self.closing = None;
        }
        let closing = self.closing.as_mut();
        if !self.is_over && closing.is_some_and(|closing| closing.is_due(context)) {
            self.is_over = true;
            self.places.port.limited(FIRST_CALL);
        }
        self.is_over
    }

    /// The outcome of a write, which ends the connection if nothing can be written for long.
    fn written(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_pending() {
            let until = self
                .takes_until
                .get_or_insert_with(|| Box::pin(sleep(TAKES_WITHIN)));
            if !self.is_over && until.poll_unpin(context).is_ready() {
                self.is_over = true;
                self.places.port.limited(UNREAD);
            }
            return match self.is_over(context) {
                true => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                false => Poll::Pending,
            };
        }
        self.takes_until = None;
        if let (Some(closing), true, Poll::Ready(Ok(_))) =
            (&mut self.closing, self.answers_count, &written)
        {
            closing.later(Instant::now() + NEXT_REQUEST_WITHIN);
        }
        written
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.places.port.open().dec();
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_over(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if self.turn >= TURN_BYTES {
            self.turn = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let sent = buffer.filled().len() - before;
        if let Some(closing) = &mut self.closing {
            closing.bytes = closing.bytes.saturating_sub(sent);
        }
        self.turn = if read.is_pending() {
            0
        } else {
            self.turn + sent
        };
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, written)
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
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
