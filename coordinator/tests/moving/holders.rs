//! Holders go along with their slot.

use std::time::Duration;

use ringfence_coordinator::{
    engine::{Acquire, Guard, Owner, Sharing, Wait},
    name::Namespace,
};
use tokio::time::sleep;

use super::{MILLISECOND, Process, Ring, SECOND, SOON};

#[tokio::test(start_paused = true)]
async fn a_holder_goes_along_and_keeps_its_token() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    let guard = one.acquire().await;
    ring.set_out().await;
    ring.list().await;
    sleep(SOON).await;
    assert!(guard.is_held());
    let there = ring.holder(ring.b()).await.expect("brought along");
    assert_eq!(there.token, guard.token());
    assert!(ring.holder(ring.a()).await.is_none(), "taken away");
    ring.arrive().await;
    sleep(3 * SOON).await;
    assert!(guard.is_held(), "renewed where it is now");
    guard.release().await;
    assert!(ring.holder(ring.b()).await.is_none());
    let next = one.acquire().await;
    assert!(next.token() > there.token);
}

/// From now on nothing reaches the next shard, where the lock is: its guard ends before its record does.
async fn outlasts_no_record(ring: &Ring, guard: &Guard) {
    let there = ring.b().faults();
    there.latency(Duration::ZERO..Duration::ZERO);
    there.unreachable(true);
    there.hang_up();
    while guard.is_held() {
        sleep(MILLISECOND).await;
    }
    there.unreachable(false);
    assert!(ring.holder(ring.b()).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_sealed_and_goes_nowhere_keeps_its_holders() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    let guard = one.acquire().await;
    ring.plan().await;
    ring.seal().await;
    sleep(10 * SOON).await;
    assert!(guard.is_held(), "where it comes to, nobody adopts yet");
    assert!(ring.holder(ring.b()).await.is_none());
}

/// Until it is known to be there, it is held where it was.
#[tokio::test(start_paused = true)]
async fn an_adoption_that_is_not_answered_leaves_the_guard_where_it_was() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    let guard = one.acquire().await;
    ring.set_out().await;
    ring.b().faults().stall();
    sleep(SOON).await;
    assert!(guard.is_held());
    assert!(ring.holder(ring.a()).await.is_some(), "held here alone");
    ring.b().faults().resume();
    sleep(2 * SOON).await;
    assert!(guard.is_held());
    assert!(ring.holder(ring.a()).await.is_none());
    assert!(ring.holder(ring.b()).await.is_some());
}

/// The new shard's record counts from the request: so does the guard, after any answer of the
/// former shard.
#[tokio::test(start_paused = true)]
async fn an_adopted_guard_counts_from_the_adoption() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    let guard = one.acquire().await;
    ring.set_out().await;
    // It comes late, and the former shard renews meanwhile.
    let there = ring.b().faults();
    there.latency(6 * SECOND..6 * SECOND + MILLISECOND);
    while ring.holder(ring.a()).await.is_some() {
        sleep(100 * MILLISECOND).await;
    }
    assert!(guard.is_held());
    outlasts_no_record(&ring, &guard).await;
}

/// It was on its way when the lock went elsewhere, and left after the adoption did.
#[tokio::test(start_paused = true)]
async fn late_renewals_at_the_former_shard_are_ignored() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    let guard = one.acquire().await;
    ring.set_out().await;
    let (here, there) = (ring.a().faults(), ring.b().faults());
    there.latency(6 * SECOND..6 * SECOND + MILLISECOND);
    let first = guard.deadline();
    while guard.deadline() == first {
        sleep(MILLISECOND).await;
    }
    // The adoption has left: it is there in 6 s, and answered in 12. The next renewal leaves in 8 to 10, and
    // is answered after that.
    here.latency(3 * SECOND..3 * SECOND + MILLISECOND);
    sleep(13 * SECOND).await;
    outlasts_no_record(&ring, &guard).await;
}

/// The former shard was declared dead, and is alive: an engine that still believes in it learns of
/// this there.
#[tokio::test(start_paused = true)]
async fn a_holder_whose_slot_was_taken_away_puts_its_lock_back_where_the_slot_is() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    let guard = one.acquire().await;
    ring.set_out().await;
    ring.b().faults().restart(false);
    // The next request there has it armed again, with its grace.
    let other = Process {
        key: ring.other,
        ..one.clone()
    };
    assert!(other.try_acquire().await.is_err());
    sleep(SECOND).await;
    ring.arrive_by_force().await;
    sleep(SOON).await;
    assert!(guard.is_held());
    let there = ring.holder(ring.b()).await.expect("put back");
    assert_eq!(there.token, guard.token());
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_acquired_twice_releases_twice() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    let (owner, namespace) = (Owner::new(), Namespace::default());
    let ask = || Acquire {
        namespace: &namespace,
        key: ring.key.as_bytes(),
        lease: None,
        hold_for: None,
        wait: Wait::No,
        preferred: false,
        tokens: 1,
        owner: Some(&owner),
        label: None,
        observer: None,
    };
    let first = one.engine.acquire(ask()).await.unwrap();
    ring.set_out().await;
    ring.list().await;
    sleep(SOON).await;
    let second = one.engine.acquire(ask()).await.unwrap();
    assert_eq!(first.token(), second.token());
    ring.arrive().await;
    first.release().await;
    assert!(second.is_held());
    assert!(ring.holder(ring.b()).await.is_some());
    second.release().await;
    assert!(ring.holder(ring.b()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn tasks_hand_it_on_all_the_way() {
    let ring = Ring::new().await;
    let one = ring.process(1).await;
    let mut guard = one.acquire().await;
    let mut last = guard.token();
    let mut moves = 0;
    for turn in 0..40 {
        let next = one.waits().await;
        match turn {
            5 => ring.set_out().await,
            10 => ring.list().await,
            30 => ring.arrive().await,
            _ => {}
        }
        sleep(SECOND).await;
        guard.release().await;
        guard = next.await.unwrap();
        assert!(guard.token() > last, "tokens rise");
        last = guard.token();
        moves += usize::from(ring.holder(ring.b()).await.is_some());
    }
    assert!(moves > 5, "it went along");
}

#[tokio::test(start_paused = true)]
async fn a_lingering_record_serves_its_process_and_nobody_else() {
    let ring = Ring::new().await;
    let sharing = Sharing {
        linger: [("default".to_owned(), 20 * SECOND)].into_iter().collect(),
        ..Sharing::default()
    };
    let one = ring.sharing(1, sharing).await;
    let two = ring.process(2).await;
    drop(one.acquire().await);
    sleep(MILLISECOND).await;
    ring.set_out().await;
    ring.list().await;
    let again = one.try_acquire().await.unwrap();
    assert!(two.try_acquire().await.is_err(), "held");
    sleep(SOON).await;
    assert!(ring.holder(ring.b()).await.is_some());
    drop(again);
    let other = two.acquire().await;
    assert!(one.try_acquire().await.is_err());
    drop(other);
}
