//! A coordinator in this process, on Redis servers of its own.

use std::{
    net::SocketAddr,
    ops::{Deref, DerefMut},
    time::Duration,
};

use ringfence_api::v1::{
    AcquireRequest, AcquireResponse, ReleaseRequest, RenewRequest, RenewResponse,
    counter_service_client::CounterServiceClient, lock_service_client::LockServiceClient,
};
use ringfence_client::{Builder, Client};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_server::{Config, Service};
use ringfence_test_support::{Servers, end_recovery};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    sync::oneshot,
    task::JoinSet,
};
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

/// A coordinator. It ends at once when this value is dropped.
pub(crate) struct Coordinator {
    pub(crate) url: String,
    /// The address of its numbers.
    pub(crate) monitor: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    service: JoinSet<()>,
}

impl Coordinator {
    /// A coordinator on `servers`, with settings changed by `set_up`.
    async fn start(servers: &Servers, set_up: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            monitor: Some("127.0.0.1:0".parse().unwrap()),
            ..Config::default()
        };
        set_up(&mut config);
        // As `ringfence serve` has it: callers have their leases alone.
        let client = servers.builder().handoff(0, Duration::ZERO);
        let client = client.build().await.unwrap();
        let service = Service::bind(&config, client).await.unwrap();
        let url = format!("http://{}", service.address().unwrap());
        let monitor = service.monitor_address().unwrap().unwrap();
        let (stop, stopped) = oneshot::channel();
        let mut running = JoinSet::new();
        running.spawn(async {
            let stopped = async { drop(stopped.await) };
            service.run(stopped).await.unwrap();
        });
        Self {
            url,
            monitor,
            stop: Some(stop),
            service: running,
        }
    }

    /// A connection of its own.
    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(self.url.clone()).unwrap();
        endpoint.connect().await.unwrap()
    }

    /// A connection of its own, opened with its first call.
    pub(crate) fn lazy_channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(self.url.clone()).unwrap();
        endpoint.connect_lazy()
    }

    pub(crate) async fn locks(&self) -> LockServiceClient<Channel> {
        LockServiceClient::new(self.channel().await)
    }

    pub(crate) async fn counters(&self) -> CounterServiceClient<Channel> {
        CounterServiceClient::new(self.channel().await)
    }

    /// Tells the service to stop.
    pub(crate) fn stop(&mut self) {
        let stop = self.stop.take().unwrap();
        stop.send(()).unwrap();
    }

    /// Waits until the service has ended.
    pub(crate) async fn ended(&mut self) {
        self.service.join_next().await.unwrap().unwrap();
    }
}

pub(crate) struct Scene {
    /// They end with this value.
    servers: Servers,
    /// Another process: it uses the servers without the coordinator.
    pub(crate) other: Client,
    coordinator: Coordinator,
}

impl Deref for Scene {
    type Target = Coordinator;

    fn deref(&self) -> &Coordinator {
        &self.coordinator
    }
}

impl DerefMut for Scene {
    fn deref_mut(&mut self) -> &mut Coordinator {
        &mut self.coordinator
    }
}

impl Scene {
    pub(crate) async fn set() -> Self {
        Self::set_with(|_| {}).await
    }

    /// A coordinator with settings changed by `set_up`.
    pub(crate) async fn set_with(set_up: impl FnOnce(&mut Config)) -> Self {
        let servers = Servers::spawn(2).await;
        let coordinator = Coordinator::start(&servers, set_up).await;
        Self {
            other: servers.client().await,
            servers,
            coordinator,
        }
    }

    /// A coordinator on three servers, where locks of the namespace `ledger` have three replicas, and no lease is longer
    /// than `longest`.
    pub(crate) async fn replicated(longest: Duration, set_up: impl FnOnce(&mut Config)) -> Self {
        let found = |builder: Builder| builder.max_lease(longest).replicas("ledger", 3);
        Self::founded(found, set_up).await
    }

    /// A coordinator on three servers, in the topology that `found` describes.
    pub(crate) async fn founded(
        found: impl FnOnce(Builder) -> Builder,
        set_up: impl FnOnce(&mut Config),
    ) -> Self {
        let servers = Servers::spawn(3).await;
        let founder = found(servers.builder());
        Self {
            other: founder.build().await.unwrap(),
            coordinator: Coordinator::start(&servers, set_up).await,
            servers,
        }
    }

    /// One of its servers.
    pub(crate) fn server(&mut self, index: usize) -> &mut RedisServer {
        &mut self.servers.servers[index]
    }

    /// Waits until one of its servers recovers, and ends that.
    pub(crate) async fn end_recovery(&self, index: usize) {
        end_recovery(&self.servers.servers[index].url()).await;
    }

    /// The host and port of one of its servers.
    pub(crate) fn address(&self, index: usize) -> String {
        format!("127.0.0.1:{}", self.servers.servers[index].port())
    }

    /// Removes the records of all locks from its servers, without a word to their holders.
    pub(crate) async fn remove_records(&self) {
        for index in 0..self.servers.servers.len() {
            let records: Vec<String> = self.servers.ask(index, &["KEYS", "ringfence:{*"]).await;
            for record in records {
                let _: u64 = self.servers.ask(index, &["DEL", &record]).await;
            }
        }
    }

    /// A client of the servers, to be built.
    pub(crate) fn builder(&self) -> Builder {
        self.servers.builder()
    }

    /// Another coordinator on the same servers.
    pub(crate) async fn another(&self, set_up: impl FnOnce(&mut Config)) -> Coordinator {
        Coordinator::start(&self.servers, set_up).await
    }

    /// Kills its servers.
    pub(crate) fn kill_servers(&mut self) {
        for server in &mut self.servers.servers {
            server.kill();
        }
    }

    /// The number of script calls that the servers have served.
    pub(crate) async fn script_calls(&self) -> u64 {
        let mut calls = 0;
        for index in 0..self.servers.servers.len() {
            let stats: String = self.servers.ask(index, &["INFO", "commandstats"]).await;
            let fcall = stats.lines().find_map(|line| {
                let (count, _) = line.strip_prefix("cmdstat_fcall:calls=")?.split_once(',')?;
                count.parse::<u64>().ok()
            });
            calls += fcall.unwrap_or(0);
        }
        calls
    }

    /// `calls` send no command to a shard.
    pub(crate) async fn reaches_no_shard(&self, calls: impl AsyncFn()) {
        let mut monitors = Vec::new();
        for server in &self.servers.servers {
            monitors.push(Monitor::of(server.port()).await);
        }
        calls().await;
        for (index, monitor) in monitors.into_iter().enumerate() {
            let _: String = self.servers.ask(index, &["ECHO", MARK]).await;
            let commands = monitor.until_mark().await;
            assert!(commands.is_empty(), "{commands:#?}");
        }
    }

    /// Whether another process finds the lock free, with no waiter.
    pub(crate) async fn is_free(&self, key: &str) -> bool {
        let found = self.other.lock(key).inspect().await.unwrap();
        found.holder.is_none() && found.waiters.is_empty()
    }

    /// The number of waiters for the lock at its shard.
    pub(crate) async fn waiters(&self, key: &str) -> usize {
        self.other.lock(key).inspect().await.unwrap().waiters.len()
    }
}

/// The end of what a monitor counts.
const MARK: &str = "the calls have ended";

/// The commands by which a process connects to a shard, follows the topology, and has a shard armed. No caller causes them.
const LOOK_AFTER: [&str; 10] = [
    r#"] "HELLO""#,
    r#"] "CLIENT""#,
    r#"] "INFO""#,
    r#"] "SUBSCRIBE""#,
    r#"] "PING""#,
    r#""FCALL" "ringfence_rights_"#,
    r#""FCALL" "ringfence_read_"#,
    r#""FCALL" "ringfence_arm_"#,
    r#""FCALL" "ringfence_armed_"#,
    r#""FCALL" "ringfence_mark_quiet_"#,
];

/// Sees every command that a server gets.
struct Monitor(Lines<BufReader<TcpStream>>);

impl Monitor {
    async fn of(port: u16) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(b"MONITOR\r\n").await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "+OK");
        Self(lines)
    }

    /// The commands up to [`MARK`], without those by which processes look after their shards.
    async fn until_mark(mut self) -> Vec<String> {
        let mut commands = Vec::new();
        loop {
            let line = self.0.next_line().await.unwrap().unwrap();
            if line.contains(MARK) {
                return commands;
            }
            let is_of_script = line.contains(" lua] ");
            let looks_after = LOOK_AFTER.iter().any(|function| line.contains(function));
            if !is_of_script && !looks_after {
                commands.push(line);
            }
        }
    }
}

/// An acquisition of `key` that waits for `wait_ms`, or until its deadline.
pub(crate) fn ask(key: &str, lease_ms: u64, wait_ms: Option<u64>) -> AcquireRequest {
    let length = |ms| Duration::from_millis(ms).try_into().unwrap();
    AcquireRequest {
        key: key.into(),
        lease: Some(length(lease_ms)),
        wait: wait_ms.map(length),
        ..AcquireRequest::default()
    }
}

pub(crate) async fn acquire(
    locks: &mut LockServiceClient<Channel>,
    ask: AcquireRequest,
) -> Result<AcquireResponse, Status> {
    Ok(locks.acquire(ask).await?.into_inner())
}

pub(crate) async fn renew(
    locks: &mut LockServiceClient<Channel>,
    handle: &[u8],
) -> Result<RenewResponse, Status> {
    let handle = handle.to_vec();
    Ok(locks.renew(RenewRequest { handle }).await?.into_inner())
}

pub(crate) async fn release(
    locks: &mut LockServiceClient<Channel>,
    handle: &[u8],
) -> Result<i32, Status> {
    let handle = handle.to_vec();
    Ok(locks
        .release(ReleaseRequest { handle })
        .await?
        .into_inner()
        .outcome)
}
