//! A life that is armed once more: with its epoch, with a lower one, with a greater one.

use std::time::Duration;

use super::{
    Fixture,
    batches::word,
    decommission::force,
    desk::{
        Desk, FIRST, LONG, PAST_SHORT, QUIET, SHORT, all_open_but, all_slots, arm, armed_with,
        control, incarnation, marked_quiet, nonce, quiet_mark,
    },
    movers::{MOVE, armed_in, moving_desk},
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    name::LockKey,
    shard::{Arm, ArmAnswer, Armed, ForceOpen, Grace, Mode, Reply},
};

async fn arms(fixture: &dyn Fixture, arm: &Arm) -> ArmAnswer {
    let mut link = control(fixture).await;
    link.arm(arm).await.expect("an answer")
}

async fn armed(fixture: &dyn Fixture) -> Option<Armed> {
    let mut link = control(fixture).await;
    link.armed().await.expect("an answer")
}

/// An armed life stays as it is: epoch, counter, slots and quiet. A lower epoch is of a record that is out of date.
pub async fn arming_with_no_greater_epoch_changes_nothing(fixture: &dyn Fixture) {
    let [_, mut desk] = Desk::both_ways(fixture).await;
    fixture.set_counter(1000).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, LONG).await;

    for epoch in [FIRST, FIRST - 1] {
        let mut again = arm(fixture, FIRST, Grace::Full(LONG));
        again.epoch = Epoch(epoch);
        again.slots = all_open_but(key.slot());
        let answer = arms(fixture, &again).await;
        assert!(
            !answer.armed_now && answer.grace_left.is_zero(),
            "{answer:?}"
        );
    }
    let found = armed(fixture).await.expect("it is armed");
    assert_eq!(found.epoch, Epoch(FIRST));

    assert!(desk.is_quiet().await);
    for map in [MapVersion::UNKNOWN, QUIET] {
        desk.map = map;
        assert_eq!(desk.granted(&key, holder, LONG).await, token);
        let next = desk.granted(&desk.key("next"), nonce(), SHORT).await;
        assert_eq!(next.epoch(), token.epoch());
        assert!(next > token);
        fixture.elapse(PAST_SHORT).await;
    }
}

/// The answer of a life tells whether it has a state, and of which arming.
pub async fn a_life_says_what_it_is_armed_with(fixture: &dyn Fixture) {
    assert_eq!(armed(fixture).await, None);
    Desk::armed(fixture, Grace::Full(LONG)).await;
    let found = armed(fixture).await.expect("it is armed");
    assert_eq!(found.epoch, Epoch(FIRST));
    assert!(found.grace_left > LONG / 2 && found.grace_left <= LONG + fixture.late());
    fixture.restart().await;
    assert_eq!(armed(fixture).await, None);
}

/// A shard in a life that was replaced, or with a clock that cannot be trusted: it gets everything
/// of a new life, and keeps its records.
pub async fn a_greater_epoch_arms_anew(fixture: &dyn Fixture) {
    let [_, mut desk] = Desk::both_ways(fixture).await;
    fixture.set_counter(1 << 33).await;
    let (kept, lost) = (desk.key("kept"), desk.key("lost"));
    let is_elsewhere = |key: &LockKey| ![kept.slot(), lost.slot()].contains(&key.slot());
    let mut others = (0..).map(|number: u32| desk.key(number.to_string()));
    let shut = others.find(is_elsewhere).expect("there are 16 slots");
    let (holder, number) = (nonce(), FIRST + 1);
    let token = desk.granted(&kept, holder, LONG).await;
    desk.granted(&lost, nonce(), LONG).await;

    let mut anew = arm(fixture, number, Grace::Full(SHORT));
    anew.slots = all_open_but(shut.slot());
    let answer = arms(fixture, &anew).await;
    assert!(
        answer.armed_now && answer.grace_left <= SHORT + fixture.late(),
        "{answer:?}"
    );
    let found = armed(fixture).await.expect("it is armed");
    assert_eq!(found.epoch, Epoch(number));
    assert!(!desk.is_quiet().await, "the mark is of before");
    for key in [&kept, &lost] {
        assert_eq!(word(&desk.acquire(key, nonce(), LONG).await), "grace");
    }
    let renewed = desk.renew(&kept, (holder, token), LONG).await;
    assert_eq!(word(&renewed), "renewed");
    // Granted elsewhere meanwhile: a higher token than that of the record which is here.
    let elsewhere = (nonce(), Token::new(Epoch(number - 1), 1 << 34));
    let put_back = desk.renew(&lost, elsewhere, SHORT).await;
    assert_eq!(word(&put_back), "reclaimed");

    fixture.elapse(PAST_SHORT).await;
    assert_eq!(word(&desk.acquire(&kept, nonce(), LONG).await), "held");
    let next = desk.granted(&lost, nonce(), LONG).await;
    assert!(
        next.epoch() == Epoch(number) && next.counter() < 1 << 10,
        "{next}"
    );
    assert_eq!(word(&desk.acquire(&shut, nonce(), LONG).await), "moved");
    assert!(
        !marked_quiet(fixture, &quiet_mark(number, QUIET, all_slots()))
            .await
            .expect("it is armed"),
        "a slot is shut"
    );
}

/// A record that nobody renewed since is nobody's, as after a restart.
pub async fn after_it_was_armed_anew_an_older_record_is_not_live(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let older = desk.granted(&key, nonce(), LONG).await;
    armed_with(fixture, FIRST + 1, Grace::Full(SHORT))
        .await
        .expect("an answer");
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "grace");
    fixture.elapse(PAST_SHORT).await;
    assert!(desk.granted(&key, nonce(), LONG).await > older);
}

/// A holder for which the first grace waits may still hold a lock.
pub async fn arming_anew_cuts_no_grace_short(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(LONG)).await;
    for (number, grace) in (FIRST + 1..).zip([Grace::None, Grace::LessUptime(LONG)]) {
        let answer = armed_with(fixture, number, grace).await.expect("an answer");
        assert!(answer.armed_now, "{answer:?}");
        assert!(
            answer.grace_left > LONG / 2 && answer.grace_left <= LONG + fixture.late(),
            "{answer:?}"
        );
    }
    assert_eq!(
        word(&desk.acquire(&desk.key("key"), nonce(), LONG).await),
        "grace"
    );
}

/// The clock was set back by an hour since: a grace that ran then seems to have an hour more.
pub async fn a_timer_lasts_no_longer_than_it_was_set_for(fixture: &dyn Fixture) {
    const HOUR: Duration = Duration::from_secs(3600);
    let mut desk = Desk::armed(fixture, Grace::Full(SHORT)).await;
    fixture.set_clock_back(HOUR).await;
    let answer = armed_with(fixture, FIRST + 1, Grace::None).await;
    let answer = answer.expect("an answer");
    assert!(
        answer.armed_now && answer.grace_left <= SHORT + fixture.late(),
        "{answer:?}"
    );
    assert!(answer.grace_left > SHORT / 2, "{answer:?}");
    let key = desk.key("key");
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "grace");

    fixture.set_clock_back(HOUR).await;
    let opened = ForceOpen {
        incarnation: incarnation(FIRST + 2),
        ..force(Epoch(FIRST + 2), &[key.slot()], SHORT)
    };
    let forced = desk.force_open(&opened).await;
    assert_eq!(forced.refused, []);
    assert!(forced.grace_left <= SHORT + fixture.late(), "{forced:?}");
    fixture.set_clock_back(HOUR).await;
    let answer = armed_with(fixture, FIRST + 3, Grace::None).await;
    let answer = answer.expect("an answer");
    assert!(
        answer.armed_now && answer.grace_left <= SHORT + fixture.late(),
        "{answer:?}"
    );
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "grace");
    fixture.elapse(PAST_SHORT).await;
    desk.granted(&key, nonce(), LONG).await;
}

/// How long the server has been up says nothing of a life that was armed.
pub async fn arming_anew_waits_in_full(fixture: &dyn Fixture) {
    Desk::armed(fixture, Grace::None).await;
    fixture.elapse(PAST_SHORT).await;
    let answer = armed_with(fixture, FIRST + 1, Grace::LessUptime(SHORT))
        .await
        .expect("an answer");
    assert!(answer.armed_now, "{answer:?}");
    assert!(answer.grace_left > SHORT * 9 / 10, "{answer:?}");
}

/// A raise of a later epoch may come before: no token repeats.
pub async fn arming_anew_keeps_a_later_token_epoch(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let mut control = control(fixture).await;
    let raised = control.raise(incarnation(FIRST), Epoch(FIRST + 2)).await;
    raised.expect("it is armed");
    let earlier = desk.granted(&desk.key("one"), nonce(), LONG).await;
    for number in [FIRST + 1, FIRST + 2] {
        let answer = armed_with(fixture, number, Grace::None).await;
        assert!(answer.expect("an answer").armed_now);
    }
    let later = desk.granted(&desk.key("two"), nonce(), LONG).await;
    assert!(later > earlier, "{later} after {earlier}");
    assert_eq!(later.epoch(), Epoch(FIRST + 2));
}

/// A mover that read a later record may have sealed a slot already: an earlier record must not open
/// it.
pub async fn an_arming_by_an_earlier_record_than_seen_changes_nothing(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Sealed).await;
    let mut late = arm(fixture, FIRST, Grace::None);
    (late.epoch, late.token_epoch) = (Epoch(MOVE.0 - 1), Epoch(MOVE.0 - 1));
    late.copy = (MOVE.0 - 1, "an earlier record".into());
    assert!(!arms(fixture, &late).await.armed_now);
    let found = armed(fixture).await.expect("it is armed");
    assert_eq!(found.epoch, Epoch(FIRST));
    let reply = desk.acquire(&key, nonce(), LONG).await;
    assert!(matches!(reply, Reply::Moving { .. }), "{reply:?}");

    // With what the record says that it has seen.
    late.copy = (MOVE.0, format!("record {MOVE}"));
    assert!(arms(fixture, &late).await.armed_now);
}

/// What was known of the keys of a slot that comes here is asked for again, as after a restart.
pub async fn arming_anew_forgets_lists_and_proofs(fixture: &dyn Fixture) {
    let (mut desk, free) = moving_desk(fixture, Mode::Import).await;
    let taken = desk.beside(&free);
    assert_eq!(desk.lists(vec![taken.clone()], &[free.slot()]).await, []);
    let anew = (MOVE.0 + 1, Grace::None);
    armed_in(fixture, anew, (&free, Mode::Import)).await;
    for key in [&free, &taken] {
        let reply = desk.acquire(key, nonce(), LONG).await;
        assert_eq!(reply, Reply::NeedProof { epoch: MOVE });
    }
}
