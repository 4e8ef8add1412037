//! A shard on MariaDB, with a hand inside.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, UNIX_EPOCH},
};

use async_trait::async_trait;
use mysql_async::prelude::Queryable as _;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    limits::COUNTER_MAX,
    name::KeyPrefix,
    random::Random,
    shard::{
        Shard,
        docs::DocsShard,
        mysql::{MysqlOptions, create, mysql_shard, schema},
    },
};
use ringfence_test_support::database::mariadb::MariaDb;

use crate::{shared::Shared, slow::Slow};

/// The server of all tests that run now. Each has tables of its own.
static SHARED: Shared<MariaDb> = Shared::new();

/// What tests need not wait for: a server that loses its machine's memory.
const SETTINGS: [(&str, &str); 3] = [
    ("innodb_flush_method", "nosync"),
    ("sync_frm", "0"),
    ("max_connections", "500"),
];

/// Id of the topology that may arm it: as on Redis.
const TOPOLOGY: &str = crate::redis_fixture::TOPOLOGY;

/// Tables on a server, and the shard in them.
pub(crate) struct Maria {
    pub(crate) server: Arc<MariaDb>,
    pub(crate) options: MysqlOptions,
    shard: Arc<DocsShard>,
    /// What the shard's clock shows once it stands still.
    clock_ms: AtomicI64,
    /// The shard by a way that takes long.
    slow: Slow,
}

impl Maria {
    /// Empty tables, of a member of the topology.
    pub(crate) async fn new() -> Self {
        Self::on(Self::shared().await).await
    }

    /// Empty tables, of a member of the topology, whose clock stands still.
    pub(crate) async fn stopped() -> Self {
        let fixture = Self::new().await;
        fixture.move_clock(0).await;
        fixture
    }

    /// Empty tables, of a member of none.
    pub(crate) async fn bare() -> Self {
        Self::bare_on(Self::shared().await).await
    }

    async fn shared() -> Arc<MariaDb> {
        SHARED
            .get(async || MariaDb::spawn_with(&SETTINGS).await)
            .await
    }

    /// Empty tables on `server`, of a member of the topology.
    pub(crate) async fn on(server: Arc<MariaDb>) -> Self {
        let fixture = Self::bare_on(server).await;
        fixture.shard.join(TOPOLOGY, "home").await.unwrap();
        fixture
    }

    /// Tables and procedures, in which `instead` is in the place of `line`. The server's own client makes them.
    pub(crate) async fn mutant(line: &str, instead: &str) -> Self {
        let mutant = Self::bare().await;
        let prefix = &mutant.options.prefix;
        let [line, instead] = [line, instead].map(|text| {
            let text = text.replace("{p}", prefix.as_str());
            text.replace("{counter_max}", &COUNTER_MAX.to_string())
        });
        let whole = schema(prefix);
        assert_eq!(whole.matches(&line).count(), 1, "{line}");
        mutant.server.run(&whole.replace(&line, &instead)).await;
        mutant
    }

    async fn bare_on(server: Arc<MariaDb>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let prefix = format!("test_{}", NUMBER.fetch_add(1, Relaxed));
        let mut options = options_at(server.port());
        options.prefix = KeyPrefix::new(&prefix).unwrap();
        create(&options).await.unwrap();
        Self {
            server,
            shard: shard_at(&options),
            options,
            clock_ms: AtomicI64::new(UNIX_EPOCH.elapsed().unwrap().as_millis() as i64),
            slow: Slow::default(),
        }
    }

    /// Runs a statement, in which `{}` is the prefix.
    pub(crate) async fn run(&self, statement: &str) {
        let statement = statement.replace("{}", self.options.prefix.as_str());
        let mut raw = self.server.connect().await;
        raw.query_drop(statement).await.unwrap();
    }

    async fn move_clock(&self, by_ms: i64) {
        let now_ms = self.clock_ms.fetch_add(by_ms, Relaxed) + by_ms;
        self.run(&format!(
            "CREATE OR REPLACE FUNCTION `{{}}_clock_ms_1`(at datetime(3)) RETURNS bigint NO SQL SQL SECURITY INVOKER
             RETURN {now_ms}"
        ))
        .await;
    }
}

fn options_at(port: u16) -> MysqlOptions {
    let url = format!("mysql://root@127.0.0.1:{port}/test");
    let mut options = MysqlOptions::new(url.parse().unwrap());
    // Of many tests at a time.
    options.connect_timeout = Duration::from_secs(10);
    options.response_timeout = Duration::from_secs(10);
    options
}

fn shard_at(options: &MysqlOptions) -> Arc<DocsShard> {
    let random = Arc::new(Random::from_os());
    Arc::new(mysql_shard(options.clone(), random))
}

#[async_trait]
impl Fixture for Maria {
    fn shard(&self) -> Arc<dyn Shard> {
        self.slow.or(self.shard.clone())
    }

    fn topology(&self) -> String {
        TOPOLOGY.into()
    }

    async fn elapse(&self, length: Duration) {
        self.move_clock(length.as_millis() as i64).await;
    }

    /// An end counts from the latest that the server's clock may show since a connection last saw it.
    fn late(&self) -> Duration {
        Duration::from_millis(252)
    }

    async fn slow_down(&self) {
        let at = |port| -> Arc<dyn Shard> {
            let mut options = options_at(port);
            options.prefix = self.options.prefix.clone();
            shard_at(&options)
        };
        self.slow.down(self.server.port(), at).await;
    }

    async fn turn(&self) {
        tokio::task::yield_now().await;
    }

    async fn set_counter(&self, counter: u64) {
        self.run(&format!(
            "UPDATE `{{}}_tokens` SET last = (last >> 35 << 35) | {counter}"
        ))
        .await;
    }

    async fn set_clock_back(&self, length: Duration) {
        self.move_clock(-(length.as_millis() as i64)).await;
    }

    async fn copy(&self) -> Option<String> {
        let copy = "SELECT json_value(content, '$.copy[2]') FROM `{}_documents`
             WHERE name = 'head' AND json_value(content, '$.life') = (SELECT concat(id, `{}_server_1`()) FROM `{}_life`)";
        let copy = copy.replace("{}", self.options.prefix.as_str());
        let mut raw = self.server.connect().await;
        let found: Option<Option<String>> = raw.query_first(copy).await.unwrap();
        found.flatten()
    }

    /// As a promoted replica, which has all records.
    async fn restart(&self) {
        self.run("UPDATE `{}_life` SET id = uuid()").await;
    }
}
