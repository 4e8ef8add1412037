//! Futures that a client's user may drop, dropped after every turn: no lock stays held, none is
//! lost.
//!
//! Each check takes two clients of the same shards, possibly equal, and the length of a turn.

use std::{future::pending, time::Duration};

use ringfence_client::{Client, Guard, ReleaseAnswer};
use ringfence_conformance::cancel::{after_every_turn, dropped_after};
use tokio::time::sleep;

/// Far less than a lease: a lock that is free by then was released, and has not expired.
const PROMPTLY: Duration = Duration::from_secs(10);

/// Renewed while other futures are dropped.
const SHORT: Duration = Duration::from_secs(1);

/// How long a lock is held while another client waits for it, in turns.
const TURNS_HELD: usize = 12;

/// A lock that was granted or not when its caller left is released.
pub async fn a_dropped_acquire_holds_nothing(
    client: &Client,
    other: &Client,
    turn: &impl AsyncFn(),
) {
    let bystander = bystander(client).await;
    after_every_turn("an acquire", async |turns| {
        let key = format!("acquired/{turns}");
        let acquired = dropped_after(turns, turn, client.lock(&key).acquire()).await;
        let done = acquired.is_some();
        drop(acquired);
        is_free_promptly(other, &key).await;
        done
    })
    .await;
    assert_eq!(bystander.release().await, ReleaseAnswer::Held);
}

/// None of a set of locks stays held, whichever of them were granted when its caller left.
pub async fn a_dropped_multi_lock_holds_nothing(
    client: &Client,
    other: &Client,
    turn: &impl AsyncFn(),
) {
    let bystander = bystander(client).await;
    after_every_turn("a set of locks", async |turns| {
        let keys = [0, 1, 2, 3].map(|index| format!("set/{turns}/{index}"));
        let acquired = dropped_after(turns, turn, client.multi_lock(&keys).acquire()).await;
        let done = acquired.is_some();
        drop(acquired);
        for key in &keys {
            is_free_promptly(other, key).await;
        }
        done
    })
    .await;
    assert_eq!(bystander.release().await, ReleaseAnswer::Held);
}

/// A waiter that gives up before or during the release does not block another waiter.
pub async fn a_dropped_wait_holds_nothing(client: &Client, other: &Client, turn: &impl AsyncFn()) {
    let bystander = bystander(client).await;
    after_every_turn("an acquire of a held lock", async |turns| {
        let holder = other.lock("waited for").acquire().await.unwrap();
        let lock = client.lock("waited for");
        let held_for_a_while = async {
            for _ in 0..TURNS_HELD {
                turn().await;
            }
            drop(holder);
        };
        let waiting = dropped_after(turns, turn, lock.acquire());
        let (waited, ()) = tokio::join!(waiting, held_for_a_while);
        let done = waited.is_some();
        drop(waited);
        is_free_promptly(other, "waited for").await;
        done
    })
    .await;
    assert_eq!(bystander.release().await, ReleaseAnswer::Held);
}

/// A release takes effect even if its caller does not wait for the answer.
pub async fn a_dropped_release_releases(client: &Client, other: &Client, turn: &impl AsyncFn()) {
    let bystander = bystander(client).await;
    after_every_turn("a release", async |turns| {
        let key = format!("released/{turns}");
        let guard = client.lock(&key).acquire().await.unwrap();
        let released = dropped_after(turns, turn, guard.release()).await;
        is_free_promptly(other, &key).await;
        released.is_some()
    })
    .await;
    assert_eq!(bystander.release().await, ReleaseAnswer::Held);
}

/// A guard is renewed even if every future made from it is dropped.
pub async fn dropped_notices_lose_nothing(client: &Client, turn: &impl AsyncFn()) {
    let guard = client.lock("noticed").lease(SHORT).acquire().await.unwrap();
    for turns in 0..64 {
        assert_eq!(dropped_after(turns, turn, guard.lost()).await, None);
        dropped_after(turns, turn, guard.danger()).await;
        let work = guard.run_while_held(pending::<()>());
        assert_eq!(dropped_after(turns, turn, work).await, None);
    }
    sleep(2 * SHORT).await;
    assert!(guard.is_held());
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}

/// A lock that is only renewed.
async fn bystander(client: &Client) -> Guard {
    let lock = client.lock("bystander").lease(SHORT);
    lock.acquire().await.unwrap()
}

async fn is_free_promptly(client: &Client, key: &str) {
    let guard = client.lock(key).wait(PROMPTLY).acquire().await;
    let guard = guard.unwrap_or_else(|error| panic!("{key} is still locked: {error}"));
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
}
