//! Writers of one process hand a read-write lock on to each other, as holders of other locks do.

use ringfence_coordinator::{
    engine::{Acquire, AcquireError, Engine, Guard, Wait},
    shard::LockMode,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    AT_ONCE, Crew, FOR_EVER, LEASE, MILLISECOND, SECOND, ask, handing_on, holder, recorded,
};

async fn acquire_as(engine: &Engine, ask: Acquire<'_>, mode: LockMode) -> Guard {
    let granted = timeout(FOR_EVER, engine.acquire_share(ask, mode)).await;
    granted.expect("a turn").unwrap()
}

async fn acquire(engine: &Engine, mode: LockMode) -> Guard {
    acquire_as(engine, ask("key", Wait::Forever), mode).await
}

/// A task of `engine` that waits for its turn.
async fn waiting(engine: &Engine, mode: LockMode) -> JoinHandle<Guard> {
    let engine = engine.clone();
    let waiter = tokio::spawn(async move { acquire(&engine, mode).await });
    sleep(MILLISECOND).await;
    waiter
}

async fn is_held(engine: &Engine, mode: LockMode) -> bool {
    let tried = engine.acquire_share(ask("key", Wait::No), mode).await;
    matches!(tried, Err(AcquireError::Held { .. }))
}

/// How many requests wait at the shard.
async fn queued(engine: &Engine) -> usize {
    let inspected = engine.inspect(&Default::default(), b"key").await;
    inspected.unwrap().waiters.len()
}

/// Writers of `engine` that take turns, each for a second.
fn busy(engine: &Engine) {
    for _ in 0..8 {
        let engine = engine.clone();
        tokio::spawn(async move {
            loop {
                let guard = acquire(&engine, LockMode::Write).await;
                sleep(SECOND).await;
                guard.release().await;
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_lock_goes_from_task_to_task_without_the_shard_and_each_has_a_token() {
    let mut crew = Crew::new().await;
    let process = crew.process().await;
    let mut guard = acquire(&process, LockMode::Write).await;
    let mut waiters = Vec::new();
    for _ in 0..50 {
        waiters.push(waiting(&process, LockMode::Write).await);
    }
    assert_eq!(queued(&process).await, 0);
    // The first had asked for itself alone: the second brings tokens for those behind it.
    guard.release().await;
    let mut waiters = waiters.into_iter();
    let second = waiters.next().expect("there are 50");
    guard = timeout(AT_ONCE, second).await.unwrap().unwrap();
    let before = process.wire.acquires();
    for waiter in waiters {
        let token = guard.token();
        guard.release().await;
        let turn = timeout(MILLISECOND, waiter).await;
        guard = turn.expect("its turn").unwrap();
        assert!(guard.token() > token && guard.is_held());
    }
    assert_eq!(process.wire.acquires(), before);
    let newest = guard.token();
    guard.release().await;
    assert!(recorded(&process).await.is_none());
    assert!(acquire(&process, LockMode::Read).await.token() > newest);
}

/// A reader of the same process waits no longer than one of another process, and no longer than another process's writer.
#[tokio::test(start_paused = true)]
async fn others_wait_for_as_many_hand_offs_of_writers_as_there_may_be_at_most() {
    for max in [1, 5] {
        for (mode, is_of_the_same) in [
            (LockMode::Write, false),
            (LockMode::Read, false),
            (LockMode::Read, true),
        ] {
            let mut crew = Crew::new().await;
            let process = crew.sharing(handing_on(max, LEASE)).await;
            let other = crew.process().await;
            busy(&process);
            sleep(100 * SECOND).await;
            let began = Instant::now();
            let its = if is_of_the_same { &process } else { &other };
            drop(acquire(its, mode).await);
            // One was under way.
            let most = SECOND * (max + 1) + AT_ONCE;
            let waited = began.elapsed();
            assert!(waited <= most, "{max}, {mode:?}: {waited:?}");
        }
    }
}

/// The message that another process waits gets lost. The next renewal says it.
#[tokio::test(start_paused = true)]
async fn a_writer_that_was_not_told_hears_of_a_waiter_all_the_same() {
    let mut crew = Crew::new().await;
    let [process, other] = crew.processes().await;
    busy(&process);
    sleep(5 * SECOND).await;
    crew.faults().lose_notifications(true);
    let reader = timeout(LEASE / 2, acquire(&other, LockMode::Read)).await;
    drop(reader.expect("by a renewal"));
}

/// Its record is a reader's from then on. The writer that waited for it waits at the shard, and stops new readers there.
#[tokio::test(start_paused = true)]
async fn a_writer_that_becomes_a_reader_hands_nothing_on() {
    let mut crew = Crew::new().await;
    let [process, other] = crew.processes().await;
    let first = acquire(&process, LockMode::Write).await;
    let second = waiting(&process, LockMode::Write).await;
    assert_eq!(queued(&process).await, 0);
    assert!(first.downgrade());
    sleep(MILLISECOND).await;
    assert_eq!(queued(&process).await, 1);
    for its in [&process, &other] {
        assert!(is_held(its, LockMode::Read).await);
    }
    assert!(first.is_held() && !second.is_finished());
    first.release().await;
    let turn = timeout(AT_ONCE, second).await.expect("its turn");
    assert!(turn.unwrap().is_held());
}

/// Readers beside it stay readers' when it leaves.
#[tokio::test(start_paused = true)]
async fn a_writer_that_became_a_reader_leaves_as_one() {
    let mut crew = Crew::new().await;
    let [process, other] = crew.processes().await;
    let first = acquire(&process, LockMode::Write).await;
    assert!(first.downgrade());
    sleep(MILLISECOND).await;
    let reader = acquire(&other, LockMode::Read).await;
    let second = waiting(&process, LockMode::Write).await;
    first.release().await;
    sleep(SECOND).await;
    assert!(reader.is_held() && !second.is_finished());
    reader.release().await;
    let second = timeout(AT_ONCE, second).await.expect("its turn");
    second.unwrap().release().await;
    assert!(holder(&crew.shard).await.is_none());
}

/// A preferred one does not wait behind one that is not.
#[tokio::test(start_paused = true)]
async fn a_writer_on_other_terms_asks_the_shard() {
    let mut crew = Crew::new().await;
    let process = crew.process().await;
    let first = acquire(&process, LockMode::Write).await;
    let second = waiting(&process, LockMode::Write).await;
    let engine = process.engine.clone();
    let preferred = tokio::spawn(async move {
        let ask = Acquire {
            preferred: true,
            ..ask("key", Wait::Forever)
        };
        acquire_as(&engine, ask, LockMode::Write).await
    });
    sleep(MILLISECOND).await;
    assert_eq!(queued(&process).await, 1);
    first.release().await;
    let preferred = timeout(AT_ONCE, preferred).await.expect("its turn");
    assert!(!second.is_finished());
    drop(preferred.unwrap());
    drop(timeout(AT_ONCE, second).await.expect("its turn").unwrap());
}

/// One that leaves when it is handed the lock hands it on.
#[tokio::test(start_paused = true)]
async fn a_writer_that_leaves_amid_the_hand_off_leaves_nothing() {
    let mut crew = Crew::new().await;
    let [process, other] = crew.processes().await;
    let first = acquire(&process, LockMode::Write).await;
    let [second, third] = [
        waiting(&process, LockMode::Write).await,
        waiting(&process, LockMode::Write).await,
    ];
    drop(first);
    // Not polled since: it may have been granted.
    second.abort();
    drop(timeout(AT_ONCE, third).await.expect("its turn").unwrap());
    sleep(MILLISECOND).await;
    assert!(!is_held(&other, LockMode::Write).await);
}
