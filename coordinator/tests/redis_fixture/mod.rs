//! A shard on a server of its own, with a hand inside.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    ids::ClientId,
    shard::{
        Shard,
        redis::{RedisOptions, RedisShard},
    },
    spawn::RedisServer,
};
use tokio::sync::Mutex;

use crate::slow::Slow;

/// Id of the topology that the server's pointer names.
pub(crate) const TOPOLOGY: &str = "00112233445566778899aabbccddeeff";

/// A server, and the shard on it.
pub(crate) struct Redis {
    server: Mutex<RedisServer>,
    client: redis::Client,
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
        let server = RedisServer::spawn().await.unwrap();
        let port = server.port();
        Self::at(server, port, |port| format!("redis://127.0.0.1:{port}")).await
    }

    /// As [`new`](Self::new), on `server`, which the shard is to find on `port`, by what `url` makes
    /// of that.
    pub(crate) async fn at(
        server: RedisServer,
        port: u16,
        url: impl Fn(u16) -> String + Send + Sync + 'static,
    ) -> Self {
        let fixture = Self {
            client: redis::Client::open(server.url()).unwrap(),
            shard: shard_at(&url(port)),
            port,
            url: Box::new(url),
            slow: Slow::default(),
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
        self.client
            .get_multiplexed_async_connection()
            .await
            .unwrap()
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
    let options = RedisOptions::new(url.parse().unwrap(), ClientId(7));
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

    /// Instead of waiting for minutes, all expiries on the server move that much closer.
    async fn elapse(&self, length: Duration) {
        if length < Duration::from_secs(60) {
            return tokio::time::sleep(length).await;
        }
        let mut raw = self.raw().await;
        let keys: Vec<String> = redis::Cmd::keys("*").query_async(&mut raw).await.unwrap();
        for key in keys {
            let left: i64 = redis::Cmd::pttl(&key).query_async(&mut raw).await.unwrap();
            if left >= 0 {
                let sooner = redis::Cmd::pexpire(&key, left - length.as_millis() as i64);
                sooner.exec_async(&mut raw).await.unwrap();
            }
        }
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

    async fn set_timers_back(&self, length: Duration) {
        let state = self.armed_key("state").await;
        let mut raw = self.raw().await;
        for timer in ["grace", "shut"] {
            let later = redis::Cmd::hincr(&state, timer, length.as_millis() as u64);
            later.exec_async(&mut raw).await.unwrap();
        }
    }

    async fn copy(&self) -> Option<String> {
        let mut raw = self.raw().await;
        let life = self.shard().connect_control().await.unwrap();
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
