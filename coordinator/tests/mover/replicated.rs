//! Locks with three replicas: one holder and rising tokens, with one shard of three in trouble.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use ringfence_coordinator::{
    engine::{Acquire, AcquireError, Danger, Engine, Guard, LiveReplicas, ReleaseAnswer, Wait},
    ids::{MapVersion, Token},
    random::Random,
    shard::{Lane, List, LockLane, Op, Request, Shard as _},
    topology::Namespaces,
};
use ringfence_ring::{Replicas, ShardId};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    lockers::engine,
    replicas::ledger,
    stage::{FOR_EVER, Stage},
};

const SECOND: Duration = Duration::from_secs(1);

/// A ring of `shards`, where locks of `ledger` have three replicas; and engines that know that.
async fn scene<const N: usize>(shards: usize) -> (Arc<Stage>, [Engine; N]) {
    scene_of(shards, Replicas::Three).await
}

pub(super) async fn scene_of<const N: usize>(
    shards: usize,
    replicas: Replicas,
) -> (Arc<Stage>, [Engine; N]) {
    let mut namespaces = Namespaces::default();
    namespaces.declare(ledger(), replicas).unwrap();
    let stage = Stage::with_namespaces(shards, namespaces).await;
    let mut engines = Vec::new();
    for process in 1..=N {
        engines.push(engine(&stage.ring(), process as u128).await);
    }
    (stage, engines.try_into().ok().unwrap())
}

pub(super) async fn ask(engine: &Engine, key: &str, wait: Wait) -> Result<Guard, AcquireError> {
    let ask = Acquire {
        namespace: &ledger(),
        key: key.as_bytes(),
        lease: None,
        hold_for: None,
        wait,
        preferred: false,
        tokens: 1,
        owner: None,
        label: None,
        observer: None,
    };
    engine.acquire(ask).await
}

/// How many shards have a record of the key.
pub(super) async fn records(stage: &Stage, key: &str) -> usize {
    let mut found = 0;
    let engine = engine(&stage.ring(), 77).await;
    let mut locks = engine.locks(None);
    while let Some(page) = locks.next().await {
        let held = page.locks.unwrap_or_default();
        found += held
            .iter()
            .filter(|lock| lock.key.key() == key.as_bytes())
            .count();
    }
    engine.close(SECOND).await;
    found
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_seen_and_taken_by_force_while_a_shard_is_away() {
    for away in 0..3 {
        let (stage, [one, other]) = scene(3).await;
        let guard = ask(&one, "key", Wait::No).await.unwrap();
        stage.faults(away).unreachable(true);
        stage.faults(away).hang_up();
        let seen = other.inspect(&ledger(), b"key").await.unwrap();
        assert_eq!(seen.holder.unwrap().label.as_str(), "process 1");
        let taken = other.force_release(&ledger(), b"key", "test").await;
        let taken = taken.unwrap().into_iter();
        let labels: Vec<_> = taken.map(|holder| holder.label.to_string()).collect();
        assert_eq!(labels, ["process 1"]);
        let next = ask(&other, "key", Wait::For(5 * SECOND)).await.unwrap();
        assert!(next.token() > guard.token());
        sleep(40 * SECOND).await;
        assert!(next.is_held() && !guard.is_held());
        assert!(
            other
                .force_release(&ledger(), b"free", "test")
                .await
                .unwrap()
                .is_empty()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_at_all_its_replicas_and_leaves_nothing_behind() {
    let (stage, [one]) = scene(5).await;
    let mut last = None;
    for _ in 0..3 {
        let guard = ask(&one, "key", Wait::No).await.unwrap();
        assert!(Some(guard.token()) > last);
        last = Some(guard.token());
        sleep(SECOND).await;
        assert_eq!(records(&stage, "key").await, 3);
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
        sleep(SECOND).await;
        assert_eq!(records(&stage, "key").await, 0);
    }
    assert_eq!(one.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn others_wait_and_get_it_in_turn() {
    let (_stage, [one, other, third]) = scene(3).await;
    let guard = ask(&one, "key", Wait::No).await.unwrap();
    let refused = ask(&other, "key", Wait::No).await.unwrap_err();
    assert!(matches!(refused, AcquireError::Held { .. }), "{refused:?}");
    let late = ask(&other, "key", Wait::For(SECOND)).await.unwrap_err();
    assert!(matches!(late, AcquireError::TimedOut { .. }), "{late:?}");
    let waits = async |engine: &Engine| {
        let guard = ask(engine, "key", Wait::For(FOR_EVER)).await.unwrap();
        let token = guard.token();
        sleep(SECOND).await;
        assert!(guard.is_held());
        guard.release().await;
        token
    };
    let first = guard.token();
    let gives = async {
        sleep(3 * SECOND).await;
        guard.release().await
    };
    let (released, second, third) = tokio::join!(gives, waits(&other), waits(&third));
    assert_eq!(released, ReleaseAnswer::Held);
    assert!(first < second && first < third && second != third);
}

/// A process that gave the lock to another asks for it again, whichever replicas it had.
#[tokio::test(start_paused = true)]
async fn with_any_one_shard_away_processes_get_it_in_turn() {
    for away in 0..3 {
        let (stage, engines) = scene::<2>(3).await;
        stage.faults(away).unreachable(true);
        stage.faults(away).hang_up();
        let mut tasks = JoinSet::new();
        for process in 0..4 {
            let engine = engines[process % 2].clone();
            tasks.spawn(async move {
                for _ in 0..10 {
                    let guard = ask(&engine, "key", Wait::For(60 * SECOND)).await.unwrap();
                    sleep(SECOND).await;
                    guard.release().await;
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn with_any_one_shard_away_locks_are_granted_kept_and_released() {
    for away in 0..3 {
        let (stage, [one, other]) = scene(3).await;
        let kept = ask(&one, "kept", Wait::No).await.unwrap();
        stage.faults(away).unreachable(true);
        stage.faults(away).hang_up();
        let guard = ask(&one, "key", Wait::For(5 * SECOND)).await.unwrap();
        assert!(ask(&other, "key", Wait::For(SECOND)).await.is_err());
        sleep(100 * SECOND).await;
        assert!(guard.is_held() && kept.is_held());
        guard.release().await;
        let next = ask(&other, "key", Wait::For(5 * SECOND)).await.unwrap();
        stage.faults(away).unreachable(false);
        sleep(100 * SECOND).await;
        assert!(next.is_held() && kept.is_held());
        assert_eq!(records(&stage, "kept").await, 3);
        assert_eq!(records(&stage, "key").await, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_comes_back_empty_has_the_lock_again_and_nobody_waits_for_it() {
    let (stage, [one, other]) = scene(3).await;
    let guard = ask(&one, "key", Wait::No).await.unwrap();
    for restarted in 0..3 {
        stage.faults(restarted).restart(false);
        let another = format!("another {restarted}");
        let quick = ask(&other, &another, Wait::For(5 * SECOND)).await.unwrap();
        quick.release().await;
        assert!(ask(&other, "key", Wait::For(5 * SECOND)).await.is_err());
        sleep(100 * SECOND).await;
        assert!(guard.is_held());
        assert_eq!(records(&stage, "key").await, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_majority_nothing_is_granted_and_a_holder_learns_of_it() {
    let (stage, [one, other]) = scene(3).await;
    let guard = ask(&one, "key", Wait::No).await.unwrap();
    for away in 0..2 {
        stage.faults(away).unreachable(true);
        stage.faults(away).hang_up();
    }
    let refused = refused_within(&other, "other", 5 * SECOND).await;
    assert!(
        matches!(refused, AcquireError::TimedOut { .. }),
        "{refused:?}"
    );
    sleep(40 * SECOND).await;
    assert!(!guard.is_held());
    drop(guard);
    for away in 0..2 {
        stage.faults(away).unreachable(false);
    }
    let guard = ask(&other, "key", Wait::For(100 * SECOND)).await.unwrap();
    guard.release().await;
}

/// Why the lock is not granted to one who waits for `wait`, and is told so then.
async fn refused_within(engine: &Engine, key: &str, wait: Duration) -> AcquireError {
    let asked = Instant::now();
    let refused = ask(engine, key, Wait::For(wait)).await.unwrap_err();
    let took = asked.elapsed();
    assert!(
        took <= wait + SECOND / 10,
        "{took:?} of {wait:?}: {refused:?}"
    );
    refused
}

/// Whether the error names `count` shards.
fn names_shards(error: &AcquireError, count: usize) -> bool {
    match error {
        AcquireError::TimedOut { because, .. } => names_shards(because, count),
        AcquireError::NoMajority { shards, .. } => {
            let text = error.to_string();
            let is_named = |(id, _): &(ShardId, _)| text.contains(&format!("shard {id}"));
            shards.len() == count && shards.iter().all(is_named)
        }
        _ => false,
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_without_a_majority_names_the_shards_that_did_not_grant() {
    for stalled in [false, true] {
        let (stage, [one]) = scene(3).await;
        let connected = ask(&one, "connected", Wait::No).await.unwrap();
        connected.release().await;
        for away in 1..3 {
            match stalled {
                true => stage.faults(away).stall(),
                false => {
                    stage.faults(away).unreachable(true);
                    stage.faults(away).hang_up();
                }
            }
        }
        for wait in [SECOND / 10, 20 * SECOND] {
            let refused = refused_within(&one, "key", wait).await;
            assert!(names_shards(&refused, 2), "{refused:?}");
        }
        if !stalled {
            let refused = ask(&one, "key", Wait::No).await.unwrap_err();
            assert!(names_shards(&refused, 2), "{refused:?}");
            assert!(refused.is_retryable());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_knows_how_many_replicas_have_it_and_is_in_danger_at_a_bare_majority() {
    for (replicas, away) in [(Replicas::Three, 1), (Replicas::Five, 2)] {
        let all = replicas.get();
        let (stage, [one]) = scene_of(all as usize, replicas).await;
        let guard = ask(&one, "key", Wait::No).await.unwrap();
        let in_danger = timeout(100 * SECOND, guard.danger()).await;
        assert!(in_danger.is_err(), "{in_danger:?}");
        assert_eq!(guard.replicas(), LiveReplicas { live: all, all });
        for shard in 0..away {
            stage.faults(shard).unreachable(true);
            stage.faults(shard).hang_up();
        }
        let danger = timeout(100 * SECOND, guard.danger()).await;
        assert_eq!(danger, Ok(Danger::Thin));
        let live = all - away as u32;
        assert_eq!(guard.replicas(), LiveReplicas { live, all });
        for shard in 0..away {
            stage.faults(shard).unreachable(false);
        }
        sleep(30 * SECOND).await;
        let in_danger = timeout(100 * SECOND, guard.danger()).await;
        assert!(in_danger.is_err(), "{in_danger:?}");
        assert_eq!(guard.replicas(), LiveReplicas { live: all, all });
    }
}

#[tokio::test(start_paused = true)]
async fn five_replicas_outlast_two_shards_and_not_three() {
    let (stage, [one, other]) = scene_of(5, Replicas::Five).await;
    let kept = ask(&one, "kept", Wait::No).await.unwrap();
    for away in [1, 3] {
        stage.faults(away).unreachable(true);
        stage.faults(away).hang_up();
    }
    let guard = ask(&one, "key", Wait::For(5 * SECOND)).await.unwrap();
    assert!(ask(&other, "key", Wait::For(SECOND)).await.is_err());
    sleep(100 * SECOND).await;
    assert!(guard.is_held() && kept.is_held());
    guard.release().await;
    let next = ask(&other, "key", Wait::For(5 * SECOND)).await.unwrap();
    next.release().await;
    stage.faults(4).unreachable(true);
    stage.faults(4).hang_up();
    let refused = ask(&other, "key", Wait::For(5 * SECOND)).await.unwrap_err();
    assert!(names_shards(&refused, 3), "{refused:?}");
    sleep(40 * SECOND).await;
    assert!(!kept.is_held());
}

/// Removes the record of a lock from one shard, as nothing in Ringfence does.
async fn remove(stage: &Stage, index: usize) {
    let mut control = stage.shard(index).connect_control(None).await.unwrap();
    let page = control.list(&List::default()).await.unwrap();
    let lock = page.locks.first().expect("a record");
    let shard = stage.shard(index);
    let mut link = shard.connect_locks(LockLane::Work, None).await.unwrap();
    let release = Request {
        key: lock.key.clone(),
        map: MapVersion::UNKNOWN,
        declared: MapVersion::UNKNOWN,
        op: Op::Release {
            nonce: lock.holder.nonce,
        },
    };
    link.call(&[release]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lock_lasts_no_longer_than_a_majority_of_its_records() {
    let (stage, [one]) = scene(3).await;
    let guard = ask(&one, "key", Wait::No).await.unwrap();
    stage.faults(2).stall();
    let of_the_stalled = guard.deadline();
    while guard.deadline() <= of_the_stalled + SECOND {
        sleep(SECOND / 10).await;
    }
    remove(&stage, 1).await;
    let falls = async {
        while guard.deadline() > of_the_stalled {
            sleep(SECOND / 100).await;
        }
    };
    timeout(30 * SECOND, falls)
        .await
        .expect("a deadline that falls");
    assert!(guard.is_held());
    // The record was gone before its time: it is written again once a majority is renewed.
    stage.faults(2).resume();
    let rises = async {
        while guard.deadline() <= of_the_stalled {
            sleep(SECOND / 100).await;
        }
    };
    timeout(30 * SECOND, rises)
        .await
        .expect("a deadline that rises");
}

/// The last guard of a key, and its token.
#[derive(Debug, Default)]
struct Book(Mutex<(Option<Arc<Guard>>, Option<Token>)>);

impl Book {
    fn enter(&self, guard: Guard) -> Arc<Guard> {
        let mut book = self.0.lock();
        let former = book.0.as_ref().is_some_and(|former| former.is_held());
        assert!(!(former && guard.is_held()), "two holders");
        assert!(
            Some(guard.token()) > book.1,
            "{:?} after {:?}",
            guard.token(),
            book.1
        );
        let guard = Arc::new(guard);
        *book = (Some(guard.clone()), Some(guard.token()));
        guard
    }

    fn leave(&self, guard: Arc<Guard>) -> Guard {
        let mut book = self.0.lock();
        if book
            .0
            .as_ref()
            .is_some_and(|last| Arc::ptr_eq(last, &guard))
        {
            book.0 = None;
        }
        Arc::into_inner(guard).expect("the book has it no more")
    }
}

/// Processes that acquire one key after the other, again and again. Returns how often it was granted.
async fn contend(seed: u64, engines: &[Engine]) -> usize {
    let book = Arc::new(Book::default());
    let grants = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for (process, engine) in engines.iter().cloned().enumerate() {
        let (book, grants) = (book.clone(), grants.clone());
        let random = Random::seeded(seed * 100 + process as u64);
        tasks.spawn(async move {
            for _ in 0..30 {
                let wait = Wait::For(Duration::from_millis(1 + random.below(20_000)));
                let Ok(guard) = ask(&engine, "key", wait).await else {
                    continue;
                };
                let guard = book.enter(guard);
                grants.fetch_add(1, Relaxed);
                tokio::select! {
                    () = sleep(Duration::from_millis(random.below(3000))) => {}
                    _ = guard.lost() => {}
                }
                book.leave(guard).release().await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    grants.load(Relaxed)
}

/// One shard after the other is in trouble. Does not end.
async fn trouble(seed: u64, stage: &Stage, shards: u64) {
    let random = Random::seeded(seed);
    let ms = |from, to| Duration::from_millis(from + random.below(to - from));
    loop {
        sleep(ms(100, 8000)).await;
        let faults = stage.faults(random.below(shards) as usize);
        match random.below(7) {
            0 => faults.restart(random.below(2) == 1),
            1 => faults.hang_up(),
            2 => {
                faults.unreachable(true);
                faults.hang_up();
                sleep(ms(100, 40_000)).await;
                faults.unreachable(false);
            }
            3 => {
                faults.stall();
                sleep(ms(100, 40_000)).await;
                faults.resume();
            }
            4 => faults.latency(Duration::ZERO..ms(1, 200)),
            5 => faults.lose_reply(Lane::Work, 1 + random.below(4)),
            _ => faults.lose_reply(Lane::Renew, 1 + random.below(4)),
        }
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "long: many random faults"]
async fn in_trouble_there_is_one_holder_and_tokens_rise() {
    for seed in 0..300 {
        let (stage, engines) = scene::<4>(3).await;
        let granted = tokio::select! {
            () = trouble(seed, &stage, 3) => unreachable!("it goes on"),
            granted = timeout(100 * FOR_EVER, contend(seed, &engines)) => granted.unwrap(),
        };
        assert!(granted > 40, "seed {seed}: {granted} grants");
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "long: many random faults"]
async fn with_two_of_five_shards_in_trouble_there_is_one_holder_and_tokens_rise() {
    for seed in 0..60 {
        let (stage, engines) = scene_of::<4>(5, Replicas::Five).await;
        let granted = tokio::select! {
            () = trouble(seed, &stage, 5) => unreachable!("it goes on"),
            () = trouble(1000 + seed, &stage, 5) => unreachable!("it goes on"),
            granted = timeout(100 * FOR_EVER, contend(seed, &engines)) => granted.unwrap(),
        };
        assert!(granted > 40, "seed {seed}: {granted} grants");
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "long: many random faults"]
async fn in_trouble_while_replicas_move_there_is_one_holder_and_tokens_rise() {
    for seed in 0..60 {
        let (stage, engines) = scene::<3>(4).await;
        let resizes = async {
            for round in 0.. {
                stage.weigh(round % 4, 2 + (round as u32 / 4) % 2);
                stage.resize().await;
                // While no lock is held, a resize takes no time, and the clock would stand still.
                sleep(Duration::from_millis(100)).await;
            }
        };
        let granted = tokio::select! {
            () = trouble(seed, &stage, 4) => unreachable!("it goes on"),
            () = resizes => unreachable!("they go on"),
            granted = timeout(100 * FOR_EVER, contend(seed, &engines)) => granted.unwrap(),
        };
        assert!(granted > 20, "seed {seed}: {granted} grants");
    }
}
