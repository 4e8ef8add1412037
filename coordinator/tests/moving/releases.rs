//! A release on the way goes wherever something of the lock may be.

use ringfence_coordinator::shard::Lane;
use tokio::time::sleep;

use super::{MILLISECOND, Ring, SECOND, SOON};

#[tokio::test(start_paused = true)]
async fn a_release_behind_an_unanswered_adoption_leaves_nothing() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    let guard = one.acquire().await;
    ring.set_out().await;
    ring.b().faults().lose_reply(Lane::Renew, 1);
    while ring.holder(ring.b()).await.is_none() {
        sleep(100 * MILLISECOND).await;
    }
    assert!(ring.holder(ring.a()).await.is_some(), "held here alone");
    guard.release().await;
    sleep(SECOND).await;
    assert!(ring.holder(ring.a()).await.is_none());
    assert!(ring.holder(ring.b()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_record_that_was_not_removed_is_released_too() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    let guard = one.acquire().await;
    ring.set_out().await;
    // The first is the renewal that tells of the move, the second removes the former record.
    ring.a().faults().lose_request(Lane::Renew, 2);
    sleep(SOON).await;
    assert!(ring.holder(ring.b()).await.is_some());
    assert!(ring.holder(ring.a()).await.is_some(), "not taken away");
    guard.release().await;
    sleep(SECOND).await;
    assert!(ring.holder(ring.a()).await.is_none());
    assert!(ring.holder(ring.b()).await.is_none());
    assert_eq!(one.engine.held(), 0);
}
