//! Slots of a shard that was declared dead, and what they wait for.

use std::time::Duration;

use ringfence_ring::Slot;

use super::{
    Fixture,
    batches::word,
    desk::{
        Desk, FIRST, LONG, PAST_SHORT, QUIET, SHORT, incarnation, marked_quiet, mover, nonce,
        quiet_mark,
    },
    movers::{EARLIER, LATER, MOVE, moving_desk, step},
    slots::elsewhere,
};
use ringfence_coordinator::{
    ids::{Epoch, Token},
    shard::{ForceOpen, ForcedOpen, Grace, Mode, ShardError},
};

pub(super) fn force(epoch: Epoch, slots: &[Slot], grace_for: Duration) -> ForceOpen {
    ForceOpen {
        incarnation: incarnation(FIRST),
        copy: (epoch.0, format!("record {epoch}")),
        epoch,
        slots: slots.to_vec(),
        grace_for,
    }
}

impl Desk {
    pub(super) async fn force_open(&mut self, force: &ForceOpen) -> ForcedOpen {
        self.mover.force_open(force).await.expect("an answer")
    }
}

/// Holders of the dead shard put their locks back. The shard's other slots have nothing to wait for.
pub async fn a_slot_opened_by_force_is_in_grace(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Shut).await;
    let other = elsewhere(&desk, &key);
    let holder = (nonce(), Token::new(MOVE, 1));
    assert_eq!(word(&desk.renew(&key, holder, LONG).await), "moved");
    let forced = desk.force_open(&force(LATER, &[key.slot()], LONG)).await;
    assert_eq!(forced.refused, []);
    assert!(forced.grace_left > LONG / 2 && forced.grace_left <= LONG + fixture.late());
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "grace");
    assert_eq!(word(&desk.renew(&key, holder, LONG).await), "reclaimed");
    assert_eq!(word(&desk.renew(&other, holder, LONG).await), "lost");
    desk.granted(&other, nonce(), LONG).await;
}

/// The grace of an arming concerns all slots, also while slots are opened by force.
pub async fn grace_after_an_arming_is_not_narrowed_by_a_force(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(LONG)).await;
    let key = desk.key("key");
    let other = elsewhere(&desk, &key);
    desk.force_open(&force(LATER, &[key.slot()], LONG)).await;
    let holder = (nonce(), Token::new(MOVE, 1));
    for key in [&key, &other] {
        assert_eq!(word(&desk.acquire(key, nonce(), LONG).await), "grace");
        assert_eq!(word(&desk.renew(key, holder, LONG).await), "reclaimed");
    }
}

/// The shard goes on as it was: no lock that it has is lost.
pub async fn records_outlast_slots_opened_by_force(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Shut).await;
    let (mine, holder) = (elsewhere(&desk, &key), nonce());
    let token = desk.granted(&mine, holder, LONG).await;
    desk.force_open(&force(LATER, &[key.slot()], SHORT)).await;
    let claim = (holder, token);
    assert_eq!(word(&desk.renew(&mine, claim, LONG).await), "renewed");
    fixture.elapse(PAST_SHORT).await;
    assert_eq!(word(&desk.acquire(&mine, nonce(), LONG).await), "held");
    let next = desk.granted(&key, nonce(), LONG).await;
    assert!(next > token && next.epoch() >= LATER, "{next}");
}

/// Otherwise a process that repeats it often enough keeps the shard in grace for ever.
pub async fn a_repeated_force_does_not_restart_grace(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Shut).await;
    let other = elsewhere(&desk, &key);
    let some = force(LATER, &[key.slot()], SHORT);
    // By another process, say, that goes by another number of slots.
    let more = force(LATER, &[key.slot(), other.slot()], LONG);
    desk.force_open(&some).await;
    fixture.elapse(PAST_SHORT).await;
    for again in [&some, &more, &more] {
        let forced = desk.force_open(again).await;
        assert_eq!(forced.refused, []);
        assert_eq!(forced.grace_left, Duration::ZERO);
        desk.granted(&desk.key(nonce().to_string()), nonce(), LONG)
            .await;
    }
    let earlier = force(EARLIER, &[other.slot()], LONG);
    assert_eq!(desk.force_open(&earlier).await.refused, [other.slot()]);
    desk.granted(&key, nonce(), LONG).await;
}

/// A second shard that is given up is waited for as well.
pub async fn a_force_of_a_later_epoch_waits_anew_and_cuts_nothing_short(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Shut).await;
    let other = elsewhere(&desk, &key);
    desk.force_open(&force(MOVE, &[other.slot()], LONG)).await;
    let forced = desk.force_open(&force(LATER, &[key.slot()], SHORT)).await;
    assert!(forced.grace_left > SHORT, "{forced:?}");
    let again = Epoch(LATER.0 + 1);
    let forced = desk
        .force_open(&force(again, &[key.slot()], 2 * LONG))
        .await;
    assert!(forced.grace_left > LONG, "{forced:?}");
    assert_eq!(word(&desk.acquire(&other, nonce(), LONG).await), "grace");
}

/// A process that was asleep does no harm.
pub async fn a_force_that_comes_late_changes_nothing(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Open).await;
    let other = elsewhere(&desk, &key);
    desk.becomes(&key, LATER, Mode::Shut).await;
    desk.becomes(&other, Epoch(LATER.0 + 1), Mode::Sealed).await;
    let both = [key.slot(), other.slot()];
    let forced = desk.force_open(&force(LATER, &both, LONG)).await;
    let nothing = ForcedOpen {
        grace_left: Duration::ZERO,
        refused: both.to_vec(),
    };
    assert_eq!(forced, nothing);
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "moved");
    assert_eq!(word(&desk.acquire(&other, nonce(), LONG).await), "absent");
}

/// What was under way there is over: nobody is left to prove anything.
pub async fn a_slot_that_comes_or_goes_is_opened_by_force_too(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let other = elsewhere(&desk, &key);
    desk.becomes(&other, MOVE, Mode::Sealed).await;
    let both = [key.slot(), other.slot()];
    let forced = desk.force_open(&force(LATER, &both, Duration::ZERO)).await;
    assert_eq!(forced.refused, []);
    for key in [key, other] {
        let token = desk.granted(&key, nonce(), LONG).await;
        assert!(token > Token::new(LATER, 0), "{token}");
        let late = step(MOVE, Mode::Shut, &[key.slot()]);
        assert_eq!(desk.step(&late).await.refused, [key.slot()]);
    }
}

/// The quiet implies that grace is over.
pub async fn a_force_ends_the_quiet(fixture: &dyn Fixture) {
    let [_, mut desk] = Desk::both_ways(fixture).await;
    let key = desk.key("key");
    desk.force_open(&force(MOVE, &[key.slot()], SHORT)).await;
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "grace");
    let early = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, vec![key.slot()])).await;
    assert!(!early.expect("it is armed"), "in grace");
    fixture.elapse(PAST_SHORT).await;
    let marked_quiet = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, vec![key.slot()])).await;
    assert!(marked_quiet.expect("it is armed"));
    let token = desk.granted(&key, nonce(), LONG).await;
    assert_eq!(token.epoch(), MOVE);
}

/// Of an older incarnation, or of a life without state, nothing takes effect.
pub async fn a_stale_force_and_one_at_an_unarmed_shard_open_nothing(fixture: &dyn Fixture) {
    let mut control = mover(fixture).await;
    let key = Desk::open(fixture, QUIET).await.key("key");
    let force = force(LATER, &[key.slot()], LONG);
    let unarmed = control.force_open(&force).await;
    assert!(matches!(unarmed, Err(ShardError::Unarmed)), "{unarmed:?}");

    let mut desk = Desk::armed(fixture, Grace::None).await;
    let stale = ForceOpen {
        incarnation: incarnation(FIRST - 1),
        ..force
    };
    let stale = control.force_open(&stale).await;
    assert!(matches!(stale, Err(ShardError::Stale { .. })), "{stale:?}");
    desk.granted(&key, nonce(), LONG).await;
}
