//! A waiter keeps its place while the slot moves.

use std::time::Duration;

use ringfence_coordinator::{engine::Guard, limits::TICKET_KEEP};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{MILLISECOND, Process, Ring, SECOND, SOON};

async fn crowd(ring: &Ring) -> (Process, Vec<Process>) {
    let holder = ring.process(1).await;
    let mut waiters = Vec::new();
    for number in 2..7 {
        waiters.push(ring.process(number).await);
    }
    (holder, waiters)
}

/// Each gets its turn within `patience` of the one before, and does `held` while it has the lock.
async fn come_in_order(turns: Vec<JoinHandle<Guard>>, patience: Duration, held: impl AsyncFn()) {
    let mut last = None;
    for turn in turns {
        let guard = timeout(patience, turn).await.expect("its turn").unwrap();
        assert!(Some(guard.token()) > last, "in order");
        last = Some(guard.token());
        held().await;
        guard.release().await;
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_come_in_their_order_and_before_who_came_to_the_new_shard() {
    for released_before_the_list in [false, true] {
        let ring = Ring::new().await;
        let (holder, waiters) = crowd(&ring).await;
        let guard = holder.acquire().await;
        let mut turns = Vec::new();
        for waiter in &waiters[..3] {
            turns.push(waiter.waits().await);
        }
        ring.set_out().await;
        for waiter in &waiters[3..] {
            turns.push(waiter.waits().await);
        }
        let guard = match released_before_the_list {
            true => {
                guard.release().await;
                None
            }
            false => Some(guard),
        };
        ring.list().await;
        drop(guard);
        come_in_order(turns, 2 * SECOND, async || sleep(10 * MILLISECOND).await).await;
    }
}

/// The former shard sends its waiters on one by one; newcomers of the next shard wait until none is
/// left there.
#[tokio::test(start_paused = true)]
async fn without_a_list_waiters_come_in_their_order_and_before_who_came_to_the_new_shard() {
    let ring = Ring::new().await;
    let (holder, waiters) = crowd(&ring).await;
    let guard = holder.acquire().await;
    let mut turns = Vec::new();
    for waiter in &waiters[..3] {
        turns.push(waiter.waits().await);
    }
    ring.set_out().await;
    for waiter in &waiters[3..] {
        turns.push(waiter.waits().await);
    }
    assert_eq!(ring.waiting(ring.b()).await, 2, "they came there first");
    guard.release().await;
    let held = async || {
        assert!(ring.holder(ring.a()).await.is_none());
        sleep(10 * MILLISECOND).await;
    };
    come_in_order(turns, 5 * SECOND, held).await;
}

/// The mover may be slow: nobody loses the place that it asks for again.
#[tokio::test(start_paused = true)]
async fn who_waits_in_a_sealed_slot_keeps_its_place_until_the_list_comes() {
    let ring = Ring::new().await;
    let (holder, waiters) = crowd(&ring).await;
    let guard = holder.acquire().await;
    let mut turns = Vec::new();
    for waiter in &waiters[..3] {
        turns.push(waiter.waits().await);
    }
    ring.plan().await;
    let last = ring.seal().await;
    ring.import(last).await;
    for waiter in &waiters[3..] {
        turns.push(waiter.waits().await);
    }
    ring.b().faults().unreachable(true);
    sleep(2 * TICKET_KEEP).await;
    assert_eq!(ring.waiting(ring.a()).await, 3);
    ring.b().faults().unreachable(false);
    ring.list().await;
    guard.release().await;
    come_in_order(turns, 20 * SECOND, async || {}).await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_what_a_holder_that_went_along_gives_back() {
    let ring = Ring::new().await;
    let (holder, waiters) = crowd(&ring).await;
    let guard = holder.acquire().await;
    let turn = waiters[0].waits().await;
    ring.set_out().await;
    ring.list().await;
    sleep(SOON).await;
    assert!(ring.holder(ring.b()).await.is_some());
    assert_eq!(ring.waiting(ring.b()).await, 1);
    guard.release().await;
    let guard = timeout(2 * SECOND, turn).await.expect("its turn").unwrap();
    assert!(guard.is_held());
    ring.arrive().await;
    sleep(SOON).await;
    assert!(guard.is_held());
}

/// The grant came from the former shard, just before it was sealed.
#[tokio::test(start_paused = true)]
async fn a_turn_at_the_former_shard_counts_there() {
    let ring = Ring::new().await;
    let (holder, waiters) = crowd(&ring).await;
    let guard = holder.acquire().await;
    let turn = waiters[0].waits().await;
    ring.plan().await;
    guard.release().await;
    let last = ring.seal().await;
    ring.import(last).await;
    let guard = timeout(SECOND, turn).await.expect("its turn").unwrap();
    assert!(ring.holder(ring.a()).await.is_some());
    ring.list().await;
    sleep(SOON).await;
    assert!(guard.is_held());
    assert!(ring.holder(ring.b()).await.is_some(), "it went along");
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_on_the_way_leaves_nothing_anywhere() {
    let ring = Ring::new().await;
    let (holder, waiters) = crowd(&ring).await;
    let guard = holder.acquire().await;
    let turn = waiters[0].waits().await;
    ring.set_out().await;
    sleep(2 * SECOND).await;
    turn.abort();
    sleep(SECOND).await;
    assert_eq!(ring.waiting(ring.a()).await, 0);
    assert_eq!(ring.waiting(ring.b()).await, 0);
    guard.release().await;
    assert!(ring.holder(ring.a()).await.is_none());
    assert!(ring.holder(ring.b()).await.is_none());
}
