//! Real servers for tests, with direct access to them.
#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

mod aof;
#[cfg(feature = "browser")]
pub mod browser;
pub mod cancel;
mod damage;
#[cfg(feature = "databases")]
pub mod database;
pub mod multi;
mod pair;
mod proxy;
mod relay;
mod secured;
mod sentinel;
mod wall_clock;

use std::{future::Future, time::Duration};

use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, aio::MultiplexedConnection};
use ringfence_client::{Builder, Client};
use ringfence_coordinator::spawn::{RedisServer, RedisServerBuilder};
use tokio::time::{sleep, timeout};

pub use aof::{Appended, Command, OnDisk};
pub use damage::{Damage, damaged, damages};
pub use pair::Pair;
pub use proxy::{Counts, Deed, Flow, Frame, Framer, NotResp, Proxy, Trap, Whose};
pub use relay::Relay;
pub use secured::{Secured, rights};
pub use sentinel::Sentinel;
pub use wall_clock::WallClock;

/// The time limit of a condition in a test.
const PATIENCE: Duration = Duration::from_secs(120);

const POLL: Duration = Duration::from_millis(5);

/// Redis servers of one test. Nothing is shared with any other test; they end with this value.
pub struct Servers {
    /// In the order of their start: shards a, b, c of a topology founded on [`urls`](Self::urls).
    pub servers: Vec<RedisServer>,
}

impl Servers {
    /// Starts `count` servers that save nothing.
    pub async fn spawn(count: usize) -> Self {
        Self::spawn_with(count, |builder| builder).await
    }

    /// Starts `count` servers, set up by `set_up`.
    pub async fn spawn_with(
        count: usize,
        set_up: impl Fn(RedisServerBuilder) -> RedisServerBuilder,
    ) -> Self {
        let mut servers = Vec::new();
        for _ in 0..count {
            servers.push(set_up(RedisServer::builder()).spawn().await.unwrap());
        }
        Self { servers }
    }

    /// Their URLs.
    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(RedisServer::url).collect()
    }

    /// A builder of clients of all of them; the servers count as new.
    pub fn builder(&self) -> Builder {
        Client::builder().redis(self.urls()).servers_are_new(true)
    }

    /// A client of all of them.
    pub async fn client(&self) -> Client {
        self.builder().build().await.unwrap()
    }

    /// The answer of the server at `index` to `words`.
    pub async fn ask<T: FromRedisValue>(&self, index: usize, words: &[&str]) -> T {
        ask(&self.servers[index], words).await
    }
}

/// A connection to `server` without a client name.
pub async fn connection(server: &RedisServer) -> MultiplexedConnection {
    connected(&server.url()).await
}

async fn connected(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).unwrap();
    // A server that writes every byte to a busy disk before it answers is slow.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let connected = client.get_multiplexed_async_connection_with_config(&config);
    connected.await.unwrap()
}

/// The answer of `server` to `words`.
pub async fn ask<T: FromRedisValue>(server: &RedisServer, words: &[&str]) -> T {
    let mut command = Cmd::new();
    command.arg(words);
    let answer = command.query_async(&mut connection(server).await).await;
    answer.unwrap()
}

/// Ends the recovery period of the server at `url`, once it has one.
pub async fn end_recovery(url: &str) {
    let mut connection = connected(url).await;
    let mut states = Vec::<String>::new();
    while states.is_empty() {
        let mut find = redis::cmd("KEYS");
        find.arg("ringfence:life:*:state");
        states = find.query_async(&mut connection).await.unwrap();
    }
    for state in states {
        let mut end = redis::cmd("HSET");
        end.arg(state).arg("grace").arg(0);
        end.exec_async(&mut connection).await.unwrap();
    }
}

/// Between two looks at what a test waits for: those who look all the time keep the others from what they do.
pub async fn pause() {
    sleep(POLL).await;
}

/// Waits until `condition` holds; panics, naming `what`, after the limit.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let held = timeout(PATIENCE, async {
        while !condition().await {
            pause().await;
        }
    });
    held.await
        .unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"));
}
