//! A server about to be in trouble, and a holder of a lock there.

use std::time::Duration;

use redis::{FromRedisValue, RedisError};
use ringfence_client::{AcquireError, Client, Effect, Guard, ReleaseAnswer, ShardError};
use ringfence_coordinator::spawn::RedisServerBuilder;
use ringfence_test_support::{Proxy, Servers, connection, end_recovery, eventually};

use super::{DEADLINE, keys_on, not_the_home};

/// The pattern of all lock records.
const RECORDS: &str = "ringfence:{*";

/// Two servers, of which the one that is not the topology's home is to be in trouble.
pub(crate) struct Scene {
    pub(crate) servers: Servers,
    pub(crate) client: Client,
    /// The server to be in trouble.
    pub(crate) index: usize,
    /// A lock on it, held.
    pub(crate) guard: Guard,
    /// A free key on it.
    pub(crate) other: String,
}

impl Scene {
    pub(crate) async fn new(
        lease: Duration,
        set_up: impl Fn(RedisServerBuilder) -> RedisServerBuilder,
    ) -> Self {
        let servers = Servers::spawn_with(2, set_up).await;
        let client = servers.builder().max_lease(lease).build().await.unwrap();
        let index = not_the_home(&servers, &client);
        let [key, other] = keys_on(&servers, &client, index);
        let guard = client.lock(&key).acquire().await.unwrap();
        Self {
            servers,
            client,
            index,
            guard,
            other,
        }
    }

    /// What the server answers to `words`.
    pub(crate) async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.servers.ask(self.index, words).await
    }

    /// Whether the server refuses to run a script that may write, with this code.
    pub(crate) async fn refuses_scripts_with(&self, code: &str) -> bool {
        let refused: Result<i64, RedisError> = redis::cmd("EVAL")
            .arg("#!lua\nreturn 1")
            .arg(0)
            .query_async(&mut connection(&self.servers.servers[self.index]).await)
            .await;
        refused.is_err_and(|error| error.code() == Some(code))
    }

    /// Asks for a lock on the server, once, and is refused with nothing applied; what the shard
    /// said.
    pub(crate) async fn refused(&self, retryable: bool) -> ShardError {
        let refused = self.client.lock(&self.other).try_acquire().await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.is_retryable(), retryable, "{refused:?}");
        assert_eq!(refused.effect(), Effect::None, "{refused:?}");
        match refused {
            AcquireError::Shard(error) => error,
            other => panic!("{other:?}"),
        }
    }

    /// The trouble is over: only waiters noticed it.
    pub(crate) async fn goes_on(self) {
        assert!(self.guard.is_held());
        let before = self.guard.deadline();
        assert_eq!(records(&self.servers, self.index).await.len(), 1);
        eventually("renewed", async || self.guard.deadline() > before).await;
        assert!(self.guard.is_held());
        end_recovery(&self.servers.servers[self.index].url()).await;
        let other = self.client.lock(&self.other).wait(DEADLINE);
        let next = other.acquire().await.unwrap();
        assert!(next.token() > self.guard.token());
        assert_eq!(next.release().await, ReleaseAnswer::Held);
        // Unknown, if its lane learns only now of another life: then it is given back in the background.
        assert_ne!(self.guard.release().await, ReleaseAnswer::Lost);
        eventually("nothing is left", async || {
            records(&self.servers, self.index).await.is_empty()
        })
        .await;
    }
}

/// One server behind a proxy, through which its topology was founded.
pub(crate) struct Proxied {
    pub(crate) servers: Servers,
    pub(crate) proxy: Proxy,
    pub(crate) client: Client,
}

impl Proxied {
    pub(crate) async fn new(max_lease: Duration) -> Self {
        let servers = Servers::spawn(1).await;
        let proxy = Proxy::start(servers.servers[0].port()).await;
        let builder = Client::builder().redis([proxy.url()]).servers_are_new(true);
        let client = builder.max_lease(max_lease).build().await.unwrap();
        Self {
            servers,
            proxy,
            client,
        }
    }

    /// Another client of the same server.
    pub(crate) async fn rival(&self) -> Client {
        let builder = Client::builder().redis([self.proxy.url()]);
        builder.build().await.unwrap()
    }

    /// Every lock record on the server, as it is stored.
    pub(crate) async fn records(&self) -> Vec<String> {
        records(&self.servers, 0).await
    }

    /// How many tokens the shard has made.
    pub(crate) async fn tokens(&self) -> u64 {
        let counter = self.of_life("ctr").await;
        self.servers.ask(0, &["GET", &counter]).await
    }

    /// Puts the shard into a long grace, as an arming does.
    pub(crate) async fn begin_grace(&self) {
        let (state, quiet) = (self.of_life("state").await, self.of_life("quiet").await);
        let never = (u64::MAX >> 12).to_string();
        let grace = ["HSET", &state, "grace", &never, "grace_ms", &never];
        self.servers.ask::<()>(0, &grace).await;
        self.servers.ask::<()>(0, &["DEL", &quiet]).await;
    }

    /// Ends the grace.
    pub(crate) async fn end_grace(&self) {
        let state = self.of_life("state").await;
        let over = ["HSET", &state, "grace", "0"];
        self.servers.ask::<()>(0, &over).await;
    }

    /// The key of a part of the only life.
    async fn of_life(&self, part: &str) -> String {
        let pattern = format!("ringfence:life:*:{part}");
        let [key]: [String; 1] = self.servers.ask(0, &["KEYS", &pattern]).await;
        key
    }

    /// Waits until the server has no lock record.
    pub(crate) async fn is_empty(&self) {
        eventually("nothing is left", async || self.records().await.is_empty()).await;
    }
}

/// Every lock record on the server at `index`, as it is stored.
async fn records(servers: &Servers, index: usize) -> Vec<String> {
    let keys: Vec<String> = servers.ask(index, &["KEYS", RECORDS]).await;
    let mut records = Vec::new();
    for key in keys {
        let record: Option<String> = servers.ask(index, &["GET", &key]).await;
        records.extend(record);
    }
    records
}
