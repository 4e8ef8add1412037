//! A call ends when it was to end, and leaves nothing held.

use ringfence_segment_lock::{
    Effect,
    lock::SegmentedLockError::{NotAcquired, TimedOut},
};
use tokio::time::{Instant, sleep};

use super::{SECOND, World};

#[tokio::test(start_paused = true)]
async fn one_deadline_is_for_all_of_them_together() {
    let world = World::of(4).await;
    let (lock, other) = (world.process(0), world.process(0));
    let (first, last) = (other.at(0).acquire().await, other.at(3).acquire().await);
    let started = Instant::now();
    let late = async {
        sleep(SECOND).await;
        drop(first);
    };
    let all = lock.all().wait(2 * SECOND);
    let (refused, ()) = tokio::join!(all.acquire(), late);
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, NotAcquired { segment: 3, .. }),
        "{refused:?}"
    );
    assert!((2 * SECOND..3 * SECOND).contains(&started.elapsed()));
    assert_eq!(world.locks.held(), 1, "but for the one the other has");
    drop(last);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_for_any_gets_an_answer_in_time() {
    let world = World::of(2).await;
    let _all = world.process(0).all().acquire().await.unwrap();
    let refused = world.process(0).any().wait(SECOND).acquire().await;
    let refused = refused.unwrap_err();
    assert!(refused.is_retryable() && refused.effect() == Effect::None);
    assert!(matches!(refused, NotAcquired { .. }), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_does_not_answer_keeps_nobody_for_long() {
    let world = World::of(2).await;
    let (lock, gate) = world.gated();
    gate.reads.close_after(0);
    let unknown = lock.any().wait(SECOND).acquire().await.unwrap_err();
    assert!(matches!(unknown, TimedOut { .. }), "{unknown:?}");
    assert!(unknown.is_retryable() && unknown.effect() == Effect::None);

    gate.reads.open();
    drop(lock.any().acquire().await.unwrap());
    gate.reads.close_after(0);
    sleep(5 * SECOND).await;
    let started = Instant::now();
    for _ in 0..8 {
        drop(lock.any().wait(SECOND).acquire().await.unwrap());
    }
    assert!(started.elapsed() < SECOND / 2, "what is known is gone by");
}

#[tokio::test(start_paused = true)]
async fn a_resize_that_is_not_done_in_time_may_have_been() {
    let world = World::of(2).await;
    let (lock, gate) = world.gated();
    gate.swaps.close_after(0);
    let refused = lock.resize(4).wait(SECOND).run().await.unwrap_err();
    assert!(matches!(refused, TimedOut { .. }), "{refused:?}");
    assert_eq!(refused.effect(), Effect::Unknown);
    assert_eq!(world.locks.held(), 0);
}
