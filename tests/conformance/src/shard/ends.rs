//! The shard's clock is set back: no end is farther away than its own length, also for processes that came since.

use std::time::Duration;

use super::{
    Fixture,
    batches::word,
    desk::{Desk, LONG, PAST_SHORT, SHORT, all_slots, nonce, renew},
    line::queue,
    movers::{MOVE, step, still},
    shares::permits,
};
use ringfence_coordinator::{
    ids::MapVersion,
    limits::TICKET_KEEP,
    name::LockKey,
    shard::{Grace, LockMode, Mode, Reply},
};

const BACK: Duration = Duration::from_secs(600);

impl Desk {
    /// Asks in vain for a mutex. How long it is held, as the shard says.
    async fn held_for(&mut self, key: &LockKey) -> Duration {
        match self.acquire(key, nonce(), LONG).await {
            Reply::Held { remaining, .. } => remaining,
            other => panic!("{key} was to be held: {other:?}"),
        }
    }
}

/// A recovery period of seconds does not become one of minutes.
pub async fn after_a_step_back_grace_ends_in_time(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(SHORT)).await;
    let key = desk.key("key");
    fixture.set_clock_back(BACK).await;
    let reply = desk.acquire(&key, nonce(), LONG).await;
    let in_time = matches!(reply, Reply::Grace { retry_after }
        if retry_after <= SHORT + fixture.late());
    assert!(in_time, "{reply:?}");
    fixture.elapse(PAST_SHORT).await;
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    desk.granted(&key, nonce(), LONG).await;

    // One that is over may begin again, for no longer.
    fixture.set_clock_back(BACK).await;
    // A process that knows the clock already may answer by that.
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    desk.acquire(&key, nonce(), LONG).await;
    fixture.elapse(PAST_SHORT).await;
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
}

/// A mover waits for it as well, if it is alone.
pub async fn after_a_step_back_a_mover_waits_in_time(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(SHORT)).await;
    desk.step(&step(MOVE, Mode::Sealed, &all_slots())).await;
    let asked = still(MOVE, &[], &all_slots());
    fixture.set_clock_back(BACK).await;
    let answer = desk.mover.still_held(&asked).await.expect("an answer");
    assert!(answer.grace_left <= SHORT + fixture.late(), "{answer:?}");
    fixture.elapse(PAST_SHORT).await;
    assert_eq!(desk.scanned(MOVE).await, []);
}

/// As [`after_a_step_back_a_mover_waits_in_time`], for records.
pub async fn after_a_step_back_a_mover_finds_records_ended(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let [key, share, kept] = ["key", "share", "kept"].map(|name| desk.key(name));
    desk.granted(&key, nonce(), SHORT).await;
    desk.shares_for(&share, permits(1, 2), SHORT).await;
    desk.granted(&kept, nonce(), LONG).await;
    desk.step(&step(MOVE, Mode::Sealed, &all_slots())).await;
    let asked = still(MOVE, &[&key, &share, &kept], &all_slots());
    fixture.set_clock_back(BACK).await;
    let answer = desk.mover.still_held(&asked).await.expect("an answer");
    assert_eq!(answer.keys.len(), 3, "{answer:?}");
    fixture.elapse(PAST_SHORT).await;
    let answer = desk.mover.still_held(&asked).await.expect("an answer");
    assert_eq!(answer.keys, [kept]);
}

/// The holder is gone, or lives: neither keeps the key for longer than a lease, nor for less.
pub async fn after_a_step_back_a_record_lasts_for_its_lease(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let [short, long, renewed] = ["short", "long", "renewed"].map(|name| desk.key(name));
        desk.granted(&short, nonce(), SHORT).await;
        desk.granted(&long, nonce(), LONG).await;
        // Not for the first of its leases.
        let holder = nonce();
        let token = desk.granted(&renewed, holder, SHORT).await;
        let again = desk.one(&renewed, renew(holder, token, LONG)).await;
        assert_eq!(word(&again), "renewed");
        fixture.set_clock_back(BACK).await;
        let found = desk.inspect(&short).await.expect("it is held");
        assert!(found.remaining <= SHORT + fixture.late(), "{found:?}");
        assert!(desk.held_for(&short).await <= SHORT + fixture.late());
        for key in [&long, &renewed] {
            let left = desk.held_for(key).await;
            assert!(left > LONG / 2 && left <= LONG + fixture.late(), "{left:?}");
        }
        fixture.elapse(PAST_SHORT).await;
        desk.granted(&short, nonce(), LONG).await;
        for key in [&long, &renewed] {
            assert_eq!(word(&desk.acquire(key, nonce(), LONG).await), "held");
        }
    }
}

/// A claim that was extended is a lease.
pub async fn after_a_step_back_an_extended_claim_is_a_lease(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let waiter = nonce();
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[waiter]).await;
        desk.release(&key, holder).await;
        assert_eq!(word(&desk.one(&key, queue(waiter, 2)).await), "granted");
        fixture.set_clock_back(BACK).await;
        assert!(desk.held_for(&key).await > LONG / 2);
        fixture.elapse(TICKET_KEEP + PAST_SHORT).await;
        assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
    }
}

/// The share of a holder that is gone, beside one that lives.
pub async fn after_a_step_back_a_share_lasts_for_its_lease(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, one) = (desk.key("key"), permits(1, 2));
        desk.shares_for(&key, one, SHORT).await;
        let (kept, _) = desk.shares_for(&key, one, LONG).await;
        fixture.set_clock_back(BACK).await;
        desk.has_no_room(&key, one).await;
        fixture.elapse(PAST_SHORT).await;
        assert_eq!(desk.holders(&key).await, [kept]);
        desk.shares(&key, one).await;
        desk.has_no_room(&key, one).await;
    }
}

/// A key is of one kind at a time, for no longer than its holder's lease.
pub async fn after_a_step_back_a_record_of_another_kind_ends(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let [mutex, shared] = ["mutex", "shared"].map(|name| desk.key(name));
        desk.granted(&mutex, nonce(), SHORT).await;
        desk.shares_for(&shared, LockMode::Read, SHORT).await;
        fixture.set_clock_back(BACK).await;
        let refused = desk.share(&mutex, nonce(), LockMode::Read).await;
        assert_eq!(word(&refused), "other kind");
        let refused = desk.acquire(&shared, nonce(), LONG).await;
        assert_eq!(word(&refused), "other kind");
        fixture.elapse(PAST_SHORT).await;
        desk.shares(&mutex, LockMode::Read).await;
        desk.granted(&shared, nonce(), LONG).await;
    }
}

/// A waiter that is gone blocks no permit that is free for longer than its ticket lasts; one that asks again keeps its place.
pub async fn after_a_step_back_a_ticket_ends_in_time(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, one, both) = (desk.key("key"), permits(1, 2), permits(2, 2));
        let (holder, _) = desk.shares(&key, one).await;
        let [gone, lives] = [nonce(), nonce()];
        for waiter in [gone, lives] {
            let reply = desk.queues_for(&key, waiter, both).await;
            assert_eq!(word(&reply), "held");
        }
        fixture.set_clock_back(BACK).await;
        desk.has_no_room(&key, one).await;
        fixture.elapse(TICKET_KEEP / 2).await;
        let reply = desk.queues_for(&key, lives, both).await;
        assert!(
            matches!(
                reply,
                Reply::Held {
                    position: Some(1),
                    ..
                }
            ),
            "{reply:?}"
        );
        fixture.elapse(TICKET_KEEP * 2 / 3).await;
        let reply = desk.share(&key, nonce(), one).await;
        assert_eq!(word(&reply), "held", "{lives} is next");
        fixture.elapse(TICKET_KEEP).await;
        desk.shares(&key, one).await;
        desk.release(&key, holder).await;
    }
}
