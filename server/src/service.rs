//! Binds the port, serves, stops gracefully.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use futures_util::{FutureExt, Stream, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use prometheus_client::registry::Registry;
use ringfence_api::{
    DESCRIPTORS, MESSAGE_BYTES_MAX,
    v1::{
        admin_service_server::AdminServiceServer, counter_service_server::CounterServiceServer,
        latch_service_server::LatchServiceServer, lock_service_server::LockServiceServer,
        session_service_server::SessionServiceServer,
    },
};
use ringfence_client::{BootClock, Client, Clock};
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::{
    body::Body,
    codegen::http::Response,
    service::{Routes, RoutesBuilder, interceptor::InterceptedService},
    transport::{Server, server::Router},
};
use tonic_health::server::HealthReporter;
use tower::{
    layer::util::{Identity, Stack},
    util::MapResponseLayer,
};

use crate::{
    Config, Limits, Tls,
    access::Authentication,
    admin::Admin,
    calls::Calls,
    connections::{Numbers, Port, Requests, STREAMS_KEPT, UNFINISHED_MAX, accept},
    counters::Counters,
    dashboard::Dashboard,
    json,
    latches::Latches,
    locks::{Handles, Holds, Locks},
    monitor,
    readiness::Readiness,
    reload::Reloader,
    secured::Secured,
    sessions::{Sessions, Shared},
    sweeper::Sweeper,
    too_long, traces,
};

/// A connection without traffic is checked this often, and closed if no answer comes in time.
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections of the monitor's port at a time, and of one address.
const MONITOR_CONNECTIONS: (usize, usize) = (512, 128);

/// After the grace, calls under way have this long to end.
const LAST_CALLS: Duration = Duration::from_secs(1);

/// A coordinator that listens on its port.
pub struct Service {
    listener: Arc<TcpListener>,
    monitor: Option<TcpListener>,
    client: Client,
    holds: Arc<Holds>,
    handles: Arc<Handles>,
    limits: Limits,
    grace: Duration,
    numbers: Numbers,
    sweeper: Sweeper,
    authentication: Authentication,
    reloader: Reloader,
    /// The reason, if there is none.
    dashboard: Result<Arc<Dashboard>, &'static str>,
}

/// The system refuses a port.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct BindError {
    /// Its address.
    pub address: SocketAddr,
    /// The reason.
    pub source: io::Error,
}

/// A coordinator cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] tonic::transport::Error),
    /// The certificates cannot be used, for this reason.
    #[error("tls cannot be used: {0}")]
    Certificates(String),
}

impl Service {
    /// Binds the ports.
    ///
    /// # Errors
    ///
    /// The system refuses a port.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn bind(config: &Config, client: Client) -> Result<Self, BindError> {
        let listener = Arc::new(bind(config.listen).await?);
        let monitor = match config.monitor {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let clock: Arc<dyn Clock> = Arc::new(BootClock);
        let Limits { rate, .. } = config.limits;
        let numbers = Numbers::default();
        let authentication = Authentication::new(&config.principals, rate, &clock, &numbers);
        let shown = || Dashboard::new(&client, authentication.clone());
        let handles = Arc::new(Handles::new(&config.handle_secrets));
        Ok(Self {
            listener,
            monitor,
            dashboard: config.allows_dashboard().map(|()| shown()),
            reloader: Reloader::new(config, authentication.clone(), handles.clone()),
            authentication,
            holds: Holds::new(client.clone(), clock),
            sweeper: Sweeper::new(client.clone(), config.sweep_every),
            client,
            handles,
            limits: config.limits,
            grace: config.grace,
            numbers,
        })
    }

    /// Changes settings while it serves. Files of certificates that change are read without it.
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// The address that it listens on.
    ///
    /// # Errors
    ///
    /// The system does not know it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The address of `/metrics`, if it is served.
    ///
    /// # Errors
    ///
    /// The system does not know it.
    pub fn monitor_address(&self) -> io::Result<Option<SocketAddr>> {
        let monitor = self.monitor.as_ref();
        monitor.map(TcpListener::local_addr).transpose()
    }

    /// Serves until `stop`, then stops gracefully: grants no new locks, waits for callers to release
    /// theirs, for at most the grace, and closes the client. A lock that is still held then stays
    /// with its holder until its lease ends.
    ///
    /// # Errors
    ///
    /// [`ServeError`]: it ended before it was told to.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the service at once, and releases all locks.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self {
            listener,
            monitor,
            client,
            holds,
            handles,
            limits,
            grace,
            numbers,
            sweeper,
            authentication,
            reloader,
            dashboard,
        } = self;
        let (stopping, closing) = (CancellationToken::new(), CancellationToken::new());
        let health = HealthReporter::new();
        let sessions = Sessions(Arc::new(Shared {
            client: client.clone(),
            holds: holds.clone(),
            handles: handles.clone(),
            limits,
            grace,
            stopping: stopping.clone(),
            closing: closing.clone(),
        }));
        let locks = Locks::new(client.clone(), holds.clone(), handles, stopping.clone());
        let latches = Latches::new(client.clone(), stopping.clone());
        let admin = Admin::new(client.clone(), stopping.clone(), grace);
        let served = (locks, sessions, latches, admin);
        let calls = Calls::default();
        let routes = calls.of(routes((&client, &calls), served, &health, &authentication));
        let router = server(&limits).add_routes(json::with(routes));
        let places = (limits.connections, limits.connections_per_address);
        let port = Port::new("service", places, &numbers);
        let accept = move |tls| accept(listener.clone(), port.clone(), limits.streams, tls);
        let certificates = reloader.certificates();
        let serve = serve(
            router,
            certificates,
            accept,
            (stopping.clone(), closing.clone()),
        );
        let stop = stopped(stop, (stopping.clone(), closing), holds.clone(), grace);
        let monitor = monitor.map(|listener| Requests {
            listener,
            port: Port::new("monitor", MONITOR_CONNECTIONS, &numbers),
        });
        let readiness = Readiness::of(&client, &stopping);
        let registry = registry(&client, &numbers, (&calls, &reloader, &sweeper));
        let monitor = monitor::serve(monitor, registry, readiness.clone(), dashboard);
        let duties = [
            holds.clone().run().boxed(),
            monitor.boxed(),
            readiness.tell(health).boxed(),
            reloader.follow_files().boxed(),
            sweeper.run(stopping.clone()).boxed(),
        ];
        let mut tasks = tasks(serve, duties);
        let served = tokio::select! {
            Some(ended) = tasks.join_next() => ended.expect("it does not panic"),
            () = stop => Ok(()),
        };
        tasks.shutdown().await;
        let left = holds.forget();
        let unsent = client.close().await;
        tracing::info!(held = left, unsent, "stopped");
        served
    }
}

type Layers = Stack<MapResponseLayer<Explain>, Identity>;

fn server(limits: &Limits) -> Server<Layers> {
    let explain: Explain = too_long::answer;
    let server = Server::builder()
        .accept_http1(true)
        .max_concurrent_streams(limits.streams + STREAMS_KEPT)
        // What arrives for a session that does not read waits here.
        .initial_stream_window_size(MESSAGE_BYTES_MAX as u32)
        .initial_connection_window_size(UNFINISHED_MAX as u32)
        .trace_fn(traces::of_call)
        .layer(MapResponseLayer::new(explain))
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT));
    match limits.connection_age {
        Some(age) => server.max_connection_age(age),
        None => server,
    }
}

/// Serves until the stop ends. When it begins, and when the certificates change, callers connect anew: then a load balancer
/// sends them elsewhere, or they get the new certificate. Streams go on, and who has no other coordinator comes back to
/// release its locks.
async fn serve<S>(
    router: Router<Layers>,
    mut certificates: watch::Receiver<Option<Tls>>,
    accept: impl Fn(Option<TlsAcceptor>) -> S,
    (begins, ends): (CancellationToken, CancellationToken),
) -> Served
where
    S: Stream<Item = io::Result<Secured>>,
{
    let mut serving = FuturesUnordered::new();
    loop {
        let tls = certificates.borrow_and_update().clone();
        let tls = tls.map(|tls| tls.acceptor()).transpose();
        let accepted = accept(tls.map_err(ServeError::Certificates)?);
        let (is_last, replaced) = (begins.is_cancelled(), CancellationToken::new());
        let end = if is_last { &ends } else { &replaced }.clone();
        let router = router.clone();
        serving.push(router.serve_with_incoming_shutdown(accepted, end.cancelled_owned()));
        loop {
            tokio::select! {
                Some(served) = serving.next() => {
                    served?;
                    if serving.is_empty() {
                        return Ok(());
                    }
                }
                () = begins.cancelled(), if !is_last => break,
                Ok(()) = certificates.changed() => break,
            }
        }
        replaced.cancel();
    }
}

/// Waits for `stop`, and lets callers release their locks, for at most `grace`.
async fn stopped(
    stop: impl Future<Output = ()>,
    (begins, ends): (CancellationToken, CancellationToken),
    holds: Arc<Holds>,
    grace: Duration,
) {
    tokio::select! {
        () = stop => {}
        () = begins.cancelled() => {}
    }
    begins.cancel();
    tracing::info!(?grace, "stops: no new locks");
    let _ = timeout(grace, holds.none_held()).await;
    ends.cancel();
    tokio::time::sleep(LAST_CALLS).await;
}

/// The numbers at the monitor's port.
fn registry(
    client: &Client,
    numbers: &Numbers,
    (calls, reloader, sweeper): (&Calls, &Reloader, &Sweeper),
) -> Registry {
    let mut registry = Registry::default();
    client.register_metrics(&mut registry);
    let own = registry.sub_registry_with_prefix("ringfence");
    numbers.register(own);
    calls.register(own);
    reloader.register(own);
    sweeper.register(own);
    registry
}

/// What a service does. Each is a task: one that is busy keeps no other from its duty.
fn tasks(
    serve: impl Future<Output = Served> + Send + 'static,
    duties: [BoxFuture<'static, ()>; 5],
) -> JoinSet<Served> {
    let mut tasks = JoinSet::new();
    tasks.spawn(serve);
    for duty in duties {
        tasks.spawn(duty.map(Ok));
    }
    tasks
}

type Served = Result<(), ServeError>;

async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| BindError { address, source })
}

/// Changes the answer of a call.
type Explain = fn(Response<Body>) -> Response<Body>;

/// All services.
fn routes(
    (client, calls): (&Client, &Calls),
    (locks, sessions, latches, admin): (Locks, Sessions, Latches, Admin),
    health: &HealthReporter,
    authentication: &Authentication,
) -> Routes {
    let locks = LockServiceServer::new(locks).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let sessions = SessionServiceServer::new(sessions).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let counters = CounterServiceServer::new(Counters::new(client.clone(), calls.changes.clone()))
        .max_decoding_message_size(MESSAGE_BYTES_MAX);
    let latches = LatchServiceServer::new(latches).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let admin = AdminServiceServer::new(admin).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let checks = tonic_health::server::HealthService::from_health_reporter(health.clone());
    let checks = tonic_health::pb::health_server::HealthServer::new(checks)
        .max_decoding_message_size(MESSAGE_BYTES_MAX);
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let compiled = "descriptors that the build has compiled";
    let current = reflection().build_v1().expect(compiled);
    let current = current.max_decoding_message_size(MESSAGE_BYTES_MAX);
    // Many tools know only this version.
    let alpha = reflection().build_v1alpha().expect(compiled);
    let alpha = alpha.max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut routes = RoutesBuilder::default();
    routes
        .add_service(InterceptedService::new(locks, authentication.clone()))
        .add_service(InterceptedService::new(sessions, authentication.clone()))
        .add_service(InterceptedService::new(counters, authentication.clone()))
        .add_service(InterceptedService::new(latches, authentication.clone()))
        .add_service(InterceptedService::new(admin, authentication.clone()))
        .add_service(InterceptedService::new(current, authentication.clone()))
        .add_service(InterceptedService::new(alpha, authentication.clone()))
        .add_service(checks);
    routes.routes()
}
