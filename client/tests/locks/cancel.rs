//! Dropping a future at any await leaves nothing locked and loses nothing.

use std::{cell::Cell, time::Duration};

use ringfence_client::Client;
use ringfence_conformance::cancel::dropped_after;
use ringfence_coordinator::shard::Lane;
use ringfence_test_support::cancel;
use tokio::{task::yield_now, time::sleep};

use super::{SECOND, client_of, faults, freed_within, held};

/// A shard that takes its time, so that a request is under way for many turns.
async fn slow_client() -> Client {
    let client = client_of(1).await;
    faults(&client).latency(Duration::from_millis(5)..Duration::from_millis(9));
    client
}

/// In one turn every ready task progresses, in the next one time passes.
fn turns() -> impl AsyncFn() {
    let passes = Cell::new(false);
    async move || {
        if passes.replace(!passes.get()) {
            sleep(Duration::from_millis(1)).await;
        } else {
            yield_now().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_acquire_dropped_after_any_turn_holds_nothing() {
    let client = slow_client().await;
    cancel::a_dropped_acquire_holds_nothing(&client, &client, &turns()).await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_dropped_after_any_turn_holds_nothing() {
    let client = slow_client().await;
    cancel::a_dropped_wait_holds_nothing(&client, &client, &turns()).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_dropped_after_any_turn_still_releases() {
    let client = slow_client().await;
    cancel::a_dropped_release_releases(&client, &client, &turns()).await;
}

/// Only a task that waits for it learns of the loss.
#[tokio::test(start_paused = true)]
async fn a_dropped_release_that_was_lost_is_sent_again() {
    for lost_after in 1..16 {
        let client = slow_client().await;
        let guard = held(&client, "key").await;
        faults(&client).lose_request(Lane::Work, 1);
        let released = dropped_after(lost_after, turns(), guard.release()).await;
        assert_eq!(released, None);
        freed_within(&client, "key", 5 * SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_for_danger_or_loss_has_no_effect() {
    let client = slow_client().await;
    cancel::dropped_notices_lose_nothing(&client, &turns()).await;
}
