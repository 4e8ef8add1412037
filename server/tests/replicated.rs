//! Locks with replicas over the service: every coordinator goes on with them, and one of three servers may be away.

use std::time::Duration;

use ringfence_api::{
    Error, Reason,
    v1::{AcquireRequest, LockMode, ReleaseOutcome},
};
use ringfence_client::{Client, Coordinators, Guard, ReleaseAnswer};
use ringfence_test_support::eventually;
use tokio::time::{sleep, timeout};

use super::{
    client::shared,
    scene::{Coordinator, Scene, acquire, ask, release, renew},
};

/// The longest lease, and so the recovery period of a server, unless a test ends that.
const LONGEST: Duration = Duration::from_secs(30);
/// Of a lock whose renewals, or whose end, are waited for.
const LEASE: Duration = Duration::from_secs(6);
const DEADLINE: Duration = Duration::from_secs(120);
const HELD: i32 = ReleaseOutcome::Held as i32;
const LOST: i32 = ReleaseOutcome::Lost as i32;

async fn two() -> (Scene, Coordinator) {
    let scene = Scene::replicated(LONGEST, shared).await;
    let other = scene.another(shared).await;
    (scene, other)
}

fn ledger(key: &str, wait_ms: Option<u64>) -> AcquireRequest {
    AcquireRequest {
        namespace: "ledger".into(),
        ..ask(key, LEASE.as_millis() as u64, wait_ms)
    }
}

/// How many of the replicas of `key` have a holder.
async fn records(scene: &Scene, key: &str) -> usize {
    let lock = scene.other.lock(key).namespace("ledger");
    let found = lock.inspect_replicas().await.unwrap().into_iter();
    let has_holder = found.filter(|replica| {
        let found = replica.found.as_ref();
        found.is_ok_and(|found| found.holder.is_some())
    });
    has_holder.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_coordinator_renews_and_releases_a_lock() {
    let (scene, other) = two().await;
    let (mut one, mut two) = (scene.locks().await, other.locks().await);
    let held = acquire(&mut one, ledger("key", None)).await.unwrap();
    // The first coordinator ends its part, and the lock stays.
    for _ in 0..10 {
        sleep(LEASE / 8).await;
        assert_eq!(records(&scene, "key").await, 3);
        renew(&mut two, &held.handle).await.unwrap();
        let refused = acquire(&mut one, ledger("key", Some(0))).await.unwrap_err();
        assert_eq!(Error::from_status(&refused).reason, Reason::Held);
    }
    renew(&mut one, &held.handle).await.unwrap();
    assert_eq!(release(&mut two, &held.handle).await.unwrap(), HELD);
    let lock = scene.other.lock("key").namespace("ledger");
    let next = lock.try_acquire().await.unwrap();
    assert!(next.token().get() > held.token);
    let lost = renew(&mut two, &held.handle).await.unwrap_err();
    assert_eq!(Error::from_status(&lost).reason, Reason::LockLost);
    for locks in [&mut one, &mut two] {
        assert_eq!(release(locks, &held.handle).await.unwrap(), LOST);
    }
    assert_eq!(next.release().await, ReleaseAnswer::Held);
}

/// A coordinator drops it at about that time; here, only the engine ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ends_its_part_releases_nothing() {
    let scene = Scene::replicated(LONGEST, shared).await;
    let other = scene.builder().build().await.unwrap();
    let lock = scene.other.lock("key").namespace("ledger").lease(LEASE);
    let left = lock.acquire().await.unwrap().detach();
    let resumed = other.resume(&left.reference(), DEADLINE).await;
    let resumed = resumed.unwrap().unwrap();
    while left.is_held() {
        sleep(LEASE / 8).await;
        assert_eq!(records(&scene, "key").await, 3);
        resumed.renew().await.unwrap();
    }
    assert_eq!(resumed.release().await, ReleaseAnswer::Held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_disappears_loses_its_lock_after_its_lease() {
    let (scene, other) = two().await;
    let (mut one, mut two) = (scene.locks().await, other.locks().await);
    let held = acquire(&mut one, ledger("key", None)).await.unwrap();
    renew(&mut one, &held.handle).await.unwrap();
    let next = timeout(DEADLINE, acquire(&mut two, ledger("key", None))).await;
    assert!(next.unwrap().unwrap().token > held.token);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_released_at_a_coordinator_that_does_not_hold_it() {
    let (scene, other) = two().await;
    let (mut one, mut two) = (scene.locks().await, other.locks().await);
    let held = acquire(&mut one, ledger("key", None)).await.unwrap();
    assert_eq!(release(&mut two, &held.handle).await.unwrap(), HELD);
    let next = acquire(&mut two, ledger("key", Some(0))).await.unwrap();
    assert!(next.token > held.token);
    assert_eq!(release(&mut one, &held.handle).await.unwrap(), LOST);
    assert_eq!(release(&mut one, &next.handle).await.unwrap(), HELD);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_keep_their_locks_with_a_server_and_a_coordinator_away() {
    let (mut scene, other) = two().await;
    let urls = Coordinators::new([&scene.url, &other.url]);
    let client = Client::builder().coordinators(urls).build().await.unwrap();
    // The sessions of different leases begin at different coordinators.
    let lock = |lease| {
        client
            .lock(format!("{lease:?}"))
            .namespace("ledger")
            .lease(lease)
    };
    let mut guards = Vec::<Guard>::new();
    for lease in [LEASE, LEASE * 9 / 10] {
        guards.push(lock(lease).acquire().await.unwrap());
    }
    scene.server(0).kill();
    renewed_beyond_their_leases(&guards).await;
    guards.push(lock(LEASE * 8 / 10).acquire().await.unwrap());
    scene.stop();
    scene.ended().await;
    renewed_beyond_their_leases(&guards).await;
    let tokens: Vec<_> = guards.iter().map(Guard::token).collect();
    for guard in guards {
        assert_eq!(guard.release().await, ReleaseAnswer::Held);
    }
    for (lease, token) in [LEASE, LEASE * 9 / 10].into_iter().zip(tokens) {
        assert!(lock(lease).acquire().await.unwrap().token() > token);
    }
}

async fn renewed_beyond_their_leases(guards: &[Guard]) {
    let ends: Vec<_> = guards.iter().map(Guard::deadline).collect();
    eventually("renewed beyond their leases", async || {
        assert!(guards.iter().all(Guard::is_held));
        let mut both = std::iter::zip(guards, &ends);
        both.all(|(guard, end)| guard.deadline() > *end + LEASE)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_write_a_lock_where_servers_lost_it_and_its_handle_stays_good() {
    let (mut scene, other) = two().await;
    let (mut one, mut two) = (scene.locks().await, other.locks().await);
    let held = acquire(&mut one, ledger("key", None)).await.unwrap();
    eventually("all have it", async || records(&scene, "key").await == 3).await;
    for lost in 0..2 {
        scene.server(lost).kill();
        // Its record has ended by then: it is not put back in the recovery period.
        for _ in 0..12 {
            sleep(LEASE / 8).await;
            renew(&mut one, &held.handle).await.unwrap();
        }
        scene.server(lost).restart().await.unwrap();
        let renews = async {
            loop {
                renew(&mut one, &held.handle).await.unwrap();
                sleep(LEASE / 8).await;
            }
        };
        // It recovers once it is asked.
        tokio::select! {
            () = scene.end_recovery(lost) => {}
            () = renews => {}
        }
        eventually("all have it again", || {
            let (mut one, handle, scene) = (one.clone(), &held.handle, &scene);
            async move {
                renew(&mut one, handle).await.unwrap();
                sleep(LEASE / 8).await;
                records(scene, "key").await == 3
            }
        })
        .await;
    }
    // Two of the records that the other coordinator finds are none of those that were granted.
    scene.server(2).kill();
    renew(&mut two, &held.handle).await.unwrap();
    assert_eq!(release(&mut two, &held.handle).await.unwrap(), HELD);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_nothing_is_said_about_a_lock() {
    let (mut scene, other) = two().await;
    let (mut one, mut two) = (scene.locks().await, other.locks().await);
    let held = acquire(&mut one, ledger("key", None)).await.unwrap();
    (0..2).for_each(|index| scene.server(index).stop());
    let one_answers = timeout(LEASE / 2, renew(&mut two, &held.handle)).await;
    assert!(!one_answers.is_ok_and(|renewed| renewed.is_ok()));
    (0..2).for_each(|index| scene.server(index).kill());
    let doubt = renew(&mut two, &held.handle).await.unwrap_err();
    let doubt = Error::from_status(&doubt);
    assert_eq!(doubt.reason, Reason::ShardUnavailable, "{doubt:?}");
    assert!(doubt.is_retryable);
}

#[tokio::test]
async fn shares_have_no_replicas() {
    let scene = Scene::replicated(LONGEST, shared).await;
    let mut reader = ledger("key", Some(0));
    reader.mode = LockMode::Read.into();
    let refused = acquire(&mut scene.locks().await, reader).await.unwrap_err();
    let refused = Error::from_status(&refused);
    assert_eq!(refused.input.unwrap().field, "mode");
}
