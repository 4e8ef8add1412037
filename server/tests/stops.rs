//! A coordinator that stops: no caller loses a lock that it relies on.

use std::time::Duration;

use ringfence_api::{Error, Reason, v1::ReleaseOutcome};
use ringfence_client::AcquireError;
use ringfence_test_support::eventually;
use tokio::task::JoinSet;
use tonic::Code;

use super::scene::{Scene, acquire, ask, release, renew};

#[tokio::test]
async fn waiters_are_sent_elsewhere_and_holders_have_time_to_release() {
    let mut scene = Scene::set_with(|config| config.grace = Duration::from_secs(60)).await;
    let (mut one, mut two) = (scene.locks().await, scene.locks().await);
    let held = acquire(&mut one, ask("key", 10_000, None)).await.unwrap();
    let mut queue = two.clone();
    let mut waits = JoinSet::new();
    waits.spawn(async move { acquire(&mut queue, ask("key", 1000, None)).await });
    scene.stop();
    let waited = waits.join_next().await.unwrap().unwrap();
    let free = acquire(&mut two, ask("free", 1000, None)).await;
    for refused in [waited, free] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
        let error = Error::from_status(&refused);
        assert_eq!(error.reason, Reason::Stopping);
        assert!(error.is_retryable);
    }
    renew(&mut one, &held.handle).await.unwrap();
    let outcome = release(&mut one, &held.handle).await.unwrap();
    assert_eq!(outcome, ReleaseOutcome::Held as i32);
    scene.ended().await;
    assert!(scene.is_free("key").await);
}

#[tokio::test]
async fn a_lock_that_is_not_released_stays_with_its_holder_until_its_lease_ends() {
    let mut scene = Scene::set_with(|config| config.grace = Duration::ZERO).await;
    let mut one = scene.locks().await;
    acquire(&mut one, ask("key", 3000, None)).await.unwrap();
    scene.stop();
    scene.ended().await;
    let refused = scene.other.lock("key").try_acquire().await.unwrap_err();
    assert!(matches!(refused, AcquireError::Held { .. }), "{refused}");
    eventually("its lease ends", || scene.is_free("key")).await;
}
