//! A server that crashes, and is recovered.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    ids::{ClientId, Epoch, Token},
    name::KeyPrefix,
    random::Random,
    shard::{Grace, LockLane, Op, Reply, ServerOptions, ShardError, postgres::Tables},
};
use ringfence_test_support::database::{mariadb::MariaDb, postgresql::PostgreSql};

use super::races::{LONG, acquire, arm, arm_with, key, nonce, renewal, request};
use crate::{mariadb_fixture::Maria, postgres_fixture::Postgres};

/// Shorter than the lease that is put back.
const GRACE: Duration = Duration::from_secs(10);

/// A shard on a server of its own.
#[async_trait(?Send)]
trait Crashes: Fixture {
    /// Kills the server, and starts it again.
    async fn crash_and_restart(&mut self);
}

#[async_trait(?Send)]
impl Crashes for Postgres {
    async fn crash_and_restart(&mut self) {
        let server = Arc::get_mut(&mut self.server).expect("no other test has it");
        server.crash_and_restart().await;
    }
}

#[async_trait(?Send)]
impl Crashes for Maria {
    async fn crash_and_restart(&mut self) {
        let server = Arc::get_mut(&mut self.server).expect("no other test has it");
        server.crash_and_restart().await;
    }
}

async fn on_postgresql(tables: Tables) -> Postgres {
    Postgres::on(Arc::new(PostgreSql::spawn().await), tables).await
}

/// Crashes the server while a lock is held. Returns the token of that.
async fn crash(fixture: &mut dyn Crashes) -> Token {
    // However long the crash takes, the clock stands still from now on.
    fixture.elapse(Duration::ZERO).await;
    let shard = fixture.shard();
    arm(&*shard, fixture.topology()).await;
    let mut link = shard.connect_locks(LockLane::Work, None).await.unwrap();
    let asked = [request(&key(0), acquire(nonce(1, 1), LONG, false))];
    let Reply::Granted { token, .. } = link.call(&asked).await.unwrap().replies[0] else {
        panic!("it is free")
    };
    fixture.crash_and_restart().await;
    let dead = link.call(&asked).await;
    assert!(dead.is_err_and(|error| error.ends_link()));
    token
}

#[tokio::test]
async fn logged_tables_on_postgresql_survive_a_crash_with_their_locks() {
    locks_survive_a_crash(&mut on_postgresql(Tables::Logged).await).await;
}

/// By its settings the server loses commits that were answered.
#[tokio::test]
async fn locks_survive_a_crash_of_a_server_whose_commits_do_not_wait_for_the_disk() {
    let settings = [("synchronous_commit", "off"), ("wal_writer_delay", "10s")];
    let server = PostgreSql::spawn_with(&settings).await;
    let mut fixture = Postgres::on(Arc::new(server), Tables::Logged).await;
    locks_survive_a_crash(&mut fixture).await;
}

#[tokio::test]
async fn tables_on_mariadb_survive_a_crash_with_their_locks() {
    let server = Arc::new(MariaDb::spawn().await);
    locks_survive_a_crash(&mut Maria::on(server).await).await;
}

/// Another lock would have the same token after a crash.
#[tokio::test]
async fn a_mariadb_server_that_loses_commits_is_refused_until_it_loses_none() {
    const FLUSH: &str = "innodb_flush_log_at_trx_commit";
    let with_log = [
        ("log_bin", "binlog"),
        ("log_bin_trust_function_creators", "1"),
        ("sync_binlog", "0"),
    ];
    for settings in [&[(FLUSH, "0")][..], &[(FLUSH, "2")], &with_log] {
        let server = MariaDb::spawn_with(settings).await;
        let url = format!("mysql://root@127.0.0.1:{}/test", server.port());
        let options = ServerOptions::new(url.parse().unwrap(), ClientId(1), KeyPrefix::default());
        options.prepare().await.unwrap();
        let shard = options.shard(&Arc::new(Random::from_os()));
        match shard.connect_control(None).await {
            Err(ShardError::Unusable { reason }) => {
                let cure = "SET GLOBAL innodb_flush_log_at_trx_commit = 1, sync_binlog = 1";
                assert!(reason.contains(cure), "{reason}");
                server.run(cure).await;
            }
            other => panic!("{settings:?}: {:?}", other.map(drop)),
        }
        assert!(shard.connect_control(None).await.is_ok(), "{settings:?}");
    }
}

/// Such a server forgets nothing that was answered: the life goes on, and needs no grace.
async fn locks_survive_a_crash(fixture: &mut dyn Crashes) {
    let token = crash(fixture).await;
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
    holders_put_their_locks_back(on_postgresql(Tables::Unlogged).await, true).await;
}

/// Such a server may have lost commits that were answered.
#[tokio::test]
async fn a_crash_of_a_server_without_fsync_begins_another_life_in_which_holders_put_their_locks_back()
 {
    let server = PostgreSql::spawn_with(&[("fsync", "off")]).await;
    let fixture = Postgres::on(Arc::new(server), Tables::Logged).await;
    holders_put_their_locks_back(fixture, false).await;
}

/// `forgets`: the crash loses what was answered. It may lose it otherwise.
async fn holders_put_their_locks_back(mut fixture: Postgres, forgets: bool) {
    let token = crash(&mut fixture).await;
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
    let Reply::Renewed { reclaimed, .. } = renewed.replies[0] else {
        panic!("{renewed:?}")
    };
    assert_eq!(reclaimed, forgets);
    fixture.elapse(GRACE + Duration::from_secs(1)).await;
    let held = link.call(&asked).await.unwrap().replies.remove(0);
    assert!(matches!(held, Reply::Held { .. }), "{held:?}");
    let free = [request(&key(1), acquire(nonce(2, 2), LONG, false))];
    let Reply::Granted { token: later, .. } = link.call(&free).await.unwrap().replies[0] else {
        panic!("it is free")
    };
    assert!(later > token, "the epoch is a later one");
}
