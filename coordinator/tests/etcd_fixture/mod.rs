//! A shard on etcd, with a hand inside.

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
    etcd::{EtcdOptions, etcd_shard},
    name::KeyPrefix,
    random::Random,
    shard::{Shard, docs::DocsShard},
};
use ringfence_test_support::{database::etcd::Etcd, eventually};

use crate::{
    shared::Shared,
    slow::{Slow, StoppedClock},
};

/// One node, of all tests that run now. Each has a prefix of its own.
static SHARED: Shared<Etcd> = Shared::new();

/// Id of the topology that may arm it: as on Redis.
const TOPOLOGY: &str = crate::redis_fixture::TOPOLOGY;

/// The node that tests without faults share.
pub(crate) async fn shared() -> Arc<Etcd> {
    SHARED.get(async || Etcd::spawn(1).await).await
}

/// Keys on a cluster, and the shard in them.
pub(crate) struct OnEtcd {
    /// `None`: the test has it.
    etcd: Option<Arc<Etcd>>,
    pub(crate) options: EtcdOptions,
    shard: Arc<DocsShard>,
    /// The shard by a way that takes long.
    slow: Slow,
}

impl OnEtcd {
    /// No keys yet, but those of a member of the topology.
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

    /// No keys.
    pub(crate) async fn bare() -> Self {
        Self::on(shared().await, Arc::new(BootClock))
    }

    fn on(etcd: Arc<Etcd>, clock: Arc<dyn Clock>) -> Self {
        let options = EtcdOptions {
            clock,
            ..options_at(&etcd.url())
        };
        Self {
            etcd: Some(etcd),
            ..Self::with(options)
        }
    }

    /// No keys, on a cluster of the test's own, with default times.
    pub(crate) fn at(url: &str) -> Self {
        Self::with(EtcdOptions::new(url.parse().unwrap()))
    }

    fn with(mut options: EtcdOptions) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let prefix = format!("shard_{}", NUMBER.fetch_add(1, Relaxed));
        options.prefix = KeyPrefix::new(&prefix).unwrap();
        Self {
            etcd: None,
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
        shard_at(&EtcdOptions {
            clock,
            ..self.options.clone()
        })
    }

    /// The same, of a process that knows only the nodes at `url`.
    pub(crate) fn process_at(&self, url: &str) -> Arc<dyn Shard> {
        let address = url.parse().unwrap();
        shard_at(&EtcdOptions {
            address,
            ..self.options.clone()
        })
    }

    fn etcd(&self) -> &Etcd {
        self.etcd.as_ref().expect("it is the shared one")
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.options.prefix.as_str())
    }

    fn get(&self, name: &str) -> String {
        let got = self
            .etcd()
            .ctl(&["get", &self.key(name), "--print-value-only"]);
        got.trim_end().to_owned()
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap()
    }

    fn put(&self, name: &str, number: u64) {
        let number = format!("{number:020}");
        self.etcd().ctl(&["put", &self.key(name), &number]);
    }

    /// Begins another life, as a runbook does.
    pub(crate) fn end_life(&self) {
        self.etcd().ctl(&["del", &self.key("life")]);
    }
}

fn options_at(url: &str) -> EtcdOptions {
    EtcdOptions {
        // Of many tests at a time.
        response_timeout: Duration::from_secs(10),
        patience: Duration::from_secs(20),
        ..EtcdOptions::new(url.parse().unwrap())
    }
}

fn shard_at(options: &EtcdOptions) -> Arc<DocsShard> {
    let random = Arc::new(Random::from_os());
    Arc::new(etcd_shard(options.clone(), random))
}

#[async_trait]
impl Fixture for OnEtcd {
    fn shard(&self) -> Arc<dyn Shard> {
        self.slow.or(self.shard.clone())
    }

    fn topology(&self) -> String {
        TOPOLOGY.into()
    }

    async fn elapse(&self, length: Duration) {
        self.put("clock", self.number("clock") + length.as_millis() as u64);
    }

    /// An end counts from the latest that the shard's clock may show, and the process rounds that up.
    fn late(&self) -> Duration {
        Duration::from_millis(1)
    }

    async fn slow_down(&self) {
        let at = |port| -> Arc<dyn Shard> {
            shard_at(&EtcdOptions {
                prefix: self.options.prefix.clone(),
                clock: self.options.clock.clone(),
                ..options_at(&format!("etcd://127.0.0.1:{port}"))
            })
        };
        self.slow.down(self.etcd().port(), at).await;
    }

    async fn turn(&self) {
        tokio::task::yield_now().await;
    }

    async fn set_counter(&self, counter: u64) {
        let epoch = self.number("tokens") >> 35;
        self.put("tokens", epoch << 35 | counter);
    }

    async fn set_clock_back(&self, length: Duration) {
        self.put("clock", self.number("clock") - length.as_millis() as u64);
    }

    async fn copy(&self) -> Option<String> {
        let head = self.get("documents/head");
        let content = head.splitn(3, ' ').nth(2)?;
        let head: serde_json::Value = serde_json::from_str(content).unwrap();
        let current = head["life"] == *self.get("life");
        let copy = current.then(|| head["copy"][2].as_str())?;
        copy.map(str::to_owned)
    }

    /// The documents stay.
    async fn restart(&self) {
        self.end_life();
    }
}
