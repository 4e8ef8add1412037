//! Kept, though nobody has it.

use std::time::Duration;

use ringfence_coordinator::{
    engine::{Acquire, ReleaseAnswer, Wait},
    name::Namespace,
};
use tokio::time::{Instant, sleep, timeout};

use super::{
    AT_ONCE, Crew, LEASE, MILLISECOND, SECOND, acquire, acquire_as, ask, lingering, recorded,
    waiting,
};

#[tokio::test(start_paused = true)]
async fn a_lock_that_lingers_is_granted_again_without_the_shard() {
    let mut crew = Crew::new().await;
    let process = crew.sharing(lingering(LEASE)).await;
    let guard = acquire(&process).await;
    let (token, asked) = (guard.token(), process.wire.acquires());
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    // It would have been renewed by now, if somebody had it.
    sleep(LEASE / 2).await;
    let guard = acquire(&process).await;
    assert!(guard.token() > token && guard.is_held());
    assert_eq!(process.wire.acquires(), asked);
    // In use again, it is renewed again.
    sleep(2 * LEASE).await;
    assert!(guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_lingers_goes_back_when_its_time_is_over() {
    let mut crew = Crew::new().await;
    let process = crew.sharing(lingering(10 * SECOND)).await;
    acquire(&process).await.release().await;
    sleep(9 * SECOND).await;
    assert!(recorded(&process).await.is_some());
    sleep(SECOND + AT_ONCE).await;
    assert!(recorded(&process).await.is_none());
}

/// It is never renewed; and at its deadline nobody believes in it any more, and it is released all the same.
#[tokio::test(start_paused = true)]
async fn a_lock_lingers_no_longer_than_its_lease() {
    let mut crew = Crew::new().await;
    let process = crew.sharing(lingering(10 * LEASE)).await;
    acquire(&process).await.release().await;
    sleep(LEASE).await;
    assert!(recorded(&process).await.is_none());
    assert_eq!(process.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_lingers_goes_to_another_process_within_a_round_trip() {
    let mut crew = Crew::new().await;
    let (process, other) = (crew.sharing(lingering(LEASE)).await, crew.process().await);
    crew.faults()
        .latency(5 * MILLISECOND..5 * MILLISECOND + Duration::from_nanos(1));
    let guard = acquire(&process).await;
    let token = guard.token();
    guard.release().await;
    sleep(SECOND).await;
    let asked = Instant::now();
    let guard = acquire(&other).await;
    assert!(guard.token() > token);
    // To the shard, back to the holder, to the shard again, and back to the waiter; and the time of
    // a wake-up.
    let waited = asked.elapsed();
    assert!(waited <= 5 * 4 * MILLISECOND + AT_ONCE, "{waited:?}");
    assert_eq!(process.held(), 0);
}

/// What it costs: until its lease has run out, nobody can have it.
#[tokio::test(start_paused = true)]
async fn a_lock_whose_process_died_lingering_is_free_when_its_lease_is_over() {
    let mut crew = Crew::new().await;
    let (process, other) = (crew.sharing(lingering(LEASE)).await, crew.process().await);
    acquire(&process).await.release().await;
    process.wire.cut();
    let died = Instant::now();
    let waiter = waiting(&other).await;
    drop(
        timeout(LEASE + AT_ONCE, waiter)
            .await
            .expect("expired")
            .unwrap(),
    );
    assert!(died.elapsed() > LEASE - SECOND, "{:?}", died.elapsed());
}

#[tokio::test(start_paused = true)]
async fn closing_releases_lingering_locks() {
    let mut crew = Crew::new().await;
    let (process, other) = (crew.sharing(lingering(LEASE)).await, crew.process().await);
    acquire(&process).await.release().await;
    assert_eq!(process.close(SECOND).await, 0);
    assert!(recorded(&other).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_somebody_waits_for_does_not_linger() {
    let mut crew = Crew::new().await;
    let (process, other) = (crew.sharing(lingering(LEASE)).await, crew.process().await);
    let guard = acquire(&process).await;
    let waiter = waiting(&other).await;
    guard.release().await;
    drop(timeout(AT_ONCE, waiter).await.expect("its turn").unwrap());
}

/// The message was long on its way: its waiter gave up, and the lock has gone back.
#[tokio::test(start_paused = true)]
async fn a_lock_goes_on_lingering_if_a_former_one_was_contended() {
    let mut crew = Crew::new().await;
    let (process, other) = (crew.sharing(lingering(LEASE)).await, crew.process().await);
    let former = Acquire {
        lease: Some(LEASE / 2),
        ..ask("key", Wait::Forever)
    };
    let guard = acquire_as(&process, former).await;
    process.wire.delay_notifications(SECOND);
    waiting(&other).await.abort();
    guard.release().await;
    acquire(&process).await.release().await;
    let kept = recorded(&other).await.unwrap().nonce;
    sleep(2 * SECOND).await;
    assert_eq!(recorded(&other).await.unwrap().nonce, kept);
}

#[tokio::test(start_paused = true)]
async fn a_lock_lost_while_it_lingers_is_asked_for_anew() {
    let mut crew = Crew::new().await;
    let process = crew.sharing(lingering(LEASE)).await;
    let other = crew.process().await;
    acquire(&process).await.release().await;
    let namespace = Namespace::default();
    other
        .force_release(&namespace, b"key", "a test")
        .await
        .unwrap();
    // It does not know, and grants it once more: a resource that checks tokens would see.
    let stale = acquire(&process).await;
    let held_by_another = acquire(&other).await;
    assert!(held_by_another.token() > stale.token());
    timeout(LEASE / 2, stale.lost())
        .await
        .expect("by its renewal");
    drop(stale);
    drop(held_by_another);
    drop(acquire(&process).await);
}
