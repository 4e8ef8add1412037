//! Where and when no key is passed on: a queue is never a way around a rule.

use super::{
    Fixture,
    batches::word,
    desk::{
        Desk, FIRST, LONG, PAST_SHORT, SHORT, acquire, all_open_but, arm, armed_with, control,
        incarnation, nonce, nonce_of,
    },
    line::{Ear, WAITER, queue, queue_for},
    slots::shut_desk,
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    limits::{CLAIM_MAX, COUNTER_MAX},
    shard::{Grace, Reply},
};

/// Grace is for previous holders; waiters keep waiting, in the same order.
pub async fn in_grace_no_key_is_passed_on_and_tickets_keep_their_places(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(SHORT)).await;
    let mut ear = Ear::of(fixture, WAITER).await;
    let (key, [first, second]) = (desk.key("key"), [(); 2].map(|()| nonce_of(WAITER)));
    let claim = (nonce(), Token::new(Epoch(FIRST - 1), 1));
    assert_eq!(word(&desk.one(&key, queue(first, 1)).await), "grace");
    assert_eq!(word(&desk.renew(&key, claim, LONG).await), "reclaimed");
    assert_eq!(word(&desk.one(&key, queue(second, 1)).await), "grace");
    assert_eq!(word(&desk.release(&key, claim.0).await), "released");
    assert_eq!(word(&desk.one(&key, queue(first, 2)).await), "grace");
    assert_eq!(desk.inspect(&key).await, None);

    fixture.elapse(PAST_SHORT).await;
    assert_eq!(ear.heard(&mut desk).await, [], "passed on in grace");
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
    assert_eq!(desk.holder(&key).await, Some(first));
    assert_eq!(ear.turns(&mut desk).await[0].sent.as_nanos(), 2);
    assert_eq!(desk.queues(&key, second).await, 0);
}

/// A holder that has put its grant back does not wait for the lock, and is not asked to give it to
/// itself.
pub async fn a_reclaim_removes_its_own_ticket(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(SHORT)).await;
    let [alone, beside] = ["alone", "beside"].map(|name| desk.key(name));
    let (holder, other) = (nonce(), nonce());
    for (key, nonce) in [(&alone, holder), (&beside, holder), (&beside, other)] {
        assert_eq!(word(&desk.one(key, queue(nonce, 1)).await), "grace");
    }
    let claim = (holder, Token::new(Epoch(FIRST - 1), 1));
    for (key, contended) in [(&alone, false), (&beside, true)] {
        let reclaimed = Reply::Renewed {
            reclaimed: true,
            contended,
            moving: None,
        };
        assert_eq!(desk.renew(key, claim, LONG).await, reclaimed);
    }
    fixture.elapse(PAST_SHORT).await;
    for (key, next) in [(&alone, None), (&beside, Some(other))] {
        desk.release(key, holder).await;
        assert_eq!(desk.holder(key).await, next);
    }
}

/// A waiter that found its grant no longer waits, for any ticket.
pub async fn a_repeat_removes_its_own_ticket(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(SHORT)).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = Token::new(Epoch(FIRST - 1), 1);
    let reclaimed = desk.renew(&key, (holder, token), LONG).await;
    assert_eq!(word(&reclaimed), "reclaimed");
    assert_eq!(word(&desk.one(&key, queue(holder, 1)).await), "grace");
    fixture.elapse(PAST_SHORT).await;
    let again = Reply::Granted {
        token,
        tokens: 1,
        contended: false,
    };
    assert_eq!(desk.one(&key, queue(holder, 2)).await, again);
}

/// A ticket in the wrong place would wait for ever.
pub async fn a_shut_slot_keeps_no_ticket(fixture: &dyn Fixture) {
    let (mut desk, gone) = shut_desk(fixture, Grace::None).await;
    assert_eq!(word(&desk.one(&gone, queue(nonce(), 1)).await), "moved");
    fixture.restart().await;
    armed_with(fixture, FIRST + 1, Grace::None)
        .await
        .expect("a new life");
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let holder = nonce();
    let token = desk.granted(&gone, holder, LONG).await;
    assert!(!desk.is_contended(&gone, (holder, token)).await);
}

/// A lock that is released at a shut slot is granted at the slot's present shard.
pub async fn a_shut_slot_passes_nothing_on(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let waiter = nonce_of(WAITER);
    let (gone, (holder, _)) = desk.with_queue("gone", LONG, &[waiter]).await;
    fixture.restart().await;
    let mut arm = arm(fixture, FIRST + 1, Grace::None);
    arm.slots = all_open_but(gone.slot());
    let mut control = control(fixture).await;
    control.arm(&arm).await.expect("a new life");

    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    assert_eq!(word(&desk.one(&gone, queue(waiter, 2)).await), "moved");
    assert_eq!(word(&desk.release(&gone, holder).await), "released");
    assert_eq!(word(&desk.one(&gone, queue(nonce(), 1)).await), "moved");
    assert_eq!(desk.inspect(&gone).await, None);
}

/// Without a token there is no grant, not to a queue and not past it.
pub async fn a_spent_counter_passes_nothing_on_and_nobody_overtakes(fixture: &dyn Fixture) {
    for (mut desk, epoch) in Desk::both_ways(fixture).await.into_iter().zip(6..) {
        let (waiter, its_tokens) = (nonce(), 2);
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[]).await;
        let ask = |sent| queue_for(waiter, sent, (its_tokens, CLAIM_MAX));
        assert_eq!(word(&desk.one(&key, ask(1)).await), "held");
        fixture.set_counter(COUNTER_MAX - 1).await;
        assert_eq!(word(&desk.release(&key, holder).await), "released");
        assert_eq!(desk.inspect(&key).await, None);
        for op in [acquire(nonce(), LONG), queue(nonce(), 1), ask(2)] {
            assert_eq!(desk.one(&key, op).await, Reply::NoTokens);
            assert_eq!(desk.inspect(&key).await, None);
        }
        let mut control = control(fixture).await;
        let raised = control.raise(incarnation(FIRST), Epoch(epoch)).await;
        raised.expect("it is armed");
        assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
        assert_eq!(desk.holder(&key).await, Some(waiter));
    }
}

/// A queue may survive a restart or not: it is evidence of nothing.
pub async fn after_a_restart_no_queue_is_granted_to_in_grace(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let waiter = nonce_of(WAITER);
    let (key, (holder, _)) = desk.with_queue("key", LONG, &[waiter]).await;
    fixture.restart().await;
    armed_with(fixture, FIRST + 1, Grace::Full(SHORT))
        .await
        .expect("a new life");
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let mut ear = Ear::of(fixture, WAITER).await;
    assert_eq!(word(&desk.release(&key, holder).await), "released");
    let late = (holder, Token::default());
    assert_eq!(word(&desk.one(&key, queue(waiter, 2)).await), "grace");
    assert_eq!(desk.inspect(&key).await, None);

    fixture.elapse(PAST_SHORT).await;
    assert_eq!(ear.heard(&mut desk).await, [], "passed on in grace");
    assert_eq!(word(&desk.renew(&key, late, LONG).await), "lost");
    assert_eq!(desk.holder(&key).await, Some(waiter));
    assert_eq!(word(&desk.one(&key, queue(waiter, 3)).await), "granted");
}
