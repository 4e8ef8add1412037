//! Shards on etcd: leases by a clock that processes put forward, and nodes that are killed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use futures_util::future::join_all;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    clock::{BootClock, Clock},
    ids::Nonce,
    name::LockKey,
    random::Random,
    shard::{Op, Reply},
};
use ringfence_test_support::database::etcd::Etcd;

use super::{
    races::{Belief, acquire, arm, key, nonce, request},
    witnessed::{self, Kept, LEASE, Machines, Stubborn, deadline, grants, hold_once},
};
use crate::etcd_fixture::OnEtcd;

/// Whole rounds of kill and restart, of a node that leads the others.
const KILLS: usize = 2;

#[tokio::test]
async fn a_lock_is_free_after_its_lease_and_not_before_its_deadline() {
    let etcd = OnEtcd::new().await;
    let process = || etcd.process();
    witnessed::a_lock_is_free_after_its_lease_and_not_before_its_deadline(&etcd, process).await;
}

#[tokio::test]
async fn a_lock_of_a_dead_holder_is_free_for_processes_that_ask_once() {
    let machines = Machines::new();
    let etcd = OnEtcd::by(machines.one.clone()).await;
    let process = |clock| etcd.process_by(clock);
    witnessed::a_lock_of_a_dead_holder_is_free_for_processes_that_ask_once(
        &etcd, &machines, process,
    )
    .await;
}

#[tokio::test]
async fn a_recovery_period_ends_for_processes_that_ask_once() {
    let machines = Machines::new();
    let etcd = OnEtcd::by(machines.one.clone()).await;
    let process = |clock| etcd.process_by(clock);
    witnessed::a_recovery_period_ends_for_processes_that_ask_once(&etcd, &machines, process).await;
}

#[tokio::test]
async fn tickets_of_dead_waiters_end_for_processes_that_ask_once() {
    let machines = Machines::new();
    let etcd = OnEtcd::by(machines.one.clone()).await;
    let process = |clock| etcd.process_by(clock);
    witnessed::tickets_of_dead_waiters_end_for_processes_that_ask_once(&etcd, &machines, process)
        .await;
}

#[tokio::test]
async fn a_tick_that_counts_time_from_before_a_grant_ends_no_lease() {
    let etcd = OnEtcd::new().await;
    let process = || etcd.process();
    witnessed::a_tick_that_counts_time_from_before_a_grant_ends_no_lease(&etcd, process).await;
}

/// Whichever node dies, no lock is lost, and none has two holders.
#[tokio::test]
async fn locks_on_etcd_survive_the_nodes_that_are_killed() {
    let mut etcd = Etcd::spawn(3).await;
    let fixture = OnEtcd::at(&etcd.url());
    fixture.join().await;
    arm(&*fixture.shard(), fixture.topology()).await;
    let mut kept = Kept::on(fixture.process()).await;
    let (belief, ended, granted) = (Belief::default(), AtomicBool::new(false), AtomicU64::new(0));
    let racers = (2..=5).map(async |racer| {
        let (mut its, random, mut sequence) =
            (Stubborn::on(fixture.process()), Random::seeded(racer), 0);
        while !ended.load(Relaxed) {
            sequence += 1;
            let (key, nonce) = (key(random.below(3) as usize), nonce(racer, sequence));
            hold_once(&mut its, &key, nonce, &belief, &granted).await;
        }
        its.failed
    });
    let kills = async {
        for _ in 0..KILLS {
            grants(&granted, 20).await;
            let leader = etcd.leader().await;
            etcd.kill(leader);
            grants(&granted, 20).await;
            etcd.restart(&[leader]).await;
        }
        // All at once: what was answered is on disk.
        (0..3).for_each(|place| etcd.kill(place));
        etcd.restart(&[0, 1, 2]).await;
        grants(&granted, 20).await;
        ended.store(true, Relaxed);
    };
    let (failed, (), ()) = tokio::join!(join_all(racers), kills, kept.keep(&ended));
    println!("{granted:?} grants, failed attempts: {failed:?}");
}

/// First the node that leads the others, then one that follows: processes that reach it alone are granted nothing while it is
/// cut off, and what they held is free for others after its lease.
#[tokio::test]
#[ignore = "long: elections of a cluster"]
async fn a_node_that_is_cut_off_grants_nothing_and_the_others_go_on() {
    let etcd = Etcd::spawn(3).await;
    let fixture = OnEtcd::at(&etcd.url());
    fixture.join().await;
    arm(&*fixture.shard(), fixture.topology()).await;
    let mut kept = Kept::on(fixture.process()).await;
    let (belief, renewals) = (Belief::default(), kept.renewals.clone());
    for round in 0..2 {
        let place = (etcd.leader().await + round) % 3;
        let (ended, cut, others) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let racers = (1..=6).map(async |racer| {
            // Of each three, one reaches the node alone, and one the others alone.
            let (url, granted) = match racer % 3 {
                0 => (etcd.url_of(place), &cut),
                1 => (etcd.url_of((place + 1) % 3), &others),
                _ => (etcd.url(), &others),
            };
            let number = 10 * (round as u64 + 1) + racer;
            let mut its = Stubborn::on(fixture.process_at(&url));
            let (random, mut sequence) = (Random::seeded(number), 0);
            while !ended.load(Relaxed) {
                sequence += 1;
                let (key, nonce) = (key(random.below(3) as usize), nonce(number, sequence));
                hold_up_to_the_lease(&mut its, &key, nonce, &belief, granted).await;
            }
        });
        let partition = async {
            grants(&cut, 4).await;
            etcd.cut_off(place);
            grants(&others, 10).await;
            let before = cut.load(Relaxed);
            // The first of these may have been sent before.
            grants(&renewals, 2).await;
            grants(&others, 15).await;
            assert_eq!(cut.load(Relaxed), before, "granted without a majority");
            etcd.heal();
            grants(&cut, 4).await;
            grants(&others, 4).await;
            ended.store(true, Relaxed);
        };
        tokio::join!(join_all(racers), partition, kept.keep(&ended));
        println!("{cut:?} grants by the node, {others:?} by others");
    }
}

/// Every fourth lock is not released: it ends with its lease.
async fn hold_up_to_the_lease(
    its: &mut Stubborn,
    key: &LockKey,
    nonce: Nonce,
    belief: &Belief,
    granted: &AtomicU64,
) {
    let asked = [request(key, acquire(nonce, LEASE, false))];
    let sent = BootClock.now();
    let Reply::Granted { token, .. } = its.call(&asked).await[0] else {
        return;
    };
    let deadline = deadline(sent);
    // A late answer is none.
    if BootClock.now() < deadline {
        belief.begins_until(key, (nonce, deadline), token);
        granted.fetch_add(1, Relaxed);
        if !nonce.sequence.is_multiple_of(4) {
            belief.ends(key, nonce);
            its.call(&[request(key, Op::Release { nonce })]).await;
        }
    }
}
