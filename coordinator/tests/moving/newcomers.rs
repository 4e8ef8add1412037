//! Requests for a lock while its slot is migrating.

use ringfence_coordinator::engine::AcquireError;
use tokio::time::{Instant, sleep};

use super::{MILLISECOND, Ring, SOON};

#[tokio::test(start_paused = true)]
async fn before_the_list_the_former_shards_word_is_proof() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    ring.set_out().await;
    let guard = one.try_acquire().await.unwrap();
    let there = ring.holder(ring.b()).await.expect("granted there");
    assert_eq!(there.token, guard.token());
    assert!(ring.holder(ring.a()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn with_the_list_the_new_shard_needs_no_proof() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    ring.set_out().await;
    ring.list().await;
    sleep(MILLISECOND).await;
    ring.a().faults().unreachable(true);
    let guard = one.try_acquire().await.unwrap();
    assert!(ring.holder(ring.b()).await.is_some());
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_key_held_at_the_former_shard_is_not_granted() {
    let ring = Ring::new().await;
    let (one, two) = (ring.process(1).await, ring.process(2).await);
    let guard = one.acquire().await;
    ring.set_out().await;
    for listed in [false, true] {
        let refused = two.try_acquire().await.unwrap_err();
        assert!(
            matches!(refused, AcquireError::Moving { .. }),
            "{refused:?}"
        );
        assert!(refused.is_retryable());
        if !listed {
            ring.list().await;
        }
    }
    guard.release().await;
    drop(two.try_acquire().await.unwrap());
}

/// A mover may be done with a slot before it says in the record that the list was told.
#[tokio::test(start_paused = true)]
async fn a_slot_that_arrived_before_its_record_is_found_at_once() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    ring.set_out().await;
    ring.move_over().await;
    let asked = Instant::now();
    let guard = one.acquire().await;
    assert!(asked.elapsed() <= MILLISECOND, "{:?}", asked.elapsed());
    assert!(ring.holder(ring.b()).await.is_some());
    drop(guard);
}

/// A client with an old picture of the ring learns of the move from the shards.
#[tokio::test(start_paused = true)]
async fn after_the_move_the_new_shard_grants() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    one.acquire().await.release().await;
    ring.set_out().await;
    ring.list().await;
    ring.arrive().await;
    let guard = one.acquire().await;
    assert!(ring.holder(ring.b()).await.is_some());
    sleep(SOON).await;
    assert!(guard.is_held());
}
