//! The reasons to wait, as an observer receives them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ringfence_client::{AcquireError, Client, Effect, Guard, ShardError, Waiting};

use super::{LEASE, SECOND, client_of, faults, held};

/// Waits for `key` for at most `wait`: what came of it, and what was told meanwhile.
async fn wait_for(
    client: &Client,
    key: &str,
    wait: Duration,
) -> (Result<Guard, AcquireError>, Vec<Waiting>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let teller = told.clone();
    let lock = client.lock(key).wait(wait);
    let lock = lock.on_wait(move |waiting| teller.lock().unwrap().push(waiting));
    let acquired = lock.acquire().await;
    let told = told.lock().unwrap().clone();
    (acquired, told)
}

#[tokio::test(start_paused = true)]
async fn a_waiter_learns_the_holder_and_the_remaining_time() {
    let client = client_of(1).await;
    let _guard = held(&client, "key").await;
    let (acquired, told) = wait_for(&client, "key", SECOND).await;
    assert!(acquired.is_err());
    let [
        Waiting::Held {
            holder,
            remaining,
            ahead,
        },
    ] = &told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!((holder.as_str(), *ahead), ("test", Some(0)));
    assert!(*remaining > LEASE - 2 * SECOND && *remaining <= LEASE);
    assert_eq!(told[0].to_string(), "held by test (30 s left)");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_told_when_its_shard_came_back_and_when_it_grants_again() {
    let client = client_of(1).await;
    faults(&client).restart(false);
    // Armed anew by the engine: until then it is trouble, from then on grace.
    let (granted, told) = wait_for(&client, "key", 2 * LEASE).await;
    granted.unwrap().release().await;
    let grace = client.topology().constants.grace();
    let mut graces = told
        .iter()
        .filter(|waiting| matches!(waiting, Waiting::Grace { .. }));
    let first = graces.next().unwrap();
    let Waiting::Grace {
        shard, since, left, ..
    } = first
    else {
        panic!("{told:?}")
    };
    assert_eq!((shard.as_str(), *since + *left), ("a", grace));
    assert!(*since < SECOND && *left > LEASE - SECOND, "{told:?}");
    let shown = first.to_string();
    let expected = "shard a came back 0 s ago: new locks in ";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(!first.is_same_as(&told[0]), "{told:?}");
    assert!(graces.all(|later| later.is_same_as(first)), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_told_which_shard_gives_no_answer() {
    let client = client_of(1).await;
    faults(&client).lose_reply(ringfence_coordinator::shard::Lane::Work, 1);
    let (granted, told) = wait_for(&client, "key", SECOND).await;
    granted.unwrap().release().await;
    let Waiting::Trouble { shard, error } = &told[0] else {
        panic!("{told:?}")
    };
    assert_eq!((shard.as_str(), error.effect()), ("a", Effect::Unknown));
    let shown = told[0].to_string();
    assert!(shown.starts_with("shard a: no answer"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_does_not_wait_has_no_events() {
    let client = client_of(1).await;
    let guard = held(&client, "key").await;
    let told = |_: Waiting| panic!("told");
    let refused = client.lock("key").on_wait(told).try_acquire().await;
    refused.unwrap_err();
    guard.release().await;
    let granted = client.lock("key").on_wait(told).acquire().await;
    granted.unwrap().release().await;
}

/// Neither granted nor refused: that is what the error is to say.
#[tokio::test(start_paused = true)]
async fn a_wait_without_any_answer_ends_as_one() {
    let client = client_of(1).await;
    faults(&client).stall();
    let (acquired, told) = wait_for(&client, "key", SECOND / 2).await;
    let Err(AcquireError::TimedOut { because, .. }) = acquired else {
        panic!("{acquired:?}")
    };
    let no_reply = matches!(*because, AcquireError::Shard(ShardError::NoReply { .. }));
    assert!(no_reply, "{because:?} {told:?}");
    assert_eq!(because.effect(), Effect::Unknown);
}
