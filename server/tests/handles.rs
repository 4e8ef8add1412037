//! Locks that another coordinator goes on with, and handles that it refuses.

use std::time::Duration;

use ringfence_api::{
    Error, Reason,
    v1::{ReleaseOutcome, ReleaseRequest, RenewRequest},
};
use ringfence_server::{Config, Roles};
use ringfence_test_support::eventually;
use tonic::{Code, Request, Status};

use super::{
    access::{principal, with},
    scene::{Coordinator, Scene, acquire, ask, release, renew},
};

const HELD: i32 = ReleaseOutcome::Held as i32;
const LEASE_MS: u64 = 5000;
const LOST: i32 = ReleaseOutcome::Lost as i32;

fn shared(config: &mut Config) {
    config.handle_secrets = vec!["0123456789abcdef0123456789abcdef".into()];
}

async fn two() -> (Scene, Coordinator) {
    let scene = Scene::set_with(shared).await;
    let other = scene.another(shared).await;
    (scene, other)
}

/// One coordinator after the other gets a new secret, first to open handles with, then to seal them.
#[tokio::test]
async fn a_new_secret_comes_without_a_lost_lock() {
    let [old, new] = ["0", "1"].map(|digit| digit.repeat(32));
    let with = |secrets: &[&String]| {
        let secrets: Vec<String> = secrets.iter().copied().cloned().collect();
        move |config: &mut Config| config.handle_secrets = secrets
    };
    let before = Scene::set_with(with(&[&old])).await;
    let opens = before.another(with(&[&old, &new])).await;
    let seals = before.another(with(&[&new, &old])).await;
    let after = before.another(with(&[&new])).await;
    let coordinators = [
        before.locks().await,
        opens.locks().await,
        seals.locks().await,
        after.locks().await,
    ];
    // Which of them go on with its lock.
    for (at, opened_by) in [
        (0, [true, true, true, false]),
        (1, [true, true, true, false]),
        (2, [false, true, true, true]),
    ] {
        let key = format!("key/{at}");
        let held = acquire(&mut coordinators[at].clone(), ask(&key, LEASE_MS, None))
            .await
            .unwrap();
        for (other, is_opened) in coordinators.iter().zip(opened_by) {
            let renewed = renew(&mut other.clone(), &held.handle).await;
            assert_eq!(renewed.is_ok(), is_opened, "{at}: {renewed:?}");
        }
    }
}

#[tokio::test]
async fn another_coordinator_renews_and_releases_a_lock() {
    let (scene, other) = two().await;
    let (mut one, mut two) = (scene.locks().await, other.locks().await);
    let held = acquire(&mut one, ask("key", LEASE_MS, None)).await.unwrap();
    // Longer than a lease.
    for _ in 0..LEASE_MS / 80 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        renew(&mut two, &held.handle).await.unwrap();
        let refused = acquire(&mut one, ask("key", LEASE_MS, Some(0))).await;
        let refused = Error::from_status(&refused.unwrap_err());
        assert_eq!(refused.reason, Reason::Held);
    }
    // The first coordinator takes it up again.
    renew(&mut one, &held.handle).await.unwrap();
    assert_eq!(release(&mut two, &held.handle).await.unwrap(), HELD);
    assert!(scene.is_free("key").await);
    // The first coordinator does not ask the shard again until a twelfth of the lease is over.
    eventually("the first coordinator learns of the release", || async {
        let lost = renew(&mut one.clone(), &held.handle).await;
        lost.is_err_and(|lost| Error::from_status(&lost).reason == Reason::LockLost)
    })
    .await;
    let lost = renew(&mut two, &held.handle).await.unwrap_err();
    assert_eq!(Error::from_status(&lost).reason, Reason::LockLost);
    for locks in [&mut one, &mut two] {
        assert_eq!(release(locks, &held.handle).await.unwrap(), LOST);
    }
}

#[tokio::test]
async fn a_coordinator_that_does_not_hold_a_lock_releases_it() {
    let (scene, other) = two().await;
    let (mut one, mut two) = (scene.locks().await, other.locks().await);
    let held = acquire(&mut one, ask("key", 30_000, None)).await.unwrap();
    assert_eq!(release(&mut two, &held.handle).await.unwrap(), HELD);
    let next = acquire(&mut two, ask("key", 30_000, Some(0)));
    let next = next.await.unwrap();
    assert!(next.token > held.token);
    // A release that is repeated at the first coordinator does not touch the next grant.
    assert_eq!(release(&mut one, &held.handle).await.unwrap(), LOST);
    assert!(renew(&mut one, &held.handle).await.is_err());
    assert_eq!(release(&mut two, &next.handle).await.unwrap(), HELD);
}

#[tokio::test]
async fn a_handle_is_of_no_use_to_others_and_its_refusal_reaches_no_shard() {
    let principals = |config: &mut Config| {
        shared(config);
        principal(config, "worker", Roles::all());
        principal(config, "thief", Roles::all());
    };
    let scene = Scene::set_with(principals).await;
    let other = scene.another(principals).await;
    let stranger = scene.another(|config| principal(config, "worker", Roles::all()));
    let stranger = stranger.await;
    let mut locks = scene.locks().await;
    let held = locks.acquire(with("worker", ask("key", 30_000, None)));
    let handle = held.await.unwrap().into_inner().handle;
    let mut refusals = Vec::new();
    for at in 0..handle.len() {
        let mut changed = handle.clone();
        changed[at] ^= 1;
        refusals.push((&other, "worker", changed));
    }
    refusals.push((&scene, "thief", handle.clone()));
    refusals.push((&other, "thief", handle.clone()));
    refusals.push((&stranger, "worker", handle.clone()));
    refusals.push((&other, "worker", handle[..handle.len() - 1].to_vec()));
    refusals.push((&other, "worker", Vec::new()));
    let refused = async || {
        for (coordinator, caller, handle) in &refusals {
            let handle = handle.clone();
            let mut locks = coordinator.locks().await;
            let renewal: Request<RenewRequest> = with(
                caller,
                RenewRequest {
                    handle: handle.clone(),
                },
            );
            let renewed = locks.renew(renewal).await.map(drop);
            let released = locks.release(with(caller, ReleaseRequest { handle }));
            for refused in [renewed, released.await.map(drop)] {
                is_no_handle(&refused.unwrap_err());
            }
        }
    };
    scene.reaches_no_shard(refused).await;
    let before = scene.script_calls().await;
    let mut locks = other.locks().await;
    let released = locks.release(with("worker", ReleaseRequest { handle }));
    assert_eq!(released.await.unwrap().into_inner().outcome, HELD);
    assert!(scene.script_calls().await > before);
}

fn is_no_handle(refused: &Status) {
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    let input = Error::from_status(refused).input.unwrap();
    assert_eq!(input.field, "handle");
}
