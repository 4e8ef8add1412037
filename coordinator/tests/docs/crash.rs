//! A server that crashes, and is recovered.

use std::{sync::Arc, time::Duration};

use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    ids::{Epoch, Token},
    shard::{Grace, LockLane, Op, Reply, ShardError, postgres::Tables},
};
use ringfence_test_support::database::postgresql::PostgreSql;

use super::races::{LONG, acquire, arm, arm_with, key, nonce, renewal, request};
use crate::postgres_fixture::Postgres;

const GRACE: Duration = Duration::from_millis(500);

/// A server that crashed while a lock was held, and the token of that.
async fn crashed(tables: Tables) -> (Postgres, Token) {
    let server = Arc::new(PostgreSql::spawn().await);
    let mut fixture = Postgres::on(server, tables).await;
    let shard = fixture.shard();
    arm(&*shard, fixture.topology()).await;
    let mut link = shard.connect_locks(LockLane::Work, None).await.unwrap();
    let asked = [request(&key(0), acquire(nonce(1, 1), LONG, false))];
    let Reply::Granted { token, .. } = link.call(&asked).await.unwrap().replies[0] else {
        panic!("it is free")
    };
    let server = Arc::get_mut(&mut fixture.server);
    server
        .expect("no other test has it")
        .crash_and_restart()
        .await;
    let dead = link.call(&asked).await;
    assert!(dead.is_err_and(|error| error.ends_link()));
    (fixture, token)
}

/// Logged tables forget nothing that was answered: the life goes on, and needs no grace.
#[tokio::test]
async fn logged_tables_survive_a_crash_with_their_locks() {
    let (fixture, token) = crashed(Tables::Logged).await;
    let shard = fixture.shard();
    let mut link = shard.connect_locks(LockLane::Work, None).await.unwrap();
    let asked = [request(&key(0), acquire(nonce(2, 1), LONG, false))];
    let held = link.call(&asked).await.unwrap().replies.remove(0);
    assert!(matches!(held, Reply::Held { .. }), "{held:?}");
    let renewed = link
        .call(&[request(&key(0), renewal(token, LONG))])
        .await
        .unwrap();
    assert!(matches!(
        renewed.replies[0],
        Reply::Renewed {
            reclaimed: false,
            ..
        }
    ));
    let release = Op::Release { nonce: nonce(1, 1) };
    link.call(&[request(&key(0), release)]).await.unwrap();
    let Reply::Granted { token: later, .. } = link.call(&asked).await.unwrap().replies[0] else {
        panic!("it is free")
    };
    assert!(later > token);
}

/// Unlogged tables are empty after a crash, which begins another life: holders put their locks back in its grace.
#[tokio::test]
async fn unlogged_tables_begin_another_life_in_which_holders_put_their_locks_back() {
    let (fixture, token) = crashed(Tables::Unlogged).await;
    let shard = fixture.shard();
    let mut link = shard.connect_locks(LockLane::Work, None).await.unwrap();
    let asked = [request(&key(0), acquire(nonce(2, 1), LONG, false))];
    let unarmed = link.call(&asked).await;
    assert!(matches!(unarmed, Err(ShardError::Unarmed)), "{unarmed:?}");
    // The pointer is gone too: as the topology sets it anew.
    fixture.join().await;
    arm_with(&*shard, fixture.topology(), Epoch(6), Grace::Full(GRACE)).await;

    let mut link = shard.connect_locks(LockLane::Work, None).await.unwrap();
    let grace = link.call(&asked).await.unwrap().replies.remove(0);
    assert!(matches!(grace, Reply::Grace { .. }), "{grace:?}");
    let renewed = link
        .call(&[request(&key(0), renewal(token, LONG))])
        .await
        .unwrap();
    assert!(matches!(
        renewed.replies[0],
        Reply::Renewed {
            reclaimed: true,
            ..
        }
    ));
    tokio::time::sleep(GRACE + Duration::from_millis(50)).await;
    let held = link.call(&asked).await.unwrap().replies.remove(0);
    assert!(matches!(held, Reply::Held { .. }), "{held:?}");
    let free = [request(&key(1), acquire(nonce(2, 2), LONG, false))];
    let Reply::Granted { token: later, .. } = link.call(&free).await.unwrap().replies[0] else {
        panic!("it is free")
    };
    assert!(later > token, "the epoch is a later one");
}
