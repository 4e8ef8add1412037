//! A shard on ZooKeeper, with a hand inside.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    clock::{BootClock, Clock},
    name::KeyPrefix,
    random::Random,
    shard::{
        Shard,
        docs::{DocsShard, Store},
    },
    zookeeper::{ZookeeperOptions, zookeeper_shard, zookeeper_store},
};
use ringfence_test_support::{database::zookeeper::Zookeeper, eventually};
use zookeeper_client::Client;

use crate::{
    shared::Shared,
    slow::{Slow, StoppedClock},
};

/// One server, of all tests that run now. Each has a prefix of its own.
static SHARED: Shared<Zookeeper> = Shared::new();

/// Id of the topology that may arm it: as on Redis.
const TOPOLOGY: &str = crate::redis_fixture::TOPOLOGY;

/// The server that tests without faults share.
pub(crate) async fn shared() -> Arc<Zookeeper> {
    SHARED.get(async || Zookeeper::spawn(1).await).await
}

/// Znodes on an ensemble, and the shard in them.
pub(crate) struct OnZookeeper {
    /// `None`: the test has it.
    zookeeper: Option<Arc<Zookeeper>>,
    pub(crate) options: ZookeeperOptions,
    shard: Arc<DocsShard>,
    /// The shard by a way that takes long.
    slow: Slow,
}

impl OnZookeeper {
    /// No znodes yet, but those of a member of the topology.
    pub(crate) async fn new() -> Self {
        let fixture = Self::bare().await;
        fixture.join().await;
        fixture
    }

    /// As [`new`](Self::new), with a clock that stands still, of which the process has seen a tick.
    pub(crate) async fn stopped() -> Self {
        let fixture = Self::on(shared().await, Arc::new(StoppedClock::default()));
        fixture.join().await;
        fixture.elapse(Duration::from_millis(1)).await;
        fixture
    }

    /// As [`new`](Self::new), of processes that read `clock`.
    pub(crate) async fn by(clock: Arc<dyn Clock>) -> Self {
        let fixture = Self::on(shared().await, clock);
        fixture.join().await;
        fixture
    }

    /// No znodes.
    pub(crate) async fn bare() -> Self {
        Self::on(shared().await, Arc::new(BootClock))
    }

    fn on(zookeeper: Arc<Zookeeper>, clock: Arc<dyn Clock>) -> Self {
        let options = ZookeeperOptions {
            clock,
            ..options_at(&zookeeper.url())
        };
        Self {
            zookeeper: Some(zookeeper),
            ..Self::with(options)
        }
    }

    /// No znodes, on an ensemble of the test's own, with default times.
    pub(crate) fn at(url: &str) -> Self {
        Self::with(ZookeeperOptions::new(url.parse().unwrap()))
    }

    fn with(mut options: ZookeeperOptions) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let prefix = format!("shard_{}", NUMBER.fetch_add(1, Relaxed));
        options.prefix = KeyPrefix::new(&prefix).unwrap();
        Self {
            zookeeper: None,
            shard: shard_at(&options),
            options,
            slow: Slow::default(),
        }
    }

    /// Becomes a member of the topology.
    pub(crate) async fn join(&self) {
        let joins = async || self.shard.join(TOPOLOGY, "home").await.is_ok();
        eventually("it joins", joins).await;
    }

    /// The shard as another process sees it.
    pub(crate) fn process(&self) -> Arc<dyn Shard> {
        shard_at(&self.options)
    }

    /// The same, of a process that reads another clock.
    pub(crate) fn process_by(&self, clock: Arc<dyn Clock>) -> Arc<dyn Shard> {
        shard_at(&ZookeeperOptions {
            clock,
            ..self.options.clone()
        })
    }

    /// Its documents, as a process sees them that knows the server at `port`.
    pub(crate) fn store_at(&self, port: u16) -> Arc<dyn Store> {
        let options = ZookeeperOptions {
            prefix: self.options.prefix.clone(),
            ..options_at(&format!("zookeeper://127.0.0.1:{port}"))
        };
        zookeeper_store(options, Arc::new(Random::from_os()))
    }

    pub(crate) fn zookeeper(&self) -> &Zookeeper {
        self.zookeeper.as_ref().expect("it is the shared one")
    }

    /// A hand inside.
    pub(crate) async fn hand(&self) -> Client {
        Client::connect(&self.zookeeper().hosts()).await.unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        format!("/{}/{name}", self.options.prefix.as_str())
    }

    async fn get(&self, name: &str) -> String {
        let got = self.hand().await.get_data(&self.path(name)).await;
        String::from_utf8(got.unwrap().0).unwrap()
    }

    async fn number(&self, name: &str) -> u64 {
        self.get(name).await.parse().unwrap()
    }

    async fn put(&self, name: &str, number: u64) {
        let (hand, text) = (self.hand().await, format!("{number:020}"));
        let put = hand.set_data(&self.path(name), text.as_bytes(), None).await;
        put.unwrap();
    }

    /// Begins another life, as a runbook does.
    pub(crate) async fn end_life(&self) {
        let (hand, life) = (self.hand().await, self.get("life").await);
        for name in [format!("life/{life}"), "life".into()] {
            hand.delete(&self.path(&name), None).await.unwrap();
        }
    }
}

fn options_at(url: &str) -> ZookeeperOptions {
    ZookeeperOptions {
        // Of many tests at a time.
        response_timeout: Duration::from_secs(10),
        patience: Duration::from_secs(20),
        ..ZookeeperOptions::new(url.parse().unwrap())
    }
}

pub(crate) fn shard_at(options: &ZookeeperOptions) -> Arc<DocsShard> {
    let random = Arc::new(Random::from_os());
    Arc::new(zookeeper_shard(options.clone(), random))
}

#[async_trait]
impl Fixture for OnZookeeper {
    fn shard(&self) -> Arc<dyn Shard> {
        self.slow.or(self.shard.clone())
    }

    fn topology(&self) -> String {
        TOPOLOGY.into()
    }

    async fn elapse(&self, length: Duration) {
        let now = self.number("clock").await;
        self.put("clock", now + length.as_millis() as u64).await;
    }

    /// An end counts from the latest that the shard's clock may show, and the process rounds that up.
    fn late(&self) -> Duration {
        Duration::from_millis(1)
    }

    async fn slow_down(&self) {
        let at = |port| -> Arc<dyn Shard> {
            shard_at(&ZookeeperOptions {
                prefix: self.options.prefix.clone(),
                clock: self.options.clock.clone(),
                ..options_at(&format!("zookeeper://127.0.0.1:{port}"))
            })
        };
        self.slow.down(self.zookeeper().port(), at).await;
    }

    async fn turn(&self) {
        tokio::task::yield_now().await;
    }

    async fn set_counter(&self, counter: u64) {
        let epoch = self.number("tokens").await >> 35;
        self.put("tokens", epoch << 35 | counter).await;
    }

    async fn set_clock_back(&self, length: Duration) {
        let now = self.number("clock").await;
        self.put("clock", now - length.as_millis() as u64).await;
    }

    async fn copy(&self) -> Option<String> {
        let head = self.get("documents/head").await;
        let content = head.splitn(3, ' ').nth(2)?;
        let head: serde_json::Value = serde_json::from_str(content).unwrap();
        let current = head["life"] == *self.get("life").await;
        let copy = current.then(|| head["copy"][2].as_str())?;
        copy.map(str::to_owned)
    }

    /// The documents stay.
    async fn restart(&self) {
        self.end_life().await;
    }
}
