//! A shard's server ends and is started again: empty, with all it had, or without the end of it.

use std::{collections::BTreeSet, time::Duration};

use ringfence_client::{AcquireError, Client, Danger, ReleaseAnswer, ShardError, Topology};
use ringfence_coordinator::spawn::{RedisServer, RedisServerBuilder};
use ringfence_test_support::{OnDisk, Servers, ask, eventually, pause};
use tokio::time::timeout;

use super::{
    DEADLINE, SECOND,
    comeback::{
        MAX_LEASE, Returning, Stage, ask_until_granted, granted_after_recovery,
        holders_keep_their_locks_and_newcomers_wait, is_grace, recorded,
    },
    composed::sets_and_leaders_outlast_it,
    home_of, keys_on,
};

/// A server that is killed and started again.
struct Restarted {
    server: RedisServer,
    /// Of what it was told late, the bytes that are on the disk all the same; none: it keeps all.
    torn: Option<u64>,
    on_disk: Option<OnDisk>,
}

impl Restarted {
    async fn spawn(builder: RedisServerBuilder, torn: Option<u64>) -> Self {
        Self {
            server: builder.spawn().await.unwrap(),
            torn,
            on_disk: None,
        }
    }
}

impl Returning for Restarted {
    fn url(&self) -> String {
        self.server.url()
    }

    async fn forget_from_now(&mut self) {
        self.on_disk = self.torn.map(|_| OnDisk::now(&self.server));
    }

    async fn come_back(&mut self) {
        self.server.kill();
        if let (Some(on_disk), Some(torn)) = (&self.on_disk, self.torn) {
            on_disk.cut(torn);
        }
        self.server.restart().await.unwrap();
    }
}

/// A server that keeps every answered write through a kill. With `everysec`, it answers before it writes while a sync of
/// its file runs.
fn appending() -> RedisServerBuilder {
    let builder = RedisServer::builder().set("appendonly", "yes");
    builder.set("appendfsync", "no")
}

/// A server that is flushed, and goes on in its life.
struct Flushed(RedisServer);

impl Returning for Flushed {
    fn url(&self) -> String {
        self.0.url()
    }

    async fn forget_from_now(&mut self) {}

    async fn come_back(&mut self) {
        ask::<()>(&self.0, &["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn sets_and_leaders_outlast_a_server_that_comes_back_empty() {
    let mut shard = Restarted::spawn(RedisServer::builder(), None).await;
    sets_and_leaders_outlast_it(&mut shard).await;
}

#[tokio::test]
async fn a_shard_that_is_flushed_repeats_no_token() {
    let mut shard = Flushed(RedisServer::spawn().await.unwrap());
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}

/// The record is gone too.
#[tokio::test]
async fn a_home_that_is_flushed_repeats_no_token() {
    let servers = Servers::spawn(2).await;
    let client = |new| {
        let builder = Client::builder().redis(servers.urls());
        builder.max_lease(MAX_LEASE).servers_are_new(new)
    };
    let holder = client(true).build().await.unwrap();
    let home = home_of(&servers, &holder);
    let [key, _] = keys_on(&servers, &holder, home);
    let mut last = None;
    for _ in 0..9 {
        let guard = holder.lock(&key).try_acquire().await.unwrap();
        last = Some(guard.token());
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
    servers.ask::<()>(home, &["FLUSHALL"]).await;
    let newcomer = client(false).build().await.unwrap();
    let url = servers.servers[home].url();
    let granted = granted_after_recovery(&newcomer, &key, &url).await;
    assert!(Some(granted.token()) > last, "{granted:?} after {last:?}");
    last = Some(granted.token());
    assert_eq!(granted.release().await, ReleaseAnswer::Held);
    let guard = ask_until_granted(&holder, &key).await;
    assert!(Some(guard.token()) > last, "{guard:?} after {last:?}");
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
async fn a_shard_that_comes_back_empty_loses_no_lock_and_makes_newcomers_wait() {
    let mut shard = Restarted::spawn(RedisServer::builder(), None).await;
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}

#[tokio::test]
async fn a_shard_that_comes_back_with_all_it_had_loses_no_lock_and_makes_newcomers_wait() {
    let mut shard = Restarted::spawn(appending(), None).await;
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}

#[tokio::test]
async fn a_shard_that_comes_back_without_its_last_writes_loses_no_lock_and_makes_newcomers_wait() {
    let mut shard = Restarted::spawn(appending(), Some(0)).await;
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}

/// A power cut does not wait for the end of a command.
#[tokio::test]
async fn a_shard_whose_last_write_is_torn_loses_no_lock_and_makes_newcomers_wait() {
    let mut shard = Restarted::spawn(appending(), Some(7)).await;
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}

/// The topology's home decides on lives: while it is silent, no shard begins a life.
#[tokio::test]
async fn a_shard_that_came_back_answers_nothing_until_the_topology_says_so() {
    let mut shard = Restarted::spawn(RedisServer::builder(), None).await;
    let stage = Stage::of(shard.url(), MAX_LEASE).await;
    let client = stage.client("holder").await;
    let guard = client.lock("held").try_acquire().await.unwrap();
    let before = client.topology();

    stage.home.stop();
    shard.come_back().await;
    let renewed = timeout(DEADLINE, guard.danger()).await;
    assert_eq!(renewed, Ok(Danger::RenewalFailed), "it is not armed");
    let mut unarmed = 0;
    let silent = async {
        while unarmed < 5 {
            match client.lock("new").try_acquire().await {
                Err(AcquireError::Shard(ShardError::Unarmed)) => unarmed += 1,
                Err(AcquireError::Shard(ShardError::Unreachable { .. })) => {}
                other => panic!("answered without being armed: {other:?}"),
            }
            pause().await;
        }
    };
    timeout(DEADLINE, silent).await.unwrap();
    assert_eq!(recorded(&client, "held").await, None);
    assert_eq!(ask::<u64>(&shard.server, &["DBSIZE"]).await, 0);

    stage.home.cont();
    eventually("armed", async || {
        matches!(client.lock("new").try_acquire().await, Err(refused) if is_grace(&refused))
    })
    .await;
    let after = client.topology();
    let entry = |topology: &Topology| topology.shards.values().next().unwrap().clone();
    let (old, new) = (entry(&before), entry(&after));
    assert!(
        new.epoch > before.last_epoch,
        "armed with an epoch of before"
    );
    assert_ne!(new.life, old.life);
    eventually("put back", async || {
        recorded(&client, "held").await == Some(guard.token())
    })
    .await;
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

#[tokio::test]
#[ignore = "long: fifty restarts"]
async fn fifty_restarts_leave_no_key_behind_and_tokens_rise() {
    const RESTARTS: usize = 50;
    const SETTLED_EVERY: usize = 5;
    let mut shard = Restarted::spawn(appending(), None).await;
    let stage = Stage::of(shard.url(), Duration::from_millis(300)).await;
    let client = stage.client("holder").await;
    let mut token = client.lock("key").try_acquire().await.unwrap().token();
    eventually("given back", async || {
        recorded(&client, "key").await.is_none()
    })
    .await;
    let at_first = keys(&shard.server).await;
    println!("{at_first:?}");

    let mut granted = 0;
    for restart in 1..=RESTARTS {
        // Locks that are held when the server ends: their records come back, and have an end.
        let key = format!("held/{restart}");
        let is_in_grace = restart % SETTLED_EVERY != 1;
        let patience = if is_in_grace { SECOND / 20 } else { DEADLINE };
        let held = client.lock(&key).wait(patience).acquire().await;
        granted += usize::from(held.is_ok());
        shard.come_back().await;
        drop(held);
        // Most lives end before they were armed, or before their grace was over.
        if restart % SETTLED_EVERY == 0 {
            let guard = ask_until_granted(&client, "key").await;
            assert!(guard.token() > token, "tokens rise");
            token = guard.token();
            drop(guard);
            eventually(&format!("as at first, after {restart}"), async || {
                // The next client that had to check every slot marks the shard quiet.
                if let Ok(guard) = client.lock("key").try_acquire().await {
                    guard.release().await;
                }
                keys(&shard.server).await == at_first
            })
            .await;
        }
    }
    println!("{RESTARTS} restarts, {granted} locks held at one");
    assert!(
        granted >= RESTARTS / SETTLED_EVERY,
        "{granted} locks were held at a restart"
    );
    let lives: BTreeSet<String> = ask(&shard.server, &["SMEMBERS", "ringfence:lives"]).await;
    assert_eq!(lives.len(), 1, "{lives:?}");
}

/// The names of a server's keys, but for the life in them.
async fn keys(server: &RedisServer) -> Vec<String> {
    let names: Vec<String> = ask(server, &["KEYS", "*"]).await;
    let mut names: Vec<String> = names
        .into_iter()
        .map(|name| match name.strip_prefix("ringfence:life:") {
            Some(of_life) => of_life.rsplit(':').next().unwrap().to_owned(),
            None => name,
        })
        .collect();
    names.sort();
    names
}
