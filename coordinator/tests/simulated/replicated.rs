//! Locks with three replicas: ranks that fail, that are taken by waiters, and by force.

use std::{sync::LazyLock, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use ringfence_coordinator::{
    engine::{Acquire, AcquireError, Engine, Guard, ReplicaInspection, Wait},
    ids::{ClientId, MapVersion, Nonce},
    name::{Label, LockKey, Namespace},
    shard::{Holder, Lane, LockLane, LockMode, Op, Request, Shard as _, memory::MemoryShard},
    topology::Namespaces,
};
use ringfence_ring::{Replicas, ShardId};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{Crew, FOR_EVER, LEASE, Process, SECOND, acquire_as, ask};

static LEDGER: LazyLock<Namespace> = LazyLock::new(|| Namespace::new("ledger").unwrap());

/// Processes, and three shards that have a replica each.
async fn crew() -> Crew {
    let mut namespaces = Namespaces::default();
    namespaces.declare(LEDGER.clone(), Replicas::Three).unwrap();
    Crew::at(3, namespaces).await
}

fn lock() -> Acquire<'static> {
    Acquire {
        namespace: &LEDGER,
        ..ask("key", Wait::Forever)
    }
}

async fn replicas(engine: &Engine) -> Vec<ReplicaInspection> {
    engine.inspect_replicas(&LEDGER, b"key").await.unwrap()
}

/// The shards, by the rank that they have of the lock.
async fn by_rank(crew: &Crew, process: &Process) -> Vec<(ShardId, std::sync::Arc<MemoryShard>)> {
    let replicas = replicas(process).await.into_iter();
    let shard = |replica: ReplicaInspection| {
        let shard = crew.shards[&replica.shard].clone();
        (replica.shard, shard)
    };
    replicas.map(shard).collect()
}

/// Nobody reaches `shard` any more, or again.
fn away(shard: &MemoryShard, away: bool) {
    shard.faults().unreachable(away);
    if away {
        shard.faults().hang_up();
    }
}

/// The records of the ranks.
async fn records(engine: &Engine) -> Vec<Option<Holder>> {
    let replicas = replicas(engine).await.into_iter();
    replicas.map(|its| its.found.ok()?.holder).collect()
}

/// The key of the one lock at `shard`.
async fn key_at(engine: &Engine, shard: &ShardId) -> LockKey {
    let mut locks = engine.locks(None);
    loop {
        let page = locks.next().await.expect("a lock there");
        let mut locks = page.locks.unwrap().into_iter();
        if let Some(held) = locks.next().filter(|_| page.shard == *shard) {
            return held.key;
        }
    }
}

fn request(key: LockKey, op: Op) -> Request {
    Request {
        key,
        map: MapVersion::UNKNOWN,
        declared: MapVersion::UNKNOWN,
        op,
    }
}

/// Removes the record of a rank.
async fn remove(crew: &Crew, process: &Process, rank: usize) {
    let (name, shard) = &by_rank(crew, process).await[rank];
    let nonce = records(process).await[rank].as_ref().unwrap().nonce;
    let mut link = shard.connect_locks(LockLane::Work, None).await.unwrap();
    let key = key_at(process, name).await;
    let release = request(key, Op::Release { nonce });
    link.call(&[release]).await.unwrap();
    assert!(records(process).await[rank].is_none());
}

/// Has the shard grant `key` to another client.
async fn granted_to_another(shard: &MemoryShard, key: LockKey) -> Nonce {
    let nonce = Nonce {
        client: ClientId(99),
        sequence: 1,
    };
    let op = Op::Acquire {
        nonce,
        label: Label::new("an attempt"),
        lease: LEASE,
        mode: LockMode::Exclusive,
        preferred: false,
        tokens: 1,
        ticket: None,
        proof: None,
    };
    let mut link = shard.connect_locks(LockLane::Work, None).await.unwrap();
    link.call(&[request(key, op)]).await.unwrap();
    nonce
}

fn waits(process: &Process) -> JoinHandle<Guard> {
    let engine = process.engine.clone();
    tokio::spawn(async move { acquire_as(&engine, lock()).await })
}

/// Waits until `condition` holds, for at most `length`.
async fn within(length: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + length;
    while !condition().await {
        assert!(Instant::now() < deadline, "not within {length:?}: {what}");
        sleep(SECOND / 10).await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_all_ranks_have_failed_a_majority_that_is_back_grants() {
    for dead in 0..3 {
        let mut crew = crew().await;
        let process = crew.process().await;
        let ranks = by_rank(&crew, &process).await;
        for (_, shard) in &ranks {
            away(shard, true);
        }
        let waiter = waits(&process);
        sleep(5 * SECOND).await;
        assert!(!waiter.is_finished());
        for (rank, (_, shard)) in ranks.iter().enumerate() {
            away(shard, rank == dead);
        }
        let guard = timeout(FOR_EVER, waiter).await;
        let guard = guard.unwrap_or_else(|_| panic!("never, without rank {dead}"));
        assert_eq!(guard.unwrap().replicas().live, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_keeps_no_rank_whose_record_the_holder_has_lost() {
    let mut crew = crew().await;
    let [holding, waiting, second, third] = crew.processes().await;
    let ranks = by_rank(&crew, &holding).await;
    let guard = acquire_as(&holding, lock()).await;
    let waiters = [waits(&waiting), waits(&second), waits(&third)];
    sleep(SECOND).await;
    let (first, shard) = &ranks[0];
    away(shard, true);
    sleep(LEASE + 5 * SECOND).await;
    // The waiters come first.
    holding.wires[first].mute(true);
    away(shard, false);
    let client = async || {
        records(&waiting).await[0]
            .as_ref()
            .map(|its| its.nonce.client)
    };
    let is_taken = async || client().await.is_some();
    within(10 * SECOND, "the waiter has it", is_taken).await;
    holding.wires[first].mute(false);
    let is_whole = async || guard.replicas().live == 3;
    within(LEASE, "the holder has all again", is_whole).await;
    assert!(guard.is_held() && waiters.iter().all(|waiter| !waiter.is_finished()));
    guard.release().await;
    // In any order: whoever has a record has it in its place.
    let mut turns: FuturesUnordered<_> = waiters.into_iter().collect();
    while let Some(next) = timeout(FOR_EVER, turns.next()).await.expect("a turn") {
        next.unwrap().release().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fixed_hold_ends_at_ranks_that_were_put_back() {
    let mut crew = crew().await;
    let process = crew.process().await;
    let hold_for = 3 * LEASE;
    let ask = Acquire {
        hold_for: Some(hold_for),
        ..lock()
    };
    let guard = acquire_as(&process, ask).await;
    let begun = Instant::now();
    for rank in [0, 1] {
        remove(&crew, &process, rank).await;
        let is_back = async || records(&process).await[rank].is_some();
        within(hold_for, "written again", is_back).await;
        // Of the others, a majority is renewed: they were there when the next one was last seen.
        sleep(LEASE / 2).await;
    }
    assert!(guard.is_held());
    sleep(hold_for - begun.elapsed()).await;
    let none = async || records(&process).await.iter().all(Option::is_none);
    within(SECOND, "no record is left", none).await;
}

#[tokio::test(start_paused = true)]
async fn an_inspection_shows_the_holder_of_a_majority() {
    let mut crew = crew().await;
    let [holding, waiting, looking] = crew.processes().await;
    let ranks = by_rank(&crew, &holding).await;
    let guard = acquire_as(&holding, lock()).await;
    let (first, shard) = &ranks[0];
    holding.wires[first].cut();
    shard.faults().forget();
    let waiter = waits(&waiting);
    let others = async || records(&looking).await[0].is_some();
    within(FOR_EVER, "the waiter has a rank", others).await;
    let found = looking.inspect(&LEDGER, b"key").await.unwrap();
    let holder = found.holder.expect("it is held");
    assert_eq!(holder.token, guard.token());
    // One rank of the holder, and one that gives no answer: nobody can tell.
    away(&ranks[1].1, true);
    let found = looking.inspect(&LEDGER, b"key").await;
    let unknown = found.expect_err("no majority");
    assert!(unknown.to_string().contains("majority"), "{unknown}");
    waiter.abort();
}

#[tokio::test(start_paused = true)]
async fn what_was_released_by_force_is_not_put_back() {
    let mut crew = crew().await;
    let [holding, other, operating] = crew.processes().await;
    let ranks = by_rank(&crew, &holding).await;
    let (second, third) = (&ranks[1].0, &ranks[2].0);
    let guard = acquire_as(&holding, lock()).await;
    // The operator does not reach the third rank; the holder hears from the second one late.
    let dead = crew.another_server();
    away(&dead, true);
    operating.wires[third].lead_to(dead);
    holding.wires[second].mute(true);
    let released = operating.force_release(&LEDGER, b"key", "a test").await;
    assert_eq!(released.unwrap().len(), 1);
    acquire_as(&other, lock()).await.release().await;
    sleep(2 * LEASE / 3).await;
    holding.wires[second].mute(false);
    within(LEASE, "it is lost", async || !guard.is_held()).await;
    let none = async || records(&other).await.iter().all(Option::is_none);
    within(SECOND, "no record is left", none).await;
}

/// The holder writes its record again where memory was lost. With the one that the operator did not reach, that would be a
/// majority.
#[tokio::test(start_paused = true)]
async fn what_was_released_by_force_is_not_held_by_a_record_that_was_put_back() {
    let mut crew = crew().await;
    let [holding, operating] = crew.processes().await;
    let ranks = by_rank(&crew, &holding).await;
    let guard = acquire_as(&holding, lock()).await;
    let dead = crew.another_server();
    away(&dead, true);
    operating.wires[&ranks[2].0].lead_to(dead);
    let released = operating.force_release(&LEDGER, b"key", "a test").await;
    assert_eq!(released.unwrap().len(), 1);
    ranks[1].1.faults().forget();
    within(LEASE, "it is lost", async || !guard.is_held()).await;
    let none = async || records(&holding).await.iter().all(Option::is_none);
    within(SECOND, "no record is left", none).await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_fails_once_is_released_by_force() {
    let mut crew = crew().await;
    let [holding, operating] = crew.processes().await;
    let ranks = by_rank(&crew, &holding).await;
    away(&ranks[2].1, true);
    let guard = acquire_as(&holding, lock()).await;
    away(&ranks[2].1, false);
    ranks[1].1.faults().lose_request(Lane::Work, 1);
    let released = operating.force_release(&LEDGER, b"key", "a test").await;
    assert_eq!(released.unwrap().len(), 1);
    within(LEASE, "it is lost", async || !guard.is_held()).await;
}

/// A holder of a bare majority has one of its two records out of the operator's reach. It would write the other again.
#[tokio::test(start_paused = true)]
async fn nothing_is_released_by_force_if_the_holder_may_be_out_of_reach() {
    let mut crew = crew().await;
    let [holding, operating] = crew.processes().await;
    let ranks = by_rank(&crew, &holding).await;
    let (second, third) = (&ranks[1].0, &ranks[2]);
    away(&third.1, true);
    let guard = acquire_as(&holding, lock()).await;
    holding.wires[&third.0].mute(true);
    away(&third.1, false);
    let dead = crew.another_server();
    away(&dead, true);
    operating.wires[second].lead_to(dead);
    let refused = operating.force_release(&LEDGER, b"key", "a test").await;
    assert!(
        matches!(refused, Err(AcquireError::NoMajority { .. })),
        "{refused:?}"
    );
    let recorded = records(&holding).await;
    assert_eq!(recorded.iter().flatten().count(), 2, "{recorded:?}");
    assert!(guard.is_held());
}

/// Its process counts on it, and asks for others.
#[tokio::test(start_paused = true)]
async fn a_forced_release_leaves_what_an_attempt_was_granted() {
    let mut crew = crew().await;
    let [holding, operating] = crew.processes().await;
    let (third, shard) = by_rank(&crew, &holding).await.remove(2);
    let _guard = acquire_as(&holding, lock()).await;
    let key = key_at(&holding, &third).await;
    holding.wires[&third].mute(true);
    remove(&crew, &operating, 2).await;
    let nonce = granted_to_another(&shard, key).await;
    let released = operating.force_release(&LEDGER, b"key", "a test").await;
    assert_eq!(released.unwrap().len(), 1);
    let left = records(&operating).await;
    assert!(left[0].is_none() && left[1].is_none(), "{left:?}");
    assert_eq!(left[2].as_ref().map(|its| its.nonce), Some(nonce));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_gone_is_written_again_while_a_majority_is_renewed() {
    let mut crew = crew().await;
    let process = crew.process().await;
    let guard = acquire_as(&process, lock()).await;
    remove(&crew, &process, 0).await;
    let is_whole = async || records(&process).await[0].is_some();
    within(LEASE, "it is written again", is_whole).await;
    assert!(guard.is_held());
}

/// The others were renewed since: it was no release by force.
#[tokio::test(start_paused = true)]
async fn a_lock_whose_record_was_gone_is_kept_when_another_replica_loses_its_memory_later() {
    let mut crew = crew().await;
    let process = crew.process().await;
    let ranks = by_rank(&crew, &process).await;
    let guard = acquire_as(&process, lock()).await;
    let key = key_at(&process, &ranks[0].0).await;
    remove(&crew, &process, 0).await;
    // The record cannot be written again there.
    granted_to_another(&ranks[0].1, key).await;
    sleep(2 * LEASE / 3).await;
    ranks[1].1.faults().forget();
    sleep(2 * LEASE).await;
    assert!(guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_lock_taken_up_is_released_at_a_rank_that_has_not_confirmed() {
    let mut crew = crew().await;
    let [granted, next] = crew.processes().await;
    let ranks = by_rank(&crew, &granted).await;
    let lease = acquire_as(&granted, lock()).await.detach();
    let reference = lease.reference();
    let first = &next.wires[&ranks[0].0];
    first.mute(true);
    let taken = next.resume(&reference, SECOND).await.unwrap();
    let taken = taken.expect("it is held");
    taken.release().await;
    first.mute(false);
    let none = async || records(&granted).await.iter().all(Option::is_none);
    within(SECOND, "no record is left", none).await;
}
