//! A shard's address moves to another server: a replica that has not heard of the last writes, and
//! back again.

use std::cell::OnceCell;

use ringfence_client::{AcquireError, ReleaseAnswer, ShardError};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{Pair, end_recovery, eventually, pause};
use tokio::time::timeout;

use super::{
    DEADLINE,
    comeback::{
        MAX_LEASE, Returning, Stage, ask_until_granted, granted_after_recovery,
        holders_keep_their_locks_and_newcomers_wait, is_grace, recorded,
    },
    composed::sets_and_leaders_outlast_it,
};

/// A primary that dies, and its replica that takes over.
struct Promoted(Pair);

impl Returning for Promoted {
    fn url(&self) -> String {
        self.0.url()
    }

    async fn forget_from_now(&mut self) {
        self.0.synced().await;
        self.0.detach(1).await;
    }

    async fn come_back(&mut self) {
        self.0.kill(0);
        self.0.promote(1).await;
        self.0.move_to(1).await;
    }
}

#[tokio::test]
async fn a_promoted_stale_replica_loses_no_lock_and_makes_newcomers_wait() {
    let mut shard = Promoted(Pair::spawn().await);
    holders_keep_their_locks_and_newcomers_wait(&mut shard).await;
}

#[tokio::test]
async fn sets_and_leaders_outlast_a_promoted_stale_replica() {
    let mut shard = Promoted(Pair::spawn().await);
    sets_and_leaders_outlast_it(&mut shard).await;
}

/// `run_id` and `master_replid` of server `index`.
async fn life(pair: &Pair, index: usize) -> [String; 2] {
    let info: redis::InfoDict = pair.ask(index, &["INFO", "server", "replication"]).await;
    ["run_id", "master_replid"].map(|name| info.get(name).unwrap())
}

/// What server 0 has of its first time as a primary tells nothing of what server 1 granted since.
#[tokio::test]
async fn a_server_that_becomes_the_primary_again_lives_another_life() {
    let pair = Pair::spawn().await;
    let stage = Stage::of(pair.url(), MAX_LEASE).await;
    let (holder, other) = (stage.client("holder").await, stage.client("other").await);
    let guard = holder.lock("held").try_acquire().await.unwrap();
    let first = holder.lock("key").try_acquire().await.unwrap();
    let first_token = first.token();
    assert_eq!(first.release().await, ReleaseAnswer::Held);
    let [run_id, replid] = life(&pair, 0).await;

    for index in [1, 0] {
        pair.detach(index).await;
    }
    let refused = other.lock("new").try_acquire().await.unwrap_err();
    assert!(refused.is_retryable(), "by a read-only server: {refused:?}");
    pair.promote(1).await;
    pair.move_to(1).await;
    let second = granted_after_recovery(&other, "key", &pair.url()).await;
    assert!(second.token() > first_token);

    pair.detach(1).await;
    pair.promote(0).await;
    pair.move_to(0).await;
    let [same_run_id, another_replid] = life(&pair, 0).await;
    assert_eq!(same_run_id, run_id);
    assert_ne!(another_replid, replid);
    eventually("it says that it came back", async || {
        match holder.lock("key").try_acquire().await {
            Ok(third) => panic!("two holders: {second:?} and {third:?}"),
            Err(refused) => is_grace(&refused),
        }
    })
    .await;
    eventually("put back", async || {
        recorded(&holder, "key").await == Some(second.token())
    })
    .await;
    eventually("put back too", async || {
        recorded(&holder, "held").await == Some(guard.token())
    })
    .await;
    drop(granted_after_recovery(&holder, "new", &pair.url()).await);
    for (client, key, guard) in [(&holder, "held", &guard), (&other, "key", &second)] {
        // Its own connection for work may be one of before, and learns of it only now.
        eventually("held, and said so", async || {
            let answer = client.lock(key).try_acquire().await;
            assert!(answer.is_err(), "two holders: {guard:?} and {answer:?}");
            matches!(answer, Err(AcquireError::Held { .. }))
        })
        .await;
    }
    let second_token = second.token();
    assert_eq!(second.release().await, ReleaseAnswer::Held);
    assert!(holder.lock("key").try_acquire().await.unwrap().token() > second_token);
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

/// Its first primary was never restarted nor demoted: it is armed as it was before the address moved away, and knows
/// nothing of what the other granted since.
#[tokio::test]
async fn a_primary_that_the_address_comes_back_to_is_armed_anew() {
    let pair = Pair::spawn().await;
    let nothing = async || {};
    there_and_back(&pair, nothing, nothing).await;
}

/// A primary that misses its replica takes no writes: nothing can be put back before it has one again.
#[tokio::test]
async fn a_primary_that_the_address_comes_back_to_is_armed_anew_once_a_replica_follows_it() {
    let pair = Pair::spawn().await;
    for index in [0, 1] {
        for (name, value) in [
            ("min-replicas-to-write", "1"),
            ("min-replicas-max-lag", "1"),
            ("repl-diskless-sync-delay", "0"),
        ] {
            let set = ["CONFIG", "SET", name, value];
            pair.ask::<()>(index, &set).await;
        }
    }
    let other_replica = OnceCell::new();
    let there = async || {
        let replica = RedisServer::builder().replica_of(pair.port()).spawn();
        other_replica.set(replica.await.unwrap()).unwrap();
    };
    let back = async || pair.follow(1).await;
    there_and_back(&pair, there, back).await;
}

/// The address moves to server 1, and then back. `there` and `back` are done after each move.
async fn there_and_back(pair: &Pair, there: impl AsyncFnOnce(), back: impl AsyncFnOnce()) {
    let stage = Stage::of(pair.url(), MAX_LEASE).await;
    let early = stage.client("early").await;
    for _ in 0..9 {
        let lock = early.lock("key").wait(DEADLINE);
        assert_eq!(
            lock.acquire().await.unwrap().release().await,
            ReleaseAnswer::Held
        );
    }
    pair.promote(1).await;
    pair.move_to(1).await;
    there().await;
    let late = stage.client("late").await;
    let guard = granted_after_recovery(&late, "key", &pair.url()).await;
    let (token, former) = (guard.token(), guard.deadline());

    pair.move_to(0).await;
    back().await;
    let newcomer = stage.client("newcomer").await;
    let (mut recovers, mut refused_since) = (false, 0);
    let refused = async {
        while refused_since < 20 {
            assert!(guard.is_held(), "a healthy lock is lost");
            for client in [&early, &newcomer] {
                let refused = client.lock("key").try_acquire().await;
                let refused = refused.expect_err("a second holder");
                assert!(refused.is_retryable(), "{refused:?}");
                recovers |= is_grace(&refused);
            }
            let is_back = recorded(&newcomer, "key").await == Some(token);
            if recovers && is_back && guard.deadline() > former {
                end_recovery(&pair.url()).await;
                refused_since += 1;
            }
            pause().await;
        }
    };
    let refused = timeout(DEADLINE, refused).await;
    refused.expect("it is armed anew, and the lock put back");
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    let next = ask_until_granted(&newcomer, "key").await;
    assert!(next.token() > token, "{:?} after {token:?}", next.token());
}

/// It was opened in a life that is over, and says nothing: only the script can tell.
#[tokio::test]
async fn a_connection_that_outlives_demotion_and_promotion_is_granted_nothing() {
    let pair = Pair::spawn().await;
    let stage = Stage::of(pair.url(), MAX_LEASE).await;
    let early = stage.client("early").await;
    let first = early.lock("key").try_acquire().await.unwrap();
    let first_token = first.token();
    assert_eq!(first.release().await, ReleaseAnswer::Held);
    let connections = work_connections(&pair).await;
    assert!(!connections.is_empty());

    // Server 0 is demoted; server 1 takes over, and grants the key.
    for index in [1, 0] {
        pair.detach(index).await;
    }
    pair.promote(1).await;
    pair.move_to(1).await;
    let late = stage.client("late").await;
    let second = granted_after_recovery(&late, "key", &pair.url()).await;
    assert!(second.token() > first_token);

    // Server 0 is promoted again, and is asked over the connection of before.
    pair.promote(0).await;
    assert_eq!(
        work_connections(&pair).await,
        connections,
        "they outlived it"
    );
    let answer = early.lock("key").try_acquire().await;
    assert!(
        matches!(answer, Err(AcquireError::Shard(ShardError::Unarmed))),
        "{answer:?}"
    );
    eventually("held, and said so", async || {
        let refused = early.lock("key").try_acquire().await.unwrap_err();
        matches!(refused, AcquireError::Held { .. })
    })
    .await;
    assert_eq!(second.release().await, ReleaseAnswer::Held);
}

/// The ids of server 0's connections for work, in order.
async fn work_connections(pair: &Pair) -> Vec<u64> {
    let list: String = pair.ask(0, &["CLIENT", "LIST"]).await;
    let of_work = list.lines().filter(|line| line.contains(":work "));
    let mut ids: Vec<u64> = of_work
        .filter_map(|line| line.strip_prefix("id=")?.split(' ').next()?.parse().ok())
        .collect();
    ids.sort_unstable();
    ids
}
