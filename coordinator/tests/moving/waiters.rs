//! Waiters while the slot moves: each queues again at the next shard.

use ringfence_coordinator::limits::TICKET_KEEP;
use tokio::{
    task::JoinSet,
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

/// Whether they waited at the former shard or came to the next: none is lost, and none waits for
/// more than a few re-checks.
#[tokio::test(start_paused = true)]
async fn every_waiter_gets_its_turn_though_nobody_tells_the_next_shard_of_it() {
    for listed in [false, true] {
        for went_along in [false, true] {
            let ring = Ring::new().await;
            let (holder, waiters) = crowd(&ring).await;
            let guard = holder.acquire().await;
            let mut turns = JoinSet::new();
            for waiter in &waiters[..3] {
                turns.spawn(waiter.waits().await);
            }
            ring.set_out().await;
            for waiter in &waiters[3..] {
                turns.spawn(waiter.waits().await);
            }
            if listed {
                ring.list().await;
            }
            if went_along {
                sleep(SOON).await;
                assert!(ring.holder(ring.b()).await.is_some());
            }
            guard.release().await;
            let mut last = None;
            while !turns.is_empty() {
                let turn = timeout(2 * SECOND, turns.join_next()).await;
                let guard = turn.expect("a turn").unwrap().unwrap().unwrap();
                assert!(Some(guard.token()) > last, "tokens rise");
                last = Some(guard.token());
                assert!(ring.holder(ring.a()).await.is_none());
                sleep(10 * MILLISECOND).await;
                guard.release().await;
            }
        }
    }
}

/// The mover may be slow: no waiter is lost, however long it takes.
#[tokio::test(start_paused = true)]
async fn waiters_of_a_sealed_slot_outlast_a_next_shard_that_is_away() {
    let ring = Ring::new().await;
    let (holder, waiters) = crowd(&ring).await;
    let guard = holder.acquire().await;
    let mut turns = JoinSet::new();
    for waiter in &waiters[..3] {
        turns.spawn(waiter.waits().await);
    }
    ring.set_out().await;
    ring.b().faults().unreachable(true);
    sleep(2 * TICKET_KEEP).await;
    ring.b().faults().unreachable(false);
    guard.release().await;
    while !turns.is_empty() {
        let turn = timeout(5 * SECOND, turns.join_next()).await;
        turn.expect("a turn")
            .unwrap()
            .unwrap()
            .unwrap()
            .release()
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_the_lock_of_a_holder_that_moved_along() {
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
async fn a_waiter_that_gives_up_during_a_move_leaves_nothing_anywhere() {
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
