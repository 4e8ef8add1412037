//! A shard on PostgreSQL, with a hand inside.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, UNIX_EPOCH},
};

use async_trait::async_trait;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    limits::COUNTER_MAX,
    name::KeyPrefix,
    random::Random,
    shard::{
        Shard,
        docs::DocsShard,
        postgres::{PostgresOptions, Tables, create, postgres_shard, schema},
    },
};
use ringfence_test_support::database::postgresql::{Connection, PostgreSql};

use crate::{shared::Shared, slow::Slow};

/// The server of all tests that run now. Each has a schema of its own.
static SHARED: Shared<PostgreSql> = Shared::new();

/// So much slower is a shard's clock than the machine's: on a busy machine, too, a request comes before a lease ends.
const SLOWNESS: u32 = 16;

/// Id of the topology that may arm it: as on Redis.
const TOPOLOGY: &str = crate::redis_fixture::TOPOLOGY;

/// What tests need not wait for: a server that loses its machine's memory.
const SETTINGS: [(&str, &str); 2] = [("fsync", "off"), ("max_connections", "300")];

/// A schema on a server, and the shard in it.
pub(crate) struct Postgres {
    pub(crate) server: Arc<PostgreSql>,
    pub(crate) options: PostgresOptions,
    shard: Arc<DocsShard>,
    /// From here on the shard's clock is slow.
    start_ms: u128,
    /// How far it is ahead besides.
    ahead_ms: AtomicI64,
    /// The shard by a way that takes long.
    slow: Slow,
}

impl Postgres {
    /// An empty schema, of a member of the topology.
    pub(crate) async fn new() -> Self {
        Self::on(Self::shared().await, Tables::Logged).await
    }

    /// An empty schema, of a member of the topology, with a slow clock.
    pub(crate) async fn slow() -> Self {
        let fixture = Self::new().await;
        fixture.move_clock(0).await;
        fixture
    }

    /// An empty schema, of a member of none.
    pub(crate) async fn bare() -> Self {
        Self::bare_on(Self::shared().await, Tables::Logged).await
    }

    async fn shared() -> Arc<PostgreSql> {
        SHARED
            .get(async || PostgreSql::spawn_with(&SETTINGS).await)
            .await
    }

    /// An empty schema on `server`, of a member of the topology.
    pub(crate) async fn on(server: Arc<PostgreSql>, tables: Tables) -> Self {
        let fixture = Self::bare_on(server, tables).await;
        fixture.join().await;
        fixture
    }

    /// Tables and functions, in which `instead` is in the place of `line`.
    pub(crate) async fn mutant(line: &str, instead: &str, tables: Tables) -> Self {
        let mutant = Self::bare_on(Self::shared().await, tables).await;
        let [line, instead] = [line, instead].map(|text| {
            let schema = mutant.options.prefix.as_str();
            let text = text.replace("'{schema}'", &format!("'{schema}'"));
            let text = text.replace("{schema}", &format!("\"{schema}\""));
            text.replace("{counter_max}", &COUNTER_MAX.to_string())
        });
        let whole = schema(&mutant.options.prefix, tables);
        assert_eq!(whole.matches(&line).count(), 1, "{line}");
        let raw = mutant.raw().await;
        raw.batch_execute(&whole.replace(&line, &instead))
            .await
            .unwrap();
        mutant
    }

    async fn bare_on(server: Arc<PostgreSql>, tables: Tables) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let prefix = format!("test_{}", NUMBER.fetch_add(1, Relaxed));
        let mut options = options_at(server.port());
        options.prefix = KeyPrefix::new(&prefix).unwrap();
        create(&options, tables).await.unwrap();
        Self {
            server,
            shard: shard_at(&options),
            options,
            start_ms: UNIX_EPOCH.elapsed().unwrap().as_millis(),
            ahead_ms: AtomicI64::new(0),
            slow: Slow::default(),
        }
    }

    /// Makes the shard a member of the topology, as it was.
    pub(crate) async fn join(&self) {
        self.shard.join(TOPOLOGY, "home").await.unwrap();
    }

    /// A connection that asks nothing of anybody.
    pub(crate) async fn raw(&self) -> Connection {
        self.server.connect().await
    }

    /// Runs `statements`, in which `{}` is the schema.
    pub(crate) async fn run(&self, statements: &str) {
        let statements = statements.replace("{}", self.options.prefix.as_str());
        self.raw().await.batch_execute(&statements).await.unwrap();
    }

    async fn move_clock(&self, by_ms: i64) {
        let start = self.start_ms;
        let ahead_ms = self.ahead_ms.fetch_add(by_ms, Relaxed) + by_ms;
        self.run(&format!(
            "CREATE OR REPLACE FUNCTION {{}}.clock_ms(at timestamptz) RETURNS bigint LANGUAGE sql STABLE AS
             'SELECT floor({start} + (extract(epoch FROM at) * 1000 - {start}) / {SLOWNESS})::bigint + {ahead_ms}'"
        ))
        .await;
    }
}

fn options_at(port: u16) -> PostgresOptions {
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
    let mut options = PostgresOptions::new(url.parse().unwrap());
    // Of many tests at a time.
    options.connect_timeout = Duration::from_secs(10);
    options.response_timeout = Duration::from_secs(10);
    options
}

fn shard_at(options: &PostgresOptions) -> Arc<DocsShard> {
    let random = Arc::new(Random::from_os());
    Arc::new(postgres_shard(options.clone(), random))
}

#[async_trait]
impl Fixture for Postgres {
    fn shard(&self) -> Arc<dyn Shard> {
        self.slow.or(self.shard.clone())
    }

    fn topology(&self) -> String {
        TOPOLOGY.into()
    }

    /// Instead of waiting, the shard's clock goes ahead.
    async fn elapse(&self, length: Duration) {
        self.move_clock(length.as_millis() as i64).await;
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
            "UPDATE {{}}.tokens SET last = (last >> 35 << 35) | {counter}"
        ))
        .await;
    }

    async fn set_timers_back(&self, length: Duration) {
        self.move_clock(-(length.as_millis() as i64)).await;
    }

    async fn copy(&self) -> Option<String> {
        let schema = self.options.prefix.as_str();
        let copy = format!(
            "SELECT content::json #>> '{{copy,2}}' FROM {schema}.documents
             WHERE name = 'head' AND content::json ->> 'life' = {schema}.present_life()"
        );
        let rows = self.raw().await.query(&copy, &[]).await.unwrap();
        rows.first().and_then(|row| row.get(0))
    }

    /// As a promoted standby, which has all records.
    async fn restart(&self) {
        self.run(
            "UPDATE {}.life SET id = gen_random_uuid();
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ringfence {}'",
        )
        .await;
    }
}
