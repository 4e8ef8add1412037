//! A shard on a server of its own, with a hand inside.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use redis::{AsyncConnectionConfig, aio::MultiplexedConnection};
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    ids::ClientId,
    shard::{
        Shard,
        redis::{RedisOptions, RedisShard},
    },
    spawn::RedisServer,
};
use ringfence_test_support::WallClock;
use tokio::sync::Mutex;

use crate::slow::Slow;

/// How long a busy machine may take for one answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Id of the topology that the server's pointer names.
pub(crate) const TOPOLOGY: &str = "00112233445566778899aabbccddeeff";

/// A server, and the shard on it.
pub(crate) struct Redis {
    server: Mutex<RedisServer>,
    client: redis::Client,
    clock: WallClock,
    /// How far that was put forward.
    ahead_ms: AtomicI64,
    /// Where the shard finds the server,
    port: u16,
    /// and how it says so.
    url: Box<dyn Fn(u16) -> String + Send + Sync>,
    shard: Arc<RedisShard>,
    /// The shard by a way that takes long.
    slow: Slow,
}

impl Redis {
    /// An empty server that belongs to [`TOPOLOGY`].
    pub(crate) async fn new() -> Self {
        Self::by(WallClock::default()).await
    }

    /// The same, whose clock stands still.
    pub(crate) async fn stopped() -> Self {
        Self::by(WallClock::stopped()).await
    }

    async fn by(clock: WallClock) -> Self {
        let server = clock.set_up(RedisServer::builder()).spawn().await.unwrap();
        let port = server.port();
        Self::at((server, clock), port, |port| {
            format!("redis://127.0.0.1:{port}")
        })
        .await
    }

    /// As [`new`](Self::new), on `server`, which the shard is to find on `port`, by what `url` makes
    /// of that.
    pub(crate) async fn at(
        (server, clock): (RedisServer, WallClock),
        port: u16,
        url: impl Fn(u16) -> String + Send + Sync + 'static,
    ) -> Self {
        let fixture = Self {
            client: redis::Client::open(server.url()).unwrap(),
            shard: shard_at(&url(port)),
            port,
            url: Box::new(url),
            slow: Slow::default(),
            clock,
            ahead_ms: AtomicI64::new(0),
            server: Mutex::new(server),
        };
        fixture.point().await;
        fixture
    }

    /// Lets the topology arm the server.
    pub(crate) async fn point(&self) {
        let mut raw = self.raw().await;
        let pointer = format!("{TOPOLOGY} redis://127.0.0.1");
        let command = redis::Cmd::set("ringfence:pointer", pointer);
        command.exec_async(&mut raw).await.unwrap();
    }

    /// A connection that asks nothing of anybody.
    pub(crate) async fn raw(&self) -> MultiplexedConnection {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let connected = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        connected.await.unwrap()
    }

    /// The shard by default times.
    pub(crate) fn impatient(&self) -> RedisShard {
        let url = (self.url)(self.port);
        RedisShard::new(RedisOptions::new(url.parse().unwrap(), ClientId(7)))
    }

    fn move_clock(&self, by_ms: i64) {
        let ahead_ms = self.ahead_ms.fetch_add(by_ms, Relaxed) + by_ms;
        self.clock.set_millis(ahead_ms);
    }

    /// The key called `name` of the only life that is armed.
    async fn armed_key(&self, name: &str) -> String {
        let all = redis::Cmd::keys(format!("ringfence:life:*:{name}"));
        let found: Vec<String> = all.query_async(&mut self.raw().await).await.unwrap();
        let [key] = &found[..] else {
            panic!("one life is armed: {found:?}")
        };
        key.clone()
    }
}

fn shard_at(url: &str) -> Arc<RedisShard> {
    let mut options = RedisOptions::new(url.parse().unwrap(), ClientId(7));
    options.connect_timeout = PATIENCE;
    options.response_timeout = PATIENCE;
    Arc::new(RedisShard::new(options))
}

#[async_trait]
impl Fixture for Redis {
    fn shard(&self) -> Arc<dyn Shard> {
        self.slow.or(self.shard.clone())
    }

    fn topology(&self) -> String {
        TOPOLOGY.into()
    }

    async fn elapse(&self, length: Duration) {
        self.move_clock(length.as_millis() as i64);
    }

    async fn slow_down(&self) {
        let at = |port| -> Arc<dyn Shard> { shard_at(&(self.url)(port)) };
        self.slow.down(self.port, at).await;
    }

    async fn turn(&self) {
        tokio::task::yield_now().await;
    }

    async fn set_counter(&self, counter: u64) {
        let set = redis::Cmd::set(self.armed_key("ctr").await, counter);
        set.exec_async(&mut self.raw().await).await.unwrap();
    }

    async fn set_clock_back(&self, length: Duration) {
        self.move_clock(-(length.as_millis() as i64));
    }

    async fn copy(&self) -> Option<String> {
        let mut raw = self.raw().await;
        let life = self.shard().connect_control(None).await.unwrap();
        let name = format!("ringfence:life:{}:copy", life.life());
        let held: Option<String> = redis::Cmd::get(name).query_async(&mut raw).await.unwrap();
        let text = |held: String| held.splitn(3, ' ').last().unwrap().to_owned();
        held.map(text)
    }

    async fn restart(&self) {
        redis::cmd("SAVE")
            .exec_async(&mut self.raw().await)
            .await
            .unwrap();
        self.server.lock().await.restart().await.unwrap();
    }
}
