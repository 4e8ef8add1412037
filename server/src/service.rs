//! Binds the port, serves, stops gracefully.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use futures_util::Stream;
use ringfence_api::{
    DESCRIPTORS, MESSAGE_BYTES_MAX,
    v1::{
        admin_service_server::AdminServiceServer, counter_service_server::CounterServiceServer,
        latch_service_server::LatchServiceServer, lock_service_server::LockServiceServer,
        session_service_server::SessionServiceServer,
    },
};
use ringfence_client::{BootClock, Client, Clock};
use tokio::{net::TcpListener, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tonic::{
    body::Body,
    codegen::http::Response,
    service::interceptor::InterceptedService,
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
    connections::{Connection, Numbers, Port, Requests, STREAMS_KEPT, accept},
    counters::Counters,
    dashboard::Dashboard,
    latches::Latches,
    locks::{Handles, Holds, Locks},
    monitor,
    readiness::Readiness,
    sessions::{Sessions, Shared},
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
    authentication: Authentication,
    /// The reason, if there is none.
    dashboard: Result<Arc<Dashboard>, &'static str>,
    tls: Option<Tls>,
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
        let authentication = Authentication::new(&config.principals, rate, &clock);
        let shown = || Dashboard::new(&client, authentication.clone());
        Ok(Self {
            listener,
            monitor,
            dashboard: config.allows_dashboard().map(|()| shown()),
            authentication,
            holds: Holds::new(client.clone(), clock),
            client,
            handles: Arc::new(Handles::new(&config.handle_secrets)),
            limits: config.limits,
            grace: config.grace,
            tls: config.tls.clone(),
        })
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
    /// The transport failed, or the certificates cannot be used.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the service at once, and releases all locks.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), tonic::transport::Error> {
        let Self {
            listener,
            monitor,
            client,
            holds,
            handles,
            limits,
            grace,
            authentication,
            dashboard,
            tls,
        } = self;
        let (stopping, closing) = (CancellationToken::new(), CancellationToken::new());
        let health = HealthReporter::new();
        let server = server(tls, &limits)?;
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
        let router = router(server, &client, served, &health, &authentication);
        let numbers = Numbers::default();
        let places = (limits.connections, limits.connections_per_address);
        let port = Port::new("service", places, &numbers);
        let accept = move || accept(listener.clone(), port.clone(), limits.streams);
        let serve = serve(router, accept, (stopping.clone(), closing.clone()));
        let stop = async {
            tokio::select! {
                () = stop => {}
                () = stopping.cancelled() => {}
            }
            stopping.cancel();
            tracing::info!(?grace, "stops: no new locks");
            let _ = timeout(grace, holds.none_held()).await;
            closing.cancel();
            tokio::time::sleep(LAST_CALLS).await;
        };
        let monitor = monitor.map(|listener| Requests {
            listener,
            port: Port::new("monitor", MONITOR_CONNECTIONS, &numbers),
        });
        let readiness = Readiness {
            metrics: client.metrics(),
            stopping: stopping.clone(),
        };
        let monitored = (client.clone(), numbers);
        let monitor = monitor::serve(monitor, monitored, readiness.clone(), dashboard);
        let mut tasks = tasks(serve, holds.clone(), monitor, readiness.tell(health));
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

fn server(tls: Option<Tls>, limits: &Limits) -> Result<Server, tonic::transport::Error> {
    let server = tls.map_or_else(|| Ok(Server::builder()), |tls| tls.server())?;
    let server = server.max_concurrent_streams(limits.streams + STREAMS_KEPT);
    Ok(match limits.connection_age {
        Some(age) => server.max_connection_age(age),
        None => server,
    })
}

/// Serves until the stop ends. When it begins, callers connect anew: a load balancer sends them elsewhere. Streams go on,
/// and who has no other coordinator comes back to release its locks.
async fn serve<S>(
    router: Router<Stack<MapResponseLayer<Explain>, Identity>>,
    accept: impl Fn() -> S,
    (begins, ends): (CancellationToken, CancellationToken),
) -> Served
where
    S: Stream<Item = io::Result<Connection>>,
{
    let before = router.clone();
    let before = before.serve_with_incoming_shutdown(accept(), begins.cancelled());
    let after = async {
        begins.cancelled().await;
        router
            .serve_with_incoming_shutdown(accept(), ends.cancelled())
            .await
    };
    tokio::try_join!(before, after).map(drop)
}

/// What a service does. Each is a task: one that is busy keeps no other from its duty.
fn tasks(
    serve: impl Future<Output = Served> + Send + 'static,
    holds: Arc<Holds>,
    monitor: impl Future<Output = ()> + Send + 'static,
    readiness: impl Future<Output = ()> + Send + 'static,
) -> JoinSet<Served> {
    let mut tasks = JoinSet::new();
    tasks.spawn(serve);
    tasks.spawn(async {
        readiness.await;
        Ok(())
    });
    tasks.spawn(async move {
        holds.run().await;
        Ok(())
    });
    tasks.spawn(async {
        monitor.await;
        Ok(())
    });
    tasks
}

type Served = Result<(), tonic::transport::Error>;

async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| BindError { address, source })
}

/// Changes the answer of a call.
type Explain = fn(Response<Body>) -> Response<Body>;

/// All services.
fn router(
    server: Server,
    client: &Client,
    (locks, sessions, latches, admin): (Locks, Sessions, Latches, Admin),
    health: &HealthReporter,
    authentication: &Authentication,
) -> Router<Stack<MapResponseLayer<Explain>, Identity>> {
    let locks = LockServiceServer::new(locks).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let sessions = SessionServiceServer::new(sessions).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let counters = CounterServiceServer::new(Counters::new(client.clone()))
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
    let explain: Explain = too_long::answer;
    server
        .trace_fn(traces::of_call)
        .layer(MapResponseLayer::new(explain))
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .add_service(InterceptedService::new(locks, authentication.clone()))
        .add_service(InterceptedService::new(sessions, authentication.clone()))
        .add_service(InterceptedService::new(counters, authentication.clone()))
        .add_service(InterceptedService::new(latches, authentication.clone()))
        .add_service(InterceptedService::new(admin, authentication.clone()))
        .add_service(InterceptedService::new(current, authentication.clone()))
        .add_service(InterceptedService::new(alpha, authentication.clone()))
        .add_service(checks)
}
