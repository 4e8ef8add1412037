//! Shards on ZooKeeper: leases by a clock that processes put forward, and servers that are killed, stopped and cut off.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::join_all;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    ids::{Epoch, Token},
    random::Random,
    shard::{
        Op, Shard, ShardError,
        docs::{Commit, Draw, Expected, Name, TokenChange, Write},
    },
    zookeeper::ZookeeperOptions,
};
use ringfence_test_support::{Relay, database::zookeeper::Zookeeper};
use tokio::time::timeout;

use super::{
    races::{Belief, LONG, acquire, arm, key, nonce, request},
    witnessed::{self, Kept, Machines, Stubborn, grants, hold_once},
};
use crate::zookeeper_fixture::{OnZookeeper, shard_at};

/// The limit of a wait for what comes at once.
const SOON: Duration = Duration::from_secs(120);

#[tokio::test]
async fn a_lock_is_free_after_its_lease_and_not_before_its_deadline() {
    let zookeeper = OnZookeeper::new().await;
    let process = || zookeeper.process();
    witnessed::a_lock_is_free_after_its_lease_and_not_before_its_deadline(&zookeeper, process)
        .await;
}

#[tokio::test]
async fn a_lock_of_a_dead_holder_is_free_for_processes_that_ask_once() {
    let machines = Machines::new();
    let zookeeper = OnZookeeper::by(machines.one.clone()).await;
    let process = |clock| zookeeper.process_by(clock);
    witnessed::a_lock_of_a_dead_holder_is_free_for_processes_that_ask_once(
        &zookeeper, &machines, process,
    )
    .await;
}

#[tokio::test]
async fn a_recovery_period_ends_for_processes_that_ask_once() {
    let machines = Machines::new();
    let zookeeper = OnZookeeper::by(machines.one.clone()).await;
    let process = |clock| zookeeper.process_by(clock);
    witnessed::a_recovery_period_ends_for_processes_that_ask_once(&zookeeper, &machines, process)
        .await;
}

#[tokio::test]
async fn tickets_of_dead_waiters_end_for_processes_that_ask_once() {
    let machines = Machines::new();
    let zookeeper = OnZookeeper::by(machines.one.clone()).await;
    let process = |clock| zookeeper.process_by(clock);
    witnessed::tickets_of_dead_waiters_end_for_processes_that_ask_once(
        &zookeeper, &machines, process,
    )
    .await;
}

#[tokio::test]
async fn a_tick_that_counts_time_from_before_a_grant_ends_no_lease() {
    let zookeeper = OnZookeeper::new().await;
    let process = || zookeeper.process();
    witnessed::a_tick_that_counts_time_from_before_a_grant_ends_no_lease(&zookeeper, process).await;
}

#[tokio::test]
async fn of_an_ensemble_that_does_not_run_no_server_takes_requests() {
    let shard = OnZookeeper::at("zookeeper://127.0.0.1:1").process();
    match shard.connect_control(None).await {
        Err(ShardError::Unreachable { reason }) => assert_eq!(
            reason,
            "zookeeper://127.0.0.1:1: no server of it takes requests, or another connection from here (maxClientCnxns)"
        ),
        other => panic!("{other:?}"),
    }
}

/// Else a grant might have a lower token than an earlier one, whose document was read after the draw. Between a draw and
/// anything sent after it, there is time for another process to draw and commit.
#[tokio::test]
async fn tokens_are_drawn_after_the_documents_were_read() {
    let fixture = OnZookeeper::bare().await;
    let port = fixture.zookeeper().port();
    let relay = Relay::paced(port, Duration::from_millis(10)).await;
    let open = async |port| fixture.store_at(port).open(None).await.unwrap();
    // The first one begins the life, which takes many bytes.
    let (mut quick, mut slow) = (open(port).await, open(relay.port()).await);
    let first = Token::new(Epoch(5), 0);
    let commit = |tokens, writes| Commit {
        checks: Vec::new(),
        writes,
        version: 1,
        tokens,
        not_before_ms: 0,
        not_after_ms: u64::MAX,
        messages: Vec::new(),
    };
    let begin = commit(TokenChange::Exactly(first), Vec::new());
    quick.commit(&begin).await.unwrap();
    let draw = Draw {
        head: Expected::Absent,
        tokens: 1,
    };
    let name = Name::Lock(key(0));
    // It knows the last token now, so that it draws at once.
    slow.read(&[], None).await.unwrap();
    let names = [name.clone()];
    let other = async {
        while quick.read(&[], None).await.unwrap().last == first {}
        let drawn = quick.read(&[], Some(draw)).await.unwrap();
        assert_eq!((drawn.last.counter(), drawn.drawn), (1, 1));
        let write = Write {
            name,
            expected: Expected::Absent,
            content: "granted with token 2".into(),
            ends_ms: None,
        };
        let granted = quick.commit(&commit(TokenChange::None, vec![write])).await;
        assert!(granted.unwrap().is_done());
    };
    let both = async { tokio::join!(slow.read(&names, Some(draw)), other) };
    let (found, ()) = timeout(SOON, both).await.expect("the tokens are drawn");
    let found = found.unwrap();
    assert_eq!((found.last, found.drawn), (first, 1));
    assert_eq!(found.documents, [None], "read after token 1 was drawn");
}

/// A shard on an ensemble of the test's own, and a lock there that is held all the time.
struct Stage {
    fixture: OnZookeeper,
    kept: Kept,
}

impl Stage {
    async fn on(zookeeper: &Zookeeper) -> Self {
        let fixture = OnZookeeper::at(&zookeeper.url());
        fixture.join().await;
        arm(&*fixture.shard(), fixture.topology()).await;
        let kept = Kept::on(fixture.process()).await;
        Self { fixture, kept }
    }

    /// Locks are granted to four processes, to one at a time, while `faults` happen; nothing is lost.
    async fn bears(mut self, faults: impl AsyncFnOnce(&AtomicU64)) {
        let (belief, ended) = (Belief::default(), AtomicBool::new(false));
        let granted = AtomicU64::new(0);
        let racers = (2..=5).map(async |racer| {
            let mut its = Stubborn::on(self.fixture.process());
            let (random, mut sequence) = (Random::seeded(racer), 0);
            while !ended.load(Relaxed) {
                sequence += 1;
                let (key, nonce) = (key(random.below(3) as usize), nonce(racer, sequence));
                hold_once(&mut its, &key, nonce, &belief, &granted).await;
            }
            its.failed
        });
        let faults = async {
            faults(&granted).await;
            grants(&granted, 20).await;
            ended.store(true, Relaxed);
        };
        let (failed, (), ()) = tokio::join!(join_all(racers), faults, self.kept.keep(&ended));
        println!("{granted:?} grants, failed attempts: {failed:?}");
    }
}

/// Whichever server dies, no lock is lost, and none has two holders.
#[tokio::test]
#[ignore = "long: elections of an ensemble"]
async fn locks_on_zookeeper_survive_the_servers_that_are_killed() {
    let mut zookeeper = Zookeeper::spawn(3).await;
    let stage = Stage::on(&zookeeper).await;
    stage
        .bears(async |granted| {
            grants(granted, 20).await;
            let leader = zookeeper.leader().await;
            zookeeper.kill(leader);
            grants(granted, 20).await;
            zookeeper.restart(&[leader]).await;
            // All at once: what was answered is on disk.
            (0..3).for_each(|place| zookeeper.kill(place));
            zookeeper.restart(&[0, 1, 2]).await;
        })
        .await;
}

/// The only server is down for as long as it takes to start again.
#[tokio::test]
async fn locks_on_one_server_of_zookeeper_survive_its_crash() {
    let mut zookeeper = Zookeeper::spawn(1).await;
    let stage = Stage::on(&zookeeper).await;
    stage
        .bears(async |granted| {
            grants(granted, 20).await;
            zookeeper.kill(0);
            zookeeper.restart(&[0]).await;
        })
        .await;
}

/// The leader is cut off from the others, and not from processes.
#[tokio::test]
#[ignore = "long: elections of an ensemble"]
async fn locks_on_zookeeper_survive_a_leader_that_is_cut_off() {
    let zookeeper = Zookeeper::divisible().await;
    let stage = Stage::on(&zookeeper).await;
    stage
        .bears(async |granted| {
            grants(granted, 20).await;
            let leader = zookeeper.leader().await;
            zookeeper.cut_off(leader);
            grants(granted, 20).await;
            assert_ne!(zookeeper.leader_but(leader).await, leader);
            zookeeper.heal();
        })
        .await;
}

/// It does not know yet that others have elected another one, and has been asked before.
#[tokio::test]
#[ignore = "long: elections of an ensemble"]
async fn a_leader_that_was_replaced_answers_nothing_old() {
    let zookeeper = Zookeeper::spawn(3).await;
    let fixture = OnZookeeper::at(&zookeeper.url());
    fixture.join().await;
    arm(&*fixture.shard(), fixture.topology()).await;
    let (key, held) = (key(0), nonce(1, 1));
    let mut holder = Stubborn::on(fixture.process());
    holder
        .call(&[request(&key, acquire(held, LONG, false))])
        .await;

    let leader = zookeeper.leader().await;
    let port = zookeeper.port_of(leader);
    let patient = ZookeeperOptions {
        prefix: fixture.options.prefix.clone(),
        response_timeout: Duration::from_secs(20),
        patience: Duration::from_secs(30),
        ..ZookeeperOptions::new(format!("zookeeper://127.0.0.1:{port}").parse().unwrap())
    };
    let there: Arc<dyn Shard> = shard_at(&patient);
    let mut control = there.connect_control(None).await.unwrap();
    let before = control.inspect(&key).await.unwrap();
    assert!(before.holder.is_some(), "{before:?}");

    zookeeper.stop(leader);
    let asked = async { control.inspect(&key).await };
    let changed = async {
        // The question is in the leader's socket by now, or soon.
        holder
            .call(&[request(&key, Op::Release { nonce: held })])
            .await;
        zookeeper.cont(leader);
    };
    let (answer, ()) = tokio::join!(asked, changed);
    // No answer is one, too.
    if let Ok(inspection) = answer {
        assert!(inspection.holder.is_none(), "{inspection:?}");
    }
}
