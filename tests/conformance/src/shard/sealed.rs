//! Slots that leave: no new lock is granted there, and an ended lock does not come back.

use super::{
    Fixture,
    batches::word,
    desk::{Desk, FIRST, LONG, PAST_SHORT, SHORT, nonce, nonce_of},
    line::{Ear, WAITER, queue},
    movers::{LATER, MOVE, armed_in, moving_desk, still},
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Nonce, Token},
    limits::TICKET_KEEP,
    name::LockKey,
    shard::{Grace, Mode, Reply},
};

/// What an acquire of `nonce` is answered, with a ticket and without one.
async fn both_words(desk: &mut Desk, key: &LockKey, nonce: Nonce) -> [&'static str; 2] {
    let queued = desk.one(key, queue(nonce, 1)).await;
    [word(&queued), word(&desk.acquire(key, nonce, LONG).await)]
}

/// Holds a key of a slot that is sealed then, for which `waiting` queue.
async fn sealed_with_queue(
    fixture: &dyn Fixture,
    lease: std::time::Duration,
    waiting: &[Nonce],
) -> (Desk, LockKey, (Nonce, Token)) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, grant) = desk.with_queue("key", lease, waiting).await;
    desk.becomes(&key, MOVE, Mode::Sealed).await;
    (desk, key, grant)
}

/// Two shards that grant have two holders.
pub async fn a_sealed_slot_grants_nothing_and_says_where_to_ask(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Sealed).await;
    let newcomer = nonce();
    let absent = Reply::Moving {
        epoch: MOVE,
        left: Some(0),
    };
    for _ in 0..2 {
        assert_eq!(desk.acquire(&key, newcomer, LONG).await, absent);
        assert_eq!(desk.one(&key, queue(newcomer, 1)).await, absent);
        let found = desk.mover.inspect(&key).await.expect("an answer");
        assert_eq!(found, Default::default(), "nothing is written");
    }
}

/// Its lock is here until it is brought along: a lost answer loses no lock.
pub async fn a_repeat_in_a_sealed_slot_finds_the_same_token_and_a_full_lease(
    fixture: &dyn Fixture,
) {
    let (mut desk, key, (holder, token)) = sealed_with_queue(fixture, SHORT, &[]).await;
    let again = Reply::Granted {
        token,
        tokens: 1,
        contended: false,
    };
    assert_eq!(desk.acquire(&key, holder, LONG).await, again);
    let found = desk.inspect(&key).await.expect("it is held");
    assert!(found.remaining > SHORT, "{found:?}");
}

/// A lock held here stays held, and no new waiter queues here.
pub async fn a_sealed_slot_proves_nothing_of_what_is_held_and_takes_no_ticket(
    fixture: &dyn Fixture,
) {
    let (mut desk, key, grant) = sealed_with_queue(fixture, LONG, &[]).await;
    let moving = Reply::Moving {
        epoch: MOVE,
        left: None,
    };
    let other = nonce();
    assert_eq!(desk.one(&key, queue(other, 1)).await, moving);
    assert_eq!(desk.acquire(&key, other, LONG).await, moving);
    assert!(!desk.is_contended(&key, grant).await);
    desk.release(&key, grant.0).await;
    assert_eq!(both_words(&mut desk, &key, other).await, ["absent"; 2]);
}

/// Every waiter queues again at the next shard, and no longer here.
pub async fn a_sealed_slot_proves_a_key_free_for_everybody_and_drops_the_ticket(
    fixture: &dyn Fixture,
) {
    let [first, second, third, newcomer] = [(); 4].map(|()| nonce());
    let waiting = [first, second, third];
    let (mut desk, key, (holder, _)) = sealed_with_queue(fixture, LONG, &waiting).await;
    assert_eq!(both_words(&mut desk, &key, second).await, ["moving"; 2]);
    assert_eq!(desk.waiting(&key).await, [first, third]);
    desk.release(&key, holder).await;
    for nonce in [third, newcomer, second] {
        let words = both_words(&mut desk, &key, nonce).await;
        assert_eq!(words, ["absent"; 2], "{nonce}");
    }
    assert_eq!(desk.waiting(&key).await, [first], "it has not asked again");
}

/// A process that died waiting keeps nobody from moving on.
pub async fn a_sealed_slot_waits_for_no_ticket_that_has_ended(fixture: &dyn Fixture) {
    let waiting = [nonce(), nonce()];
    let (mut desk, key, (holder, _)) = sealed_with_queue(fixture, LONG, &waiting).await;
    desk.release(&key, holder).await;
    fixture.elapse(TICKET_KEEP + PAST_SHORT).await;
    assert_eq!(both_words(&mut desk, &key, nonce()).await, ["absent"; 2]);
}

/// A queue is no way around a seal.
pub async fn a_sealed_slot_passes_nothing_on(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let mut ear = Ear::of(fixture, WAITER).await;
    let waiting = [(); 2].map(|()| nonce_of(WAITER));
    let (given_back, (holder, _)) = desk.with_queue("key", LONG, &waiting).await;
    let lapsed = desk.beside(&given_back);
    let late = nonce();
    let grant = (late, desk.granted(&lapsed, late, SHORT).await);
    for nonce in waiting {
        desk.queues(&lapsed, nonce).await;
    }
    desk.becomes(&given_back, MOVE, Mode::Sealed).await;

    assert_eq!(word(&desk.release(&given_back, holder).await), "released");
    fixture.elapse(PAST_SHORT).await;
    assert_eq!(desk.renew(&lapsed, grant, LONG).await, Reply::Lost);
    for key in [&given_back, &lapsed] {
        assert_eq!(word(&desk.acquire(key, nonce(), LONG).await), "absent");
        assert_eq!(word(&desk.release(key, waiting[0]).await), "gone");
        assert_eq!(desk.inspect(key).await, None);
    }
    assert_eq!(ear.turns(&mut desk).await, []);
}

/// The first a holder hears of a move.
pub async fn a_renewal_in_a_sealed_slot_extends_and_says_so(fixture: &dyn Fixture) {
    let (mut desk, key, grant) = sealed_with_queue(fixture, SHORT, &[nonce()]).await;
    let moving = Reply::Renewed {
        reclaimed: false,
        contended: true,
        moving: Some(MOVE),
    };
    assert_eq!(desk.renew(&key, grant, LONG).await, moving);
    let found = desk.inspect(&key).await.expect("it is held");
    assert!(found.remaining > SHORT, "{found:?}");
    assert_eq!(
        desk.renew(&key, (nonce(), grant.1), LONG).await,
        Reply::Lost
    );
    assert_eq!(desk.holder(&key).await, Some(grant.0));
}

/// A release is valid at any place of the lock.
pub async fn locks_of_a_leaving_slot_can_be_released(fixture: &dyn Fixture) {
    let waiter = nonce();
    let (mut desk, key, (holder, _)) = sealed_with_queue(fixture, LONG, &[waiter]).await;
    let shut = desk.beside(&key);
    desk.becomes(&key, LATER, Mode::Open).await;
    desk.granted(&shut, holder, LONG).await;
    for mode in [Mode::Sealed, Mode::Shut] {
        let key = if mode == Mode::Sealed { &key } else { &shut };
        desk.becomes(key, Epoch(LATER.0 + 1), mode).await;
        assert_eq!(word(&desk.release(key, nonce()).await), "gone");
        assert_eq!(word(&desk.release(key, waiter).await), "gone");
        assert_eq!(word(&desk.release(key, holder).await), "released");
        let found = desk.mover.inspect(key).await.expect("an answer");
        assert_eq!(found, Default::default(), "{mode:?}");
    }
}

/// A shard that has lost its records knows of nothing that it is absent.
pub async fn a_sealed_slot_in_grace_proves_nothing(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (kept, holder) = (desk.key("kept"), nonce());
    let token = desk.granted(&kept, holder, LONG).await;
    fixture.restart().await;
    let grace = Grace::Full(SHORT);
    armed_in(fixture, (FIRST + 1, grace), (&kept, Mode::Sealed)).await;

    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let lost = desk.beside(&kept);
    let (claim, newcomer) = ((nonce(), token), nonce());
    for key in [&kept, &lost] {
        assert_eq!(both_words(&mut desk, key, newcomer).await, ["moving"; 2]);
    }
    for (key, grant, reclaimed) in [(&kept, (holder, token), false), (&lost, claim, true)] {
        let moving = Reply::Renewed {
            reclaimed,
            contended: false,
            moving: Some(MOVE),
        };
        assert_eq!(desk.renew(key, grant, LONG).await, moving);
    }
    assert_eq!(word(&desk.acquire(&kept, holder, LONG).await), "moving");
    fixture.elapse(PAST_SHORT).await;
    for key in [&kept, &lost] {
        assert_eq!(both_words(&mut desk, key, newcomer).await, ["moving"; 2]);
    }
}

/// A sealed slot only shrinks: everything that was proved or scanned of it stays true.
pub async fn in_a_sealed_slot_no_renewal_saves_a_record_of_an_older_arming(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, LONG).await;
    fixture.restart().await;
    armed_in(fixture, (FIRST + 1, Grace::None), (&key, Mode::Sealed)).await;

    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    assert_eq!(desk.scanned(MOVE).await, []);
    let asked = still(MOVE, &[&key], &[key.slot()]);
    let answer = desk.mover.still_held(&asked).await.expect("an answer");
    assert_eq!(answer.keys, []);
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "absent");
    assert_eq!(desk.renew(&key, (holder, token), LONG).await, Reply::Lost);
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "absent");
}
