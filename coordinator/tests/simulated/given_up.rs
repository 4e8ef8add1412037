//! Waiting ends at any point, and leaves nothing behind.

use std::{cell::Cell, time::Duration};

use ringfence_conformance::cancel::{after_every_turn, dropped_after};
use ringfence_coordinator::engine::{AcquireError, Wait};
use tokio::{
    task::yield_now,
    time::{sleep, timeout},
};

use super::{
    AT_ONCE, Crew, MILLISECOND, SECOND, acquire, ask, handing_on, recorded, try_acquire, waiting,
};

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_is_passed_over_at_once() {
    let mut crew = Crew::new().await;
    let [one, two, three] = crew.processes().await;
    let guard = acquire(&one).await;
    let gives_up = waiting(&two).await;
    let waiter = waiting(&three).await;
    gives_up.abort();
    sleep(MILLISECOND).await;
    assert_eq!(two.held(), 0);
    guard.release().await;
    drop(timeout(AT_ONCE, waiter).await.expect("its turn").unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_leaves_no_place_in_the_queue() {
    let mut crew = Crew::new().await;
    let [one, two] = crew.processes().await;
    let guard = acquire(&one).await;
    let gave_up = two.acquire(ask("key", Wait::For(SECOND))).await;
    let Err(AcquireError::TimedOut { because, .. }) = gave_up else {
        panic!("{gave_up:?}")
    };
    assert!(matches!(*because, AcquireError::Held { .. }), "{because:?}");
    sleep(MILLISECOND).await;
    guard.release().await;
    // A grant to a ticket that is left would be there for its claim.
    assert!(recorded(&one).await.is_none());
}

/// What was on its way to a wait that ended is nothing to the next one for the same key.
#[tokio::test(start_paused = true)]
async fn a_turn_of_a_former_waiter_is_not_taken_by_a_present_one() {
    let mut crew = Crew::new().await;
    let [one, two, three] = crew.processes().await;
    let guard = acquire(&one).await;
    let gives_up = waiting(&two).await;
    two.wire.delay_notifications(SECOND / 2);
    guard.release().await;
    gives_up.abort();
    sleep(MILLISECOND).await;
    let guard = try_acquire(&three).await.unwrap();
    let mut waiter = waiting(&two).await;
    let heard = timeout(SECOND, &mut waiter).await;
    assert!(heard.is_err(), "{heard:?} while {guard:?} is held");
    guard.release().await;
    drop(timeout(SECOND, waiter).await.expect("its turn").unwrap());
}

/// Its place in the queue serves the waiters of its process behind it.
#[tokio::test(start_paused = true)]
async fn a_process_keeps_its_place_when_its_first_waiter_leaves() {
    let mut crew = Crew::new().await;
    let [one, two, three] = crew.processes().await;
    let guard = acquire(&one).await;
    let leaves = waiting(&two).await;
    let mut behind = waiting(&three).await;
    let stays = waiting(&two).await;
    leaves.abort();
    sleep(MILLISECOND).await;
    guard.release().await;
    let guard = timeout(AT_ONCE, stays).await.expect("its turn").unwrap();
    assert!(timeout(SECOND, &mut behind).await.is_err());
    drop(guard);
    drop(behind.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_asks_once_is_refused_and_leaves_no_place() {
    let mut crew = Crew::new().await;
    let [one, two] = crew.processes().await;
    let guard = acquire(&one).await;
    for _ in 0..3 {
        let refused = try_acquire(&two).await;
        assert!(
            matches!(refused, Err(AcquireError::Held { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(two.held(), 0);
    guard.release().await;
    assert!(recorded(&one).await.is_none());
    drop(try_acquire(&two).await.unwrap());
}

/// A waiter that comes behind it waits from the first answer on.
#[tokio::test(start_paused = true)]
async fn a_waiter_behind_one_that_asked_once_queues_at_once() {
    let mut crew = Crew::new().await;
    let [one, two, three] = crew.processes().await;
    crew.faults().latency(5 * MILLISECOND..6 * MILLISECOND);
    let guard = acquire(&one).await;
    let engine = two.engine.clone();
    let once = tokio::spawn(async move { try_acquire(&engine).await });
    let patient = waiting(&two).await;
    assert!(once.await.unwrap().is_err());
    sleep(100 * MILLISECOND).await;
    let behind = waiting(&three).await;
    sleep(100 * MILLISECOND).await;
    guard.release().await;
    let guard = timeout(AT_ONCE, patient).await.expect("its turn").unwrap();
    assert!(!behind.is_finished());
    drop(guard);
    drop(behind.await.unwrap());
}

/// In one turn every ready task progresses, in the next one time passes.
fn turns() -> impl AsyncFn() {
    let passes = Cell::new(false);
    async move || {
        if passes.replace(!passes.get()) {
            sleep(MILLISECOND).await;
        } else {
            yield_now().await;
        }
    }
}

/// Dropped before, in, and after its place in the queue, before and after its turn has come.
#[tokio::test(start_paused = true)]
async fn a_wait_dropped_after_any_turn_leaves_nothing_at_the_shard() {
    for max in [0, 64] {
        let sharing = || handing_on(max, SECOND);
        after_every_turn("a wait for another process", async |dropped| {
            let mut crew = Crew::new().await;
            let (one, two) = (crew.sharing(sharing()).await, crew.sharing(sharing()).await);
            crew.faults().latency(5 * MILLISECOND..9 * MILLISECOND);
            let guard = acquire(&one).await;
            let release = tokio::spawn(async move {
                sleep(20 * MILLISECOND).await;
                guard.release().await;
            });
            let wait = two.acquire(ask("key", Wait::Forever));
            let granted = dropped_after(dropped, turns(), wait).await;
            let done = granted.is_some();
            release.await.unwrap();
            drop(granted);
            sleep(SECOND).await;
            assert!(recorded(&one).await.is_none(), "after {dropped} turns");
            assert_eq!((one.held(), two.held()), (0, 0));
            done
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_in_the_line_dropped_after_any_turn_stops_nobody_behind_it() {
    after_every_turn("a wait in the line", async |dropped| {
        let mut crew = Crew::new().await;
        let process = crew.process().await;
        crew.faults().latency(5 * MILLISECOND..9 * MILLISECOND);
        let guard = acquire(&process).await;
        let release = tokio::spawn(async move {
            sleep(20 * MILLISECOND).await;
            guard.release().await;
        });
        let engine = process.engine.clone();
        let wait = process.acquire(ask("key", Wait::Forever));
        let behind = tokio::spawn(async move {
            sleep(Duration::from_micros(1)).await;
            acquire(&engine).await
        });
        let granted = dropped_after(dropped, turns(), wait).await;
        let done = granted.is_some();
        release.await.unwrap();
        drop(granted);
        let guard = timeout(SECOND, behind).await.expect("its turn").unwrap();
        guard.release().await;
        assert!(recorded(&process).await.is_none());
        done
    })
    .await;
}
