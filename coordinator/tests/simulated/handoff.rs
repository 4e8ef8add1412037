//! From task to task of one process, and when to stop.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use ringfence_coordinator::engine::{Acquire, Guard, Owner, Wait};
use tokio::{
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep, timeout},
};

use super::{
    AT_ONCE, Crew, LEASE, MILLISECOND, Process, SECOND, acquire, acquire_as, ask, handing_on,
    recorded, try_acquire, waiting,
};

/// Tasks of `process` that take the lock over and over, each for `hold`, until aborted.
fn busy(process: &Process, tasks: usize, hold: Duration) -> Vec<JoinHandle<()>> {
    let task = || {
        let engine = process.engine.clone();
        tokio::spawn(async move {
            loop {
                let guard = acquire(&engine).await;
                sleep(hold).await;
                guard.release().await;
            }
        })
    };
    (0..tasks).map(|_| task()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_lock_goes_from_task_to_task_without_the_shard_and_each_has_a_token() {
    let mut crew = Crew::new().await;
    let process = crew.process().await;
    let mut guard = acquire(&process).await;
    let mut waiters = Vec::new();
    for _ in 0..50 {
        waiters.push(waiting(&process).await);
    }
    // The first had asked for itself alone: the second brings tokens for those behind it.
    guard.release().await;
    let mut waiters = waiters.into_iter();
    guard = timeout(AT_ONCE, waiters.next().unwrap())
        .await
        .unwrap()
        .unwrap();
    let before = process.wire.acquires();
    for waiter in waiters {
        let token = guard.token();
        guard.release().await;
        guard = timeout(MILLISECOND, waiter)
            .await
            .expect("its turn")
            .unwrap();
        assert!(guard.token() > token && guard.is_held());
    }
    assert_eq!(process.wire.acquires(), before);
    guard.release().await;
    assert!(recorded(&process).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_lock_handed_on_is_renewed_as_any_other() {
    let mut crew = Crew::new().await;
    let [process, other] = crew.processes().await;
    let _busy = busy(&process, 3, SECOND);
    sleep(5 * LEASE).await;
    try_acquire(&other).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn another_process_waits_for_as_many_hand_offs_as_it_may_at_most() {
    for max in [1, 5, 20] {
        let mut crew = Crew::new().await;
        let process = crew.sharing(handing_on(max, LEASE)).await;
        let other = crew.process().await;
        let _busy = busy(&process, 8, SECOND);
        sleep(100 * SECOND).await;
        let began = Instant::now();
        let waiter = waiting(&other).await;
        drop(waiter.await.unwrap());
        // One was under way.
        let most = SECOND * (max + 1) + AT_ONCE;
        assert!(began.elapsed() <= most, "{max}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn another_process_waits_for_as_long_as_hand_offs_may_go_on_at_most() {
    let mut crew = Crew::new().await;
    let process = crew.sharing(handing_on(u32::MAX, SECOND)).await;
    let other = crew.process().await;
    let _busy = busy(&process, 8, 7 * MILLISECOND);
    sleep(10 * SECOND).await;
    let began = Instant::now();
    drop(waiting(&other).await.await.unwrap());
    let waited = began.elapsed();
    assert!(
        waited >= SECOND / 2 && waited <= SECOND + 7 * MILLISECOND + AT_ONCE,
        "{waited:?}"
    );
}

/// It is told with its next renewal.
#[tokio::test(start_paused = true)]
async fn a_holder_that_was_not_told_hears_of_a_waiter_all_the_same() {
    let mut crew = Crew::new().await;
    let [process, other] = crew.processes().await;
    // Its tokens last for longer than the test.
    let _busy = busy(&process, 8, SECOND);
    sleep(5 * SECOND).await;
    crew.faults().lose_notifications(true);
    let waiter = waiting(&other).await;
    drop(
        timeout(LEASE / 2, waiter)
            .await
            .expect("by a renewal")
            .unwrap(),
    );
}

/// By the message or by the answer that says that it has it.
#[tokio::test(start_paused = true)]
async fn a_process_that_gets_a_lock_knows_at_once_that_others_wait() {
    for lost in [false, true] {
        let mut crew = Crew::new().await;
        crew.faults().lose_notifications(lost);
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        for number in 0..3 {
            let process = crew.sharing(handing_on(4, LEASE)).await;
            for _ in 0..8 {
                let (engine, order) = (process.engine.clone(), order.clone());
                tasks.spawn(async move {
                    loop {
                        let guard = acquire(&engine).await;
                        order.lock().push(number);
                        sleep(MILLISECOND).await;
                        guard.release().await;
                    }
                });
            }
        }
        sleep(20 * SECOND).await;
        let order = order.lock();
        let in_a_row = order.chunk_by(|one, next| one == next).map(<[_]>::len);
        assert_eq!(in_a_row.max(), Some(5), "{lost}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_hand_off_every_task_asks_the_shard() {
    let mut crew = Crew::new().await;
    let process = crew.sharing(handing_on(0, SECOND)).await;
    let tasks = busy(&process, 8, SECOND);
    sleep(20 * SECOND).await;
    assert!(process.wire.acquires() >= 19, "{}", process.wire.acquires());
    tasks.iter().for_each(JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn processes_with_many_tasks_take_turns() {
    let mut crew = Crew::new().await;
    let mut counts = Vec::new();
    for _ in 0..3 {
        let process = crew.sharing(handing_on(4, LEASE)).await;
        let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        for _ in 0..20 {
            let (engine, count) = (process.engine.clone(), count.clone());
            tokio::spawn(async move {
                loop {
                    let guard = acquire(&engine).await;
                    count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    sleep(SECOND).await;
                    guard.release().await;
                }
            });
        }
        counts.push(count);
    }
    sleep(600 * SECOND).await;
    let counts = counts
        .iter()
        .map(|count| count.load(std::sync::atomic::Ordering::Relaxed));
    let counts: Vec<_> = counts.collect();
    assert!(
        counts.iter().all(|count| (190..=210).contains(count)),
        "{counts:?}"
    );
}

/// What the shard shows of a holder is true: another lease, label or end is another record.
#[tokio::test(start_paused = true)]
async fn a_waiter_with_other_terms_gets_its_own_record() {
    let mut crew = Crew::new().await;
    let process = crew.process().await;
    let guard = acquire(&process).await;
    let engine = process.engine.clone();
    let other_terms = tokio::spawn(async move {
        let ask = Acquire {
            lease: Some(10 * SECOND),
            ..ask("key", Wait::Forever)
        };
        acquire_as(&engine, ask).await
    });
    sleep(MILLISECOND).await;
    let same_terms = waiting(&process).await;
    let before = recorded(&process).await.unwrap().nonce;
    guard.release().await;
    let guard = other_terms.await.unwrap();
    let remaining = guard.remaining();
    assert!(remaining <= 10 * SECOND, "{remaining:?}");
    assert_ne!(recorded(&process).await.unwrap().nonce, before);
    guard.release().await;
    let guard: Guard = same_terms.await.unwrap();
    assert!(guard.remaining() > 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_waits_enters_when_its_other_task_is_granted() {
    let mut crew = Crew::new().await;
    let [process, other] = crew.processes().await;
    let held = acquire(&other).await;
    let owner = Owner::new();
    let owned = || {
        let (engine, owner) = (process.engine.clone(), owner.clone());
        tokio::spawn(async move {
            let ask = Acquire {
                owner: Some(&owner),
                ..ask("key", Wait::Forever)
            };
            acquire_as(&engine, ask).await
        })
    };
    let (first, stranger, second) = (owned(), waiting(&process).await, owned());
    sleep(SECOND).await;
    held.release().await;
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!(first.token(), second.token());
    assert!(!stranger.is_finished());
    first.release().await;
    assert!(second.is_held() && !stranger.is_finished());
    second.release().await;
    drop(timeout(AT_ONCE, stranger).await.expect("its turn").unwrap());
}

/// Its holder loses it, and the waiters ask anew.
#[tokio::test(start_paused = true)]
async fn a_lock_lost_in_the_middle_of_a_line_goes_on_by_the_shard() {
    let mut crew = Crew::new().await;
    let process = crew.process().await;
    let guard = acquire(&process).await;
    let waiter = waiting(&process).await;
    crew.faults().stall();
    timeout(LEASE, guard.lost()).await.expect("not renewed");
    crew.faults().resume();
    let next = timeout(LEASE, waiter).await.expect("its turn").unwrap();
    assert!(next.token() > guard.token() && next.is_held());
    drop(guard);
    sleep(SECOND).await;
    assert!(next.is_held());
}
