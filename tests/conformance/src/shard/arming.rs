//! What a life begins with: nothing, then its arming, then its grace.

use super::{
    Fixture,
    batches::word,
    desk::{
        Desk, FIRST, LONG, PAST_SHORT, QUIET, SHORT, acquire, arm, armed_with, control,
        incarnation, locks, marked_quiet, nonce, quiet_mark, renew,
    },
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    name::{LockKey, Namespace},
    shard::{Arm, Grace, Mode, Op, Reply, ShardError, SlotState, SlotStates},
};
use ringfence_ring::{Replicas, Slot, SlotCount};

/// A life without state answers every request with that.
pub async fn an_unarmed_shard_answers_nothing_and_writes_nothing(fixture: &dyn Fixture) {
    let desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let (key, nonce) = (desk.key("key"), nonce());
    for op in [
        acquire(nonce, LONG),
        renew(nonce, Token::new(Epoch(FIRST), 9), LONG),
        Op::Release { nonce },
    ] {
        let mut link = locks(fixture).await;
        let refused = link.call(&[desk.request(&key, op)]).await;
        assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
    }
    let refused = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, Vec::new())).await;
    assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
    let mut control = control(fixture).await;
    let refused = control.raise(incarnation(FIRST), Epoch(99)).await;
    assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");

    let mut desk = Desk::armed(fixture, Grace::None).await;
    assert_eq!(desk.inspect(&key).await, None);
    assert_eq!(
        desk.granted(&key, nonce, LONG).await,
        Token::new(Epoch(FIRST), 1)
    );
    desk.map = QUIET;
    assert!(!desk.is_quiet().await);
}

/// Two topologies never share a shard: each would believe that it alone grants.
pub async fn only_the_topology_that_a_shard_belongs_to_arms_it(fixture: &dyn Fixture) {
    let other = Arm {
        topology: "0fed".into(),
        ..arm(fixture, FIRST + 1, Grace::None)
    };
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, LONG).await;
    let refused = control(fixture).await.arm(&other).await;
    assert!(
        matches!(refused, Err(ShardError::Refused { .. })),
        "{refused:?}"
    );
    assert_eq!(
        word(&desk.renew(&key, (holder, token), LONG).await),
        "renewed"
    );
    // Nor in a life that is not armed.
    fixture.restart().await;
    let refused = control(fixture).await.arm(&other).await;
    assert!(
        matches!(refused, Err(ShardError::Refused { .. })),
        "{refused:?}"
    );
    assert_eq!(control(fixture).await.armed().await.expect("answer"), None);
    let armed = armed_with(fixture, FIRST + 1, Grace::None).await;
    assert!(armed.expect("its own").armed_now);
}

/// A shard may have slots of every rank of the largest ring.
pub async fn all_slots_of_the_largest_ring_are_armed_at_once(fixture: &dyn Fixture) {
    let slots: Vec<Slot> = SlotCount::MAX.all(Replicas::MAX).collect();
    let state = |slot: Slot| SlotState {
        mode: match slot.index() % 3 {
            0 => Mode::Shut,
            _ => Mode::Open,
        },
        epoch: Epoch(1 + slot.index() as u64 % 5),
    };
    let arm = Arm {
        slots: SlotStates::new(slots.iter().copied(), state),
        ..arm(fixture, FIRST, Grace::None)
    };
    let armed = control(fixture).await.arm(&arm).await;
    assert!(armed.expect("it was not armed").armed_now);
    let is_open = |slot: &Slot| state(*slot).mode == Mode::Open;
    let (open, shut): (Vec<Slot>, Vec<Slot>) = slots.into_iter().partition(is_open);
    for slot in [shut[0], shut[shut.len() / 2], shut[shut.len() - 1]] {
        let mark = quiet_mark(FIRST, QUIET, vec![slot]);
        let quiet = marked_quiet(fixture, &mark).await;
        assert!(!quiet.expect("it is armed"), "slot {slot} is shut");
    }
    let mark = quiet_mark(FIRST, QUIET, open);
    let quiet = marked_quiet(fixture, &mark).await;
    assert!(quiet.expect("it is armed"), "every slot is open");

    let namespace = Namespace::new("large").expect("a plain word");
    let keys = (0..100_u32).map(|at| LockKey::new(&namespace, &at.to_be_bytes(), SlotCount::MAX));
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    for key in keys.map(|key| key.expect("a key of fair length")) {
        let SlotState { mode, epoch } = state(key.slot());
        let reply = desk.acquire(&key, nonce(), LONG).await;
        match mode {
            Mode::Open => assert_eq!(word(&reply), "granted"),
            _ => assert_eq!(reply, Reply::Moved { epoch }),
        }
    }
}

/// Until every earlier lease must have ended, all requesters wait: a repeat may be of an earlier
/// life.
pub async fn in_grace_nobody_new_is_granted_and_no_repeat_answered(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(SHORT)).await;
    let (key, holder) = (desk.key("key"), nonce());
    for _ in 0..2 {
        let reply = desk.acquire(&key, holder, LONG).await;
        let in_time = matches!(reply, Reply::Grace { retry_after }
            if !retry_after.is_zero() && retry_after <= SHORT + fixture.late());
        assert!(in_time, "{reply:?}");
    }
    assert_eq!(desk.inspect(&key).await, None);

    let claim = (holder, Token::new(Epoch(FIRST - 1), 1));
    assert_eq!(word(&desk.renew(&key, claim, LONG).await), "reclaimed");
    assert_eq!(word(&desk.acquire(&key, holder, LONG).await), "grace");
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "grace");
    assert_eq!(word(&desk.release(&key, holder).await), "released");

    fixture.elapse(PAST_SHORT).await;
    desk.granted(&key, nonce(), LONG).await;
}

/// No restart loses a held lock: its next renewal puts it back, token and all.
pub async fn in_grace_a_renewal_reclaims(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(SHORT)).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = Token::new(Epoch(FIRST - 1), 1 << 33);
    assert_eq!(
        word(&desk.renew(&key, (holder, token), LONG).await),
        "reclaimed"
    );
    assert_eq!(
        word(&desk.renew(&key, (holder, token), LONG).await),
        "renewed"
    );
    let found = desk.inspect(&key).await.expect("it was put back");
    assert_eq!((found.nonce, found.token), (holder, token));
    assert!(found.remaining <= LONG + fixture.late());

    fixture.elapse(PAST_SHORT).await;
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
    assert_eq!(desk.granted(&key, holder, LONG).await, token);
    assert_eq!(word(&desk.release(&key, holder).await), "released");
}

/// Two processes that claim a key had it one after the other: the tokens tell which had it last.
pub async fn in_grace_only_a_higher_token_reclaims_from_another(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(LONG)).await;
    // Numbers of unequal length, within an epoch and across two: compared as numbers, not as text.
    let older = [
        Token::new(Epoch(3), 9),
        Token::new(Epoch(3), 10),
        Token::new(Epoch(4), 2),
    ];
    let (key, holder) = (desk.key("key"), nonce());
    assert_eq!(
        word(&desk.renew(&key, (nonce(), older[0]), LONG).await),
        "reclaimed"
    );
    assert_eq!(
        word(&desk.renew(&key, (nonce(), older[1]), LONG).await),
        "reclaimed"
    );
    assert_eq!(
        word(&desk.renew(&key, (holder, older[2]), LONG).await),
        "reclaimed"
    );

    for token in older {
        assert_eq!(
            desk.renew(&key, (nonce(), token), LONG).await,
            Reply::Lost,
            "{token}"
        );
    }
    let found = desk.inspect(&key).await.expect("it was put back");
    assert_eq!((found.nonce, found.token), (holder, older[2]));
}

/// A key that was not claimed in time goes to the next requester.
pub async fn after_grace_nothing_is_reclaimed(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(SHORT)).await;
    fixture.elapse(PAST_SHORT).await;
    let (key, token) = (desk.key("key"), Token::new(Epoch(FIRST), 1 << 33));
    assert_eq!(desk.renew(&key, (nonce(), token), LONG).await, Reply::Lost);
    assert_eq!(desk.inspect(&key).await, None);

    let holder = nonce();
    desk.granted(&key, holder, LONG).await;
    assert_eq!(desk.renew(&key, (nonce(), token), LONG).await, Reply::Lost);
    assert_eq!(desk.holder(&key).await, Some(holder));
}

/// A record saved by an earlier life may be anybody's, long gone: grace over, it counts for nothing.
pub async fn after_grace_a_record_of_an_older_arming_is_not_live(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (unclaimed, claimed, holder) = (desk.key("unclaimed"), desk.key("claimed"), nonce());
    let older = desk.granted(&unclaimed, nonce(), LONG).await;
    let token = desk.granted(&claimed, holder, LONG).await;

    fixture.restart().await;
    let grace = Grace::Full(SHORT);
    armed_with(fixture, FIRST + 1, grace)
        .await
        .expect("a new life");
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    assert_eq!(
        word(&desk.renew(&claimed, (holder, token), LONG).await),
        "renewed"
    );
    fixture.elapse(PAST_SHORT).await;

    assert_eq!(desk.inspect(&unclaimed).await, None);
    assert!(desk.granted(&unclaimed, nonce(), LONG).await > older);
    assert_eq!(word(&desk.acquire(&claimed, nonce(), LONG).await), "held");
    assert_eq!(desk.granted(&claimed, holder, LONG).await, token);
}

/// Nobody was granted the key meanwhile, so its holder may have it still.
pub async fn after_grace_its_own_renewal_still_saves_an_older_record(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, LONG).await;
    fixture.restart().await;
    armed_with(fixture, FIRST + 1, Grace::None)
        .await
        .expect("a new life");

    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    assert_eq!(desk.inspect(&key).await, None);
    assert_eq!(
        word(&desk.renew(&key, (holder, token), LONG).await),
        "renewed"
    );
    assert_eq!(
        desk.inspect(&key).await.map(|found| found.token),
        Some(token)
    );
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
}

/// While its holder may come back, a record saved by an earlier life is shown, and can be released.
pub async fn in_grace_a_record_of_an_older_arming_is_live(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, LONG).await;
    fixture.restart().await;
    armed_with(fixture, FIRST + 1, Grace::Full(LONG))
        .await
        .expect("a new life");

    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let found = desk.inspect(&key).await.expect("it was saved");
    assert_eq!((found.nonce, found.token), (holder, token));
    let earlier = Token::new(Epoch(FIRST - 1), 1);
    assert_eq!(
        desk.renew(&key, (nonce(), earlier), LONG).await,
        Reply::Lost
    );
    assert_eq!(word(&desk.release(&key, holder).await), "released");
    assert_eq!(desk.inspect(&key).await, None);
}

/// A fresh epoch outweighs every counter of an earlier life.
pub async fn tokens_rise_across_lives(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    fixture.set_counter(1 << 33).await;
    let (key, holder) = (desk.key("key"), nonce());
    let older = desk.granted(&key, holder, LONG).await;
    desk.release(&key, holder).await;

    fixture.restart().await;
    armed_with(fixture, FIRST + 1, Grace::None)
        .await
        .expect("a new life");
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let newer = desk.granted(&key, nonce(), LONG).await;
    assert_eq!(
        newer,
        Token::new(Epoch(FIRST + 1), 1),
        "the counter starts anew"
    );
    assert!(newer > older);
}
