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
        postgres::{PostgresAddress, PostgresOptions, Tables, create, postgres_shard, schema},
    },
};
use ringfence_test_support::{
    Relay,
    database::{
        pgbouncer::PgBouncer,
        postgresql::{Connection, PostgreSql},
    },
    eventually,
};

use crate::{shared::Shared, slow::Slow};

/// The server of all tests that run now. Each has a schema of its own.
static SHARED: Shared<PostgreSql> = Shared::new();

/// Id of the topology that may arm it: as on Redis.
const TOPOLOGY: &str = crate::redis_fixture::TOPOLOGY;

/// What tests need not wait for: a server that loses its machine's memory.
const SETTINGS: [(&str, &str); 2] = [("fsync", "off"), ("max_connections", "300")];

/// Connections that a pooler has to the server: fewer than it has clients.
const POOLED: usize = 2;

/// More than the bytes of a start-up packet.
const START_UP: usize = 128;

/// A schema on a server, and the shard in it.
pub(crate) struct Postgres {
    pub(crate) server: Arc<PostgreSql>,
    /// What is between the shard and the server.
    pub(crate) pooler: Option<PgBouncer>,
    pub(crate) options: PostgresOptions,
    shard: Arc<DocsShard>,
    /// What the shard's clock shows once it stands still.
    clock_ms: AtomicI64,
    /// The shard by a way that takes long.
    slow: Slow,
}

impl Postgres {
    /// An empty schema, of a member of the topology.
    pub(crate) async fn new() -> Self {
        Self::on(Self::shared().await, Tables::Logged).await
    }

    /// An empty schema, of a member of the topology, whose clock stands still.
    pub(crate) async fn stopped() -> Self {
        let fixture = Self::new().await;
        fixture.move_clock(0).await;
        fixture
    }

    /// An empty schema, of a member of none.
    pub(crate) async fn bare() -> Self {
        Self::bare_on(Self::shared().await, Tables::Logged).await
    }

    /// The same through a pooler that has `connections` to the server.
    pub(crate) async fn pooled(mut self, connections: usize) -> Self {
        let pooler = PgBouncer::spawn(&self.server, "postgres", connections).await;
        let (port, direct) = (pooler.port(), self.server.port());
        self.pooler = Some(pooler);
        self.options.address = address("postgres", port, Some(direct));
        self.shard = shard_at(&self.options);
        self
    }

    /// As [`stopped`](Self::stopped), through a pooler.
    pub(crate) async fn stopped_and_pooled() -> Self {
        Self::stopped().await.pooled(POOLED).await
    }

    /// As [`bare`](Self::bare), through a pooler.
    pub(crate) async fn bare_and_pooled() -> Self {
        Self::bare().await.pooled(POOLED).await
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

    pub(crate) async fn bare_on(server: Arc<PostgreSql>, tables: Tables) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let prefix = format!("test_{}", NUMBER.fetch_add(1, Relaxed));
        let mut options = PostgresOptions::new(address("postgres", server.port(), None));
        options.prefix = KeyPrefix::new(&prefix).unwrap();
        // Of many tests at a time.
        options.connect_timeout = Duration::from_secs(10);
        options.response_timeout = Duration::from_secs(10);
        create(&options, tables).await.unwrap();
        Self {
            server,
            pooler: None,
            shard: shard_at(&options),
            options,
            clock_ms: AtomicI64::new(UNIX_EPOCH.elapsed().unwrap().as_millis() as i64),
            slow: Slow::default(),
        }
    }

    /// Makes the shard a member of the topology, as it was.
    pub(crate) async fn join(&self) {
        self.shard.join(TOPOLOGY, "home").await.unwrap();
    }

    /// The shard, as the options say by now.
    pub(crate) fn another(&self) -> Arc<dyn Shard> {
        shard_at(&self.options)
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

    /// Ends the server's connections of this shard.
    pub(crate) async fn end_backends(&self) {
        let raw = self.raw().await;
        let name = format!("ringfence {}", self.options.prefix);
        let end = "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        let ended = raw.query(end, &[&name]).await.unwrap();
        let ended: Vec<i32> = ended.iter().map(|row| row.get(0)).collect();
        // A pooler gives no request to one that has ended, but to one that is about to end.
        eventually("the connections have ended", async || {
            let left = "SELECT FROM pg_stat_activity WHERE pid = ANY ($1)";
            raw.query(left, &[&ended]).await.unwrap().is_empty()
        })
        .await;
    }

    async fn move_clock(&self, by_ms: i64) {
        let now_ms = self.clock_ms.fetch_add(by_ms, Relaxed) + by_ms;
        self.run(&format!(
            "CREATE OR REPLACE FUNCTION {{}}.clock_ms_1(at timestamptz) RETURNS bigint LANGUAGE sql STABLE AS
             'SELECT {now_ms}::bigint'"
        ))
        .await;
    }
}

/// The address at `port`; or of a pooler there, whose server is at `direct`.
pub(crate) fn address(user: &str, port: u16, direct: Option<u16>) -> PostgresAddress {
    let mut url = format!("postgres://{user}@127.0.0.1:{port}/postgres");
    if let Some(direct) = direct {
        url = format!("{url}?direct=127.0.0.1:{direct}");
    }
    url.parse().unwrap()
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

    async fn elapse(&self, length: Duration) {
        self.move_clock(length.as_millis() as i64).await;
    }

    /// An end counts from the latest that the server's clock may show since a connection last saw it.
    fn late(&self) -> Duration {
        Duration::from_millis(252)
    }

    async fn slow_down(&self) {
        let (server, pooler) = (
            self.server.port(),
            self.pooler.as_ref().map(PgBouncer::port),
        );
        let at = |port| -> Arc<dyn Shard> {
            let mut options = self.options.clone();
            options.address = address("postgres", port, pooler.map(|_| server));
            shard_at(&options)
        };
        match pooler {
            // It takes a start-up packet whole, and not in parts.
            Some(pooler) => self
                .slow
                .down_by(Relay::in_pieces(pooler, START_UP).await, at),
            None => self.slow.down(server, at).await,
        }
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

    async fn set_clock_back(&self, length: Duration) {
        self.move_clock(-(length.as_millis() as i64)).await;
    }

    async fn copy(&self) -> Option<String> {
        let schema = self.options.prefix.as_str();
        let copy = format!(
            "SELECT content::json #>> '{{copy,2}}' FROM {schema}.documents
             WHERE name = 'head' AND content::json ->> 'life' = {schema}.present_life_1()"
        );
        let rows = self.raw().await.query(&copy, &[]).await.unwrap();
        rows.first().and_then(|row| row.get(0))
    }

    /// As a promoted standby, which has all records.
    async fn restart(&self) {
        self.run("UPDATE {}.life SET id = gen_random_uuid()").await;
        self.end_backends().await;
    }
}
