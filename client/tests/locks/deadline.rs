//! A guard tells the truth about its time.

use std::time::Duration;

use ringfence_client::{AcquireError, Danger, LockLost, ReleaseAnswer};
use tokio::time::{Instant, sleep, timeout};

use super::{LEASE, SECOND, client_of, faults, held, is_recorded};

/// How far a deadline lies before the end of `lease`: 1 % and 20 ms.
fn believed(lease: Duration) -> Duration {
    lease * 99 / 100 - Duration::from_millis(20)
}

#[tokio::test(start_paused = true)]
async fn a_deadline_counts_from_before_the_request_left() {
    let client = client_of(1).await;
    drop(held(&client, "connected").await);
    let slow = 2 * SECOND;
    faults(&client).latency(slow..slow + Duration::from_millis(1));
    let asked = Instant::now();
    let guard = held(&client, "key").await;
    let believed_until = asked + believed(LEASE);
    assert!(asked.elapsed() >= 2 * slow);
    assert!(Instant::now() + guard.remaining() <= believed_until + Duration::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_after_its_deadline_is_no_grant() {
    let client = client_of(1).await;
    drop(held(&client, "connected").await);
    let slow = SECOND;
    faults(&client).latency(slow..slow + Duration::from_millis(1));
    let late = client.lock("key").lease(SECOND / 2).try_acquire().await;
    assert!(matches!(late, Err(AcquireError::TooLate)), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_guard_is_renewed_for_as_long_as_it_lives() {
    let client = client_of(1).await;
    let guard = held(&client, "key").await;
    for _ in 0..100 {
        sleep(5 * SECOND).await;
        assert!(guard.is_held());
        assert!(guard.remaining() > LEASE / 3, "{:?}", guard.remaining());
    }
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    sleep(LEASE).await;
    assert!(!is_recorded(&client, "key").await);
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_cannot_be_renewed_is_in_danger_and_then_lost_by_its_deadline() {
    let client = client_of(1).await;
    let guard = held(&client, "key").await;
    let deadline = Instant::now() + guard.remaining();
    faults(&client).unreachable(true);
    faults(&client).hang_up();
    assert_eq!(guard.danger().await, Danger::RenewalFailed);
    assert!(guard.is_held());
    guard.lost().await;
    assert!(Instant::now() <= deadline + Duration::from_millis(2));
    assert!(!guard.is_held());
    assert_eq!(guard.release().await, ReleaseAnswer::Lost);
}

#[tokio::test(start_paused = true)]
async fn danger_comes_with_a_third_of_the_lease_left() {
    let client = client_of(1).await;
    let guard = held(&client, "key").await;
    faults(&client).stall();
    assert_eq!(guard.danger().await, Danger::NearDeadline);
    let left = guard.remaining();
    assert!(left <= LEASE / 3 && left > LEASE / 4, "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn no_late_renewal_revives_a_guard() {
    let client = client_of(1).await;
    let guard = held(&client, "key").await;
    faults(&client).stall();
    guard.lost().await;
    faults(&client).resume();
    sleep(SECOND).await;
    assert!(!guard.is_held());
    assert!(
        !is_recorded(&client, "key").await,
        "what the late renewal extended is released"
    );
}

#[tokio::test(start_paused = true)]
async fn work_is_dropped_the_moment_the_lock_is_lost() {
    let client = client_of(1).await;
    let guard = held(&client, "key").await;
    assert_eq!(guard.run_while_held(async { 42 }).await, Ok(42));
    faults(&client).stall();
    let deadline = Instant::now() + guard.remaining();
    let endless = guard.run_while_held(std::future::pending::<()>()).await;
    assert_eq!(endless, Err(LockLost));
    assert!(Instant::now() <= deadline + Duration::from_millis(2));
}

#[tokio::test(start_paused = true)]
async fn a_fixed_hold_longer_than_the_lease_is_renewed_until_it_ends() {
    let client = client_of(1).await;
    let hold = 3 * LEASE;
    let guard = client.lock("key").hold_for(hold).acquire().await.unwrap();
    let asked = Instant::now();
    sleep(hold - SECOND).await;
    assert!(guard.is_held());
    guard.lost().await;
    let lasted = asked.elapsed();
    assert!(
        lasted >= hold - Duration::from_millis(10) && lasted <= hold,
        "{lasted:?}"
    );
    drop(
        timeout(SECOND, client.lock("key").acquire())
            .await
            .unwrap()
            .unwrap(),
    );
}

#[tokio::test(start_paused = true)]
async fn a_fixed_hold_shorter_than_the_lease_asks_for_no_more() {
    let client = client_of(1).await;
    let guard = client.lock("key").hold_for(SECOND).acquire().await.unwrap();
    let recorded = client.lock("key").inspect().await.unwrap().holder.unwrap();
    assert!(
        recorded.remaining <= SECOND * 11 / 10,
        "{:?}",
        recorded.remaining
    );
    assert!(guard.remaining() >= SECOND - Duration::from_millis(10));
    assert_eq!(guard.danger().await, Danger::NearDeadline);
    let left = guard.remaining();
    assert!(left <= SECOND * 35 / 100 && left > SECOND / 4, "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn leases_out_of_bounds_are_refused_and_named() {
    let client = client_of(1).await;
    let long = client
        .lock("key")
        .lease(LEASE + SECOND)
        .try_acquire()
        .await
        .unwrap_err();
    assert_eq!(
        long.to_string(),
        "lease 31s is too long: at most 30s (the topology's max_lease)"
    );
    let short = client
        .lock("key")
        .lease(Duration::ZERO)
        .try_acquire()
        .await
        .unwrap_err();
    assert_eq!(short.to_string(), "lease 0ns is too short: at least 100ms");
    let hold = client
        .lock("key")
        .hold_for(SECOND / 100)
        .acquire()
        .await
        .unwrap_err();
    assert_eq!(
        hold.to_string(),
        "hold of 10ms is too short: at least 100ms"
    );
}
