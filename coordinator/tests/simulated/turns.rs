//! First come, first served among processes.

use ringfence_coordinator::{
    engine::ReleaseAnswer,
    limits::{CLAIM_MAX, RECHECK_MAX, TICKET_KEEP},
};
use tokio::time::{Instant, sleep, timeout};

use super::{AT_ONCE, Crew, LEASE, SECOND, acquire, recorded, try_acquire, waiting};

#[tokio::test(start_paused = true)]
async fn a_release_grants_to_a_waiter_in_another_process_at_once() {
    let mut crew = Crew::new().await;
    let [one, two] = crew.processes().await;
    let guard = acquire(&one).await;
    let waiter = waiting(&two).await;
    sleep(10 * SECOND).await;
    let (token, released) = (guard.token(), Instant::now());
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    let next = waiter.await.unwrap();
    assert!(released.elapsed() < AT_ONCE, "{:?}", released.elapsed());
    assert!(next.token() > token && next.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_turn_lasts_for_its_claim_and_is_renewed_to_a_full_lease_at_once() {
    let mut crew = Crew::new().await;
    let [one, two] = crew.processes().await;
    let guard = acquire(&one).await;
    let waiter = waiting(&two).await;
    guard.release().await;
    let next = waiter.await.unwrap();
    sleep(AT_ONCE).await;
    assert!(next.remaining() > LEASE - SECOND, "{:?}", next.remaining());
    sleep(3 * LEASE).await;
    assert!(next.is_held());
}

/// A turn is short beside a lease: that alone endangers nobody.
#[tokio::test(start_paused = true)]
async fn a_holder_that_was_just_granted_its_turn_is_not_in_danger() {
    let mut crew = Crew::new().await;
    let [one, two] = crew.processes().await;
    let guard = acquire(&one).await;
    let waiter = waiting(&two).await;
    guard.release().await;
    let next = waiter.await.unwrap();
    assert!(next.remaining() <= CLAIM_MAX, "it is not renewed yet");
    let danger = timeout(2 * LEASE, next.danger()).await;
    assert!(danger.is_err(), "{danger:?}");
}

/// Counted from when what the shard answers was asked for: not from when it heard, nor from a later request.
#[tokio::test(start_paused = true)]
async fn a_turn_that_cannot_be_renewed_lasts_for_its_claim_from_when_it_was_asked_for() {
    let mut crew = Crew::new().await;
    let [one, two] = crew.processes().await;
    let guard = acquire(&one).await;
    let asked = Instant::now();
    let waiter = waiting(&two).await;
    two.wire.mute(true);
    sleep(RECHECK_MAX + SECOND / 10).await;
    guard.release().await;
    let next = timeout(AT_ONCE, waiter).await.expect("its turn").unwrap();
    timeout(CLAIM_MAX, next.lost()).await.expect("over");
    let believed = asked.elapsed();
    assert!(
        believed < CLAIM_MAX && believed > CLAIM_MAX - SECOND / 10,
        "{believed:?}"
    );
    assert!(
        recorded(&one).await.is_some(),
        "it ends at the shard no earlier"
    );
}

/// It asked again before its turn came; that is answered after it, and extends it.
#[tokio::test(start_paused = true)]
async fn a_late_answer_extends_a_turn_from_its_request() {
    let mut crew = Crew::new().await;
    let [one, two] = crew.processes().await;
    let guard = acquire(&one).await;
    let waiter = waiting(&two).await;
    two.wire.mute(true);
    sleep(RECHECK_MAX + SECOND / 10).await;
    guard.release().await;
    let next = timeout(AT_ONCE, waiter).await.expect("its turn").unwrap();
    sleep(SECOND).await;
    two.wire.mute(false);
    sleep(AT_ONCE).await;
    let remaining = next.remaining();
    assert!(
        remaining > CLAIM_MAX && remaining < LEASE - SECOND,
        "{remaining:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn processes_are_served_in_the_order_they_came() {
    let mut crew = Crew::new().await;
    let first = crew.process().await;
    let mut guard = acquire(&first).await;
    let mut waiters = Vec::new();
    for _ in 0..5 {
        let process = crew.process().await;
        waiters.push(waiting(&process).await);
    }
    for mut waiter in waiters {
        let still_waiting = timeout(5 * SECOND, &mut waiter).await;
        assert!(still_waiting.is_err());
        guard.release().await;
        guard = timeout(AT_ONCE, waiter).await.expect("its turn").unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn no_newcomer_gets_a_free_lock_before_a_waiter() {
    let mut crew = Crew::new().await;
    let [one, two, late] = crew.processes().await;
    let guard = acquire(&one).await;
    let mut waiter = waiting(&two).await;
    // It cannot be told, nor ask: what the release grants to it is its own all the same.
    crew.faults().lose_notifications(true);
    guard.release().await;
    try_acquire(&late).await.unwrap_err();
    drop(
        timeout(RECHECK_MAX + AT_ONCE, &mut waiter)
            .await
            .expect("it asks again")
            .unwrap(),
    );
}

/// Nor a ticket with a dead holder: a newcomer that comes before the waiter asks again is behind
/// the waiter.
#[tokio::test(start_paused = true)]
async fn no_newcomer_gets_an_expired_lock_before_a_waiter() {
    let mut crew = Crew::new().await;
    let [dead, two, late] = crew.processes().await;
    let _guard = acquire(&dead).await;
    dead.wire.cut();
    let waiter = waiting(&two).await;
    sleep(LEASE - SECOND).await;
    two.wire.mute(true);
    sleep(SECOND + AT_ONCE).await;
    try_acquire(&late).await.unwrap_err();
    drop(timeout(AT_ONCE, waiter).await.expect("its turn").unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_misses_its_turn_finds_it_within_a_second() {
    let mut crew = Crew::new().await;
    crew.faults().lose_notifications(true);
    let [one, two] = crew.processes().await;
    for _ in 0..20 {
        let guard = acquire(&one).await;
        let waiter = waiting(&two).await;
        guard.release().await;
        let released = Instant::now();
        let next = waiter.await.unwrap();
        assert!(released.elapsed() <= RECHECK_MAX + AT_ONCE);
        // Found by asking, it is a full lease.
        assert!(
            next.remaining() > LEASE - 2 * SECOND,
            "{:?}",
            next.remaining()
        );
        next.release().await;
    }
}

/// A message that was long on its way: its grant has ended at the shard, and somebody else may have it.
#[tokio::test(start_paused = true)]
async fn a_turn_that_comes_after_its_claim_is_no_grant() {
    let mut crew = Crew::new().await;
    let [one, two, three] = crew.processes().await;
    let guard = acquire(&one).await;
    let mut sleeper = waiting(&two).await;
    let third = waiting(&three).await;
    // It hears of its turn late, and until then cannot ask.
    let late = CLAIM_MAX + 2 * SECOND;
    two.wire.delay_notifications(late);
    two.wire.mute(true);
    guard.release().await;
    let next = timeout(late, third).await.expect("its turn").unwrap();
    // What it asked meanwhile is answered first, and says that somebody else has it.
    two.wire.mute(false);
    let heard = timeout(2 * late, &mut sleeper).await;
    assert!(heard.is_err(), "{heard:?} while {next:?} is held");
    assert!(next.is_held());
}

/// It asked again meanwhile, and found what it was granted.
#[tokio::test(start_paused = true)]
async fn a_turn_that_is_heard_of_after_it_was_found_is_not_granted_twice() {
    let mut crew = Crew::new().await;
    let [one, two] = crew.processes().await;
    let guard = acquire(&one).await;
    let (waiter, mut behind) = (waiting(&two).await, waiting(&two).await);
    let late = RECHECK_MAX + SECOND;
    two.wire.delay_notifications(late);
    guard.release().await;
    let next = timeout(RECHECK_MAX + AT_ONCE, waiter);
    let next = next.await.expect("its turn").unwrap();
    let second = timeout(late, &mut behind).await;
    assert!(second.is_err(), "{second:?} while {next:?} is held");
    assert!(next.is_held());
    let token = next.token();
    next.release().await;
    let next = timeout(AT_ONCE, behind).await.expect("its turn").unwrap();
    assert!(next.token() > token);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_died_in_the_queue_is_passed_over() {
    let mut crew = Crew::new().await;
    let [one, dead, three] = crew.processes().await;
    let guard = acquire(&one).await;
    let _doomed = waiting(&dead).await;
    let waiter = waiting(&three).await;
    dead.wire.cut();
    sleep(TICKET_KEEP + SECOND).await;
    guard.release().await;
    drop(timeout(AT_ONCE, waiter).await.expect("its turn").unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_died_first_in_the_queue_costs_its_claim_at_most() {
    let mut crew = Crew::new().await;
    let [one, dead, three] = crew.processes().await;
    let guard = acquire(&one).await;
    let _doomed = waiting(&dead).await;
    let waiter = waiting(&three).await;
    dead.wire.cut();
    guard.release().await;
    let released = Instant::now();
    drop(waiter.await.unwrap());
    let waited = released.elapsed();
    assert!(waited <= CLAIM_MAX + RECHECK_MAX, "{waited:?}");
    assert!(waited > AT_ONCE, "the dead one had its turn: {waited:?}");
    assert!(recorded(&one).await.is_some());
}
