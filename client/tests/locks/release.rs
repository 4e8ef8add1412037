//! Giving back.

use ringfence_client::ReleaseAnswer;
use ringfence_coordinator::shard::Lane;
use tokio::time::{Instant, timeout};

use super::{LEASE, SECOND, client_of, faults, freed_within, held, is_recorded};

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_is_released_in_the_background() {
    let client = client_of(1).await;
    drop(held(&client, "key").await);
    freed_within(&client, "key", SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_held_at_least_as_long_as_asked_for() {
    let client = client_of(1).await;
    let at_least = 3 * LEASE;
    let one = client.lock("one").hold_at_least(at_least);
    let set = client
        .multi_lock(["set/1", "set/2"])
        .hold_at_least(at_least);
    let (guard, guards) = (one.acquire().await.unwrap(), set.acquire().await.unwrap());
    let begun = Instant::now();
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    drop(guards);
    for key in ["one", "set/1", "set/2"] {
        let next = client.lock(key).acquire().await.unwrap();
        assert!(
            begun.elapsed() >= at_least,
            "{key} after {:?}",
            begun.elapsed()
        );
        drop(next);
    }
    assert!(begun.elapsed() < at_least + LEASE, "no longer than that");
}

#[tokio::test(start_paused = true)]
async fn close_sends_what_was_dropped_until_it_is_answered() {
    let client = client_of(3).await;
    for index in 0..100 {
        drop(held(&client, &format!("key/{index}")).await);
    }
    client
        .faults()
        .values()
        .for_each(|faults| faults.lose_request(Lane::Work, 1));
    assert_eq!(client.close().await, 0);
    for index in 0..100 {
        assert!(!is_recorded(&client, &format!("key/{index}")).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_without_an_answer_says_so_and_is_sent_again() {
    let client = client_of(1).await;
    let guard = held(&client, "key").await;
    faults(&client).lose_request(Lane::Work, 1);
    assert_eq!(guard.release().await, ReleaseAnswer::Unknown);
    assert!(is_recorded(&client, "key").await);
    freed_within(&client, "key", SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_taken_by_force_is_lost_to_its_holder() {
    let client = client_of(1).await;
    let guard = held(&client, "key").await;
    let former = client.lock("key").force_release("a test").await.unwrap();
    assert_eq!(former[0].token, guard.token());
    assert_eq!(former[0].label.as_str(), "test");
    let next = held(&client, "key").await;
    assert!(next.token() > guard.token());
    timeout(LEASE / 2, guard.lost())
        .await
        .expect("the next renewal tells, before the deadline");
    assert_eq!(guard.release().await, ReleaseAnswer::Lost);
    assert!(next.is_held());
    assert_eq!(
        client.lock("nobody").force_release("a test").await.unwrap(),
        Vec::new()
    );
}
