//! Semaphores and read-write locks: by calls, and by another coordinator.

use std::time::Duration;

use ringfence_api::{
    Error, Reason,
    v1::{
        AcquireRequest, DowngradeRequest, DowngradeResponse, InspectRequest, InspectResponse,
        ListRequest, LockKind, LockMode, ReleaseOutcome, lock_service_client::LockServiceClient,
    },
};
use ringfence_server::Config;
use tokio::time::sleep;
use tonic::{Status, transport::Channel};

use super::scene::{Coordinator, Scene, acquire, ask, release, renew};

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

/// Asks for a share of `key`, and waits for `wait_ms`.
fn share(mode: LockMode, key: &str, lease_ms: u64, wait_ms: u64) -> AcquireRequest {
    AcquireRequest {
        mode: mode.into(),
        ..ask(key, lease_ms, Some(wait_ms))
    }
}

fn permits(count: u32, capacity: u32, lease_ms: u64) -> AcquireRequest {
    AcquireRequest {
        permits: count,
        capacity,
        ..share(LockMode::Permits, "key", lease_ms, 0)
    }
}

async fn downgrade(
    locks: &mut LockServiceClient<Channel>,
    handle: &[u8],
) -> Result<DowngradeResponse, Status> {
    let handle = handle.to_vec();
    let downgraded = locks.downgrade(DowngradeRequest { handle }).await?;
    Ok(downgraded.into_inner())
}

async fn inspect(locks: &mut LockServiceClient<Channel>) -> InspectResponse {
    let key = InspectRequest {
        key: "key".into(),
        ..InspectRequest::default()
    };
    locks.inspect(key).await.unwrap().into_inner()
}

async fn is_held(locks: &mut LockServiceClient<Channel>, ask: AcquireRequest) {
    let refused = acquire(locks, ask).await.unwrap_err();
    assert_eq!(Error::from_status(&refused).reason, Reason::Held);
}

#[tokio::test]
async fn readers_hold_a_lock_together_and_a_writer_alone() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let reader = share(LockMode::Read, "key", 10_000, 0);
        held.push(acquire(&mut locks, reader).await.unwrap());
    }
    is_held(&mut locks, share(LockMode::Write, "key", 10_000, 0)).await;
    let inspected = inspect(&mut locks).await;
    let first = inspected.holder.unwrap();
    assert_eq!(first.first_token, held[0].token);
    assert_eq!(first.kind(), LockKind::ReadWrite);
    assert!(!first.exclusive && first.permits == 1);
    let others = inspected.others.iter().map(|holder| holder.first_token);
    assert_eq!(others.collect::<Vec<_>>(), [held[1].token, held[2].token]);
    let mut pages = locks
        .list(ListRequest::default())
        .await
        .unwrap()
        .into_inner();
    let mut listed = Vec::new();
    while let Some(page) = pages.message().await.unwrap() {
        listed.extend(page.locks);
    }
    assert_eq!((listed.len(), listed[0].others), (1, 2));

    for reader in &held {
        assert_eq!(release(&mut locks, &reader.handle).await.unwrap(), HELD);
    }
    let writer = share(LockMode::Write, "key", 10_000, 0);
    let writer = acquire(&mut locks, writer).await.unwrap();
    assert!(held.iter().all(|reader| reader.token < writer.token));
    assert!(inspect(&mut locks).await.holder.unwrap().exclusive);
    is_held(&mut locks, share(LockMode::Read, "key", 10_000, 0)).await;
}

#[tokio::test]
async fn permits_are_granted_as_long_as_there_are_some() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let two = acquire(&mut locks, permits(2, 3, 10_000)).await.unwrap();
    // Without a number: one.
    let one = acquire(&mut locks, permits(0, 3, 10_000)).await.unwrap();
    is_held(&mut locks, permits(1, 3, 10_000)).await;
    let holder = inspect(&mut locks).await.holder.unwrap();
    assert_eq!((holder.kind(), holder.permits), (LockKind::Semaphore, 2));
    let mutex = acquire(&mut locks, ask("key", 10_000, Some(0))).await;
    let refused = Error::from_status(&mutex.unwrap_err());
    assert_eq!(refused.reason, Reason::OtherKind);
    assert_eq!(release(&mut locks, &two.handle).await.unwrap(), HELD);
    is_held(&mut locks, permits(3, 3, 10_000)).await;
    acquire(&mut locks, permits(2, 3, 10_000)).await.unwrap();
    assert_eq!(release(&mut locks, &one.handle).await.unwrap(), HELD);
}

#[tokio::test]
async fn terms_that_fit_no_lock_are_refused_and_reach_no_shard() {
    let scene = Scene::set().await;
    let mutex = |permits, capacity| AcquireRequest {
        permits,
        capacity,
        ..ask("key", 10_000, Some(0))
    };
    let preferred = AcquireRequest {
        preferred: true,
        ..permits(1, 3, 10_000)
    };
    let unknown = AcquireRequest {
        mode: 9,
        ..ask("key", 10_000, Some(0))
    };
    let refusals = [
        (permits(1, 0, 10_000), "capacity", "0", "1 to 1073741824"),
        (
            permits(1, 1 << 31, 10_000),
            "capacity",
            "2147483648",
            "1 to 1073741824",
        ),
        (
            permits(4, 3, 10_000),
            "permits",
            "4",
            "at most 3, the capacity",
        ),
        (mutex(1, 0), "permits", "1", "0 without LOCK_MODE_PERMITS"),
        (mutex(0, 7), "capacity", "7", "0 without LOCK_MODE_PERMITS"),
        (
            preferred,
            "preferred",
            "true",
            "false without LOCK_MODE_READ and LOCK_MODE_WRITE",
        ),
        (unknown, "mode", "9", "one of LockMode"),
    ];
    let refused = async || {
        let mut locks = scene.locks().await;
        for (ask, field, value, limit) in &refusals {
            let refused = acquire(&mut locks, ask.clone()).await.unwrap_err();
            let input = Error::from_status(&refused).input.unwrap();
            assert_eq!(
                (&*input.field, &*input.value, &*input.limit),
                (*field, *value, *limit)
            );
        }
    };
    scene.reaches_no_shard(refused).await;
}

#[tokio::test]
async fn another_coordinator_goes_on_with_one_share_and_with_no_other() {
    let (scene, other) = two().await;
    let (mut one, mut two) = (scene.locks().await, other.locks().await);
    let reader = || share(LockMode::Read, "key", LEASE_MS, 0);
    let kept = acquire(&mut one, reader()).await.unwrap();
    let left = acquire(&mut one, reader()).await.unwrap();
    // Longer than a lease.
    for _ in 0..LEASE_MS / 80 {
        sleep(Duration::from_millis(100)).await;
        renew(&mut two, &kept.handle).await.unwrap();
    }
    let lost = renew(&mut two, &left.handle).await.unwrap_err();
    assert_eq!(Error::from_status(&lost).reason, Reason::LockLost);
    is_held(&mut two, share(LockMode::Write, "key", 1000, 0)).await;
    assert_eq!(release(&mut two, &kept.handle).await.unwrap(), HELD);
    acquire(&mut two, share(LockMode::Write, "key", 1000, 0))
        .await
        .unwrap();
    for handle in [&kept.handle, &left.handle] {
        assert_eq!(release(&mut one, handle).await.unwrap(), LOST);
    }
}

#[tokio::test]
async fn a_writer_becomes_a_reader_at_any_coordinator() {
    let (scene, other) = two().await;
    let (mut one, mut two) = (scene.locks().await, other.locks().await);
    let writer = share(LockMode::Write, "key", 10_000, 0);
    let writer = acquire(&mut one, writer).await.unwrap();
    let mut reader = scene.locks().await;
    let waits = acquire(&mut reader, share(LockMode::Read, "key", 10_000, 20_000));
    let becomes = async {
        while inspect(&mut one).await.waiters.is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
        downgrade(&mut two, &writer.handle).await.unwrap()
    };
    let (came_in, now) = tokio::join!(waits, becomes);
    let came_in = came_in.unwrap();
    is_held(&mut two, share(LockMode::Write, "key", 10_000, 0)).await;
    // The first coordinator learns of it from the handle. Nothing makes it a writer again.
    renew(&mut one, &now.handle).await.unwrap();
    downgrade(&mut one, &writer.handle).await.unwrap();
    downgrade(&mut one, &now.handle).await.unwrap();
    acquire(&mut one, share(LockMode::Read, "key", 10_000, 0))
        .await
        .unwrap();
    for handle in [&now.handle, &came_in.handle] {
        assert_eq!(release(&mut two, handle).await.unwrap(), HELD);
    }
}

#[tokio::test]
async fn only_a_writer_is_downgraded() {
    let scene = Scene::set().await;
    let mut locks = scene.locks().await;
    let asks = [ask("mutex", 10_000, Some(0)), permits(1, 3, 10_000)];
    for ask in asks {
        let held = acquire(&mut locks, ask).await.unwrap();
        let refused = downgrade(&mut locks, &held.handle).await.unwrap_err();
        assert_eq!(Error::from_status(&refused).input.unwrap().field, "handle");
        renew(&mut locks, &held.handle).await.unwrap();
    }
}
