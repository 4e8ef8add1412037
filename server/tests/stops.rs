//! A coordinator that stops: no caller loses a lock that it relies on.

use std::time::Duration;

use ringfence_api::{
    Error, Reason,
    v1::{DrainRequest, ReleaseOutcome, ReleaseRequest, admin_service_client::AdminServiceClient},
};
use ringfence_client::AcquireError;
use ringfence_test_support::eventually;
use tokio::task::JoinSet;
use tonic::Code;

use ringfence_server::Roles;

use super::access::{principal, with};
use super::scene::{Scene, acquire, ask, release, renew};

#[tokio::test]
async fn waiters_are_sent_elsewhere_and_holders_have_time_to_release() {
    let mut scene = Scene::set_with(|config| config.grace = Duration::from_secs(60)).await;
    let (mut one, mut two) = (scene.locks().await, scene.locks().await);
    let held = acquire(&mut one, ask("key", 10_000, None)).await.unwrap();
    assert!(!renew(&mut one, &held.handle).await.unwrap().stopping);
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
    assert!(renew(&mut one, &held.handle).await.unwrap().stopping);
    let outcome = release(&mut one, &held.handle).await.unwrap();
    assert_eq!(outcome, ReleaseOutcome::Held as i32);
    scene.ended().await;
    assert!(scene.is_free("key").await);
}

#[tokio::test]
async fn a_call_stops_a_coordinator_as_a_signal_does() {
    let grace = Duration::from_secs(60);
    let mut scene = Scene::set_with(|config| {
        config.grace = grace;
        principal(config, "root", Roles::all());
        let worker = Roles {
            admin: false,
            ..Roles::all()
        };
        principal(config, "worker", worker);
    })
    .await;
    let mut locks = scene.locks().await;
    let held = locks.acquire(with("worker", ask("key", 10_000, None)));
    let handle = held.await.unwrap().into_inner().handle;
    let mut admin = AdminServiceClient::new(scene.channel().await);
    let refused = admin.drain(with("worker", DrainRequest {})).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    let answer = admin.drain(with("root", DrainRequest {})).await;
    assert_eq!(answer.unwrap().into_inner().grace, grace.try_into().ok());
    let stops = async || {
        let free = with("worker", ask("free", 1000, None));
        let refused = locks.clone().acquire(free).await;
        refused.is_err_and(|refused| Error::from_status(&refused).reason == Reason::Stopping)
    };
    eventually("no new locks", stops).await;
    let released = with("worker", ReleaseRequest { handle });
    let outcome = locks.release(released).await.unwrap().into_inner().outcome;
    assert_eq!(outcome, ReleaseOutcome::Held as i32);
    scene.ended().await;
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
