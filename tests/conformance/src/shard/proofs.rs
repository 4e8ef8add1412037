//! Slots that come: a key is granted once its former shard surely does not hold it.

use super::{
    Fixture,
    batches::word,
    desk::{Desk, FIRST, LONG, PAST_SHORT, SHORT, nonce, nonce_of},
    line::{Ear, WAITER, queue},
    movers::{
        ABSENT, EARLIER, LATER, MOVE, adopt, armed_in, moving_desk, proving, step, with_proof,
    },
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    shard::{Grace, Mode, Proof, Reply, Step},
};

/// It may be held where it comes from.
pub async fn a_slot_that_comes_here_grants_nothing_without_a_proof(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let newcomer = nonce();
    let refused = Reply::NeedProof { epoch: MOVE };
    for _ in 0..2 {
        assert_eq!(desk.acquire(&key, newcomer, LONG).await, refused);
        let found = desk.mover.inspect(&key).await.expect("an answer");
        assert_eq!(found, Default::default(), "nothing is written");
    }
    assert_eq!(
        word(&desk.one(&key, proving(newcomer, MOVE)).await),
        "granted"
    );
    assert_eq!(desk.holder(&key).await, Some(newcomer));
}

/// Of another move it tells of another shard, or of another time.
pub async fn a_proof_is_of_one_move(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    for epoch in [Epoch(0), Epoch(FIRST), EARLIER, LATER] {
        let reply = desk.one(&key, proving(nonce(), epoch)).await;
        assert_eq!(reply, Reply::NeedProof { epoch: MOVE }, "proof of {epoch}");
    }
    assert_eq!(desk.inspect(&key).await, None);
    let reply = desk.one(&key, proving(nonce(), MOVE)).await;
    assert_eq!(word(&reply), "granted");
}

/// An exclusive lock has no other holder, here or there.
pub async fn a_proof_of_holders_left_grants_no_exclusive_lock(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    for left in [1, u32::MAX] {
        let some = Proof { left, ..ABSENT };
        let reply = desk.one(&key, with_proof(queue(nonce(), 1), some)).await;
        assert_eq!(reply, Reply::NeedProof { epoch: MOVE }, "{left} left");
    }
    assert_eq!(desk.inspect(&key).await, None);
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "need proof");
}

/// A slot has many keys.
pub async fn a_proof_is_of_one_key_and_no_other_of_its_slot(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let other = desk.beside(&key);
    let batch = [
        desk.request(&key, proving(nonce(), MOVE)),
        desk.request(&other, queue(nonce(), 1)),
        desk.request(&other, proving(nonce(), LATER)),
    ];
    let replies = desk.batch(&batch).await.replies;
    let words: Vec<_> = replies.iter().map(word).collect();
    assert_eq!(words, ["granted", "need proof", "need proof"]);
}

/// The former shard stays empty for ever: one answer is enough.
pub async fn a_proof_is_good_for_everybody_until_the_slot_is_here(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let first = nonce();
    assert_eq!(word(&desk.one(&key, proving(first, MOVE)).await), "granted");
    desk.becomes(&key, MOVE, Mode::Import).await;
    let (second, third) = (nonce(), nonce());
    assert_eq!(desk.queues(&key, second).await, 0);
    desk.release(&key, first).await;
    assert_eq!(desk.holder(&key).await, Some(second), "and it is passed on");
    desk.release(&key, second).await;
    desk.granted(&key, third, LONG).await;
}

/// For any requester that presents it, and with any result.
pub async fn a_proof_counts_though_another_holds_the_key_here(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let (holder, token) = (nonce(), Token::new(Epoch(FIRST), 9));
    let reply = desk.one(&key, adopt(holder, token, MOVE)).await;
    assert_eq!(word(&reply), "adopted");
    assert_eq!(word(&desk.one(&key, proving(nonce(), MOVE)).await), "held");
    desk.release(&key, holder).await;
    desk.granted(&key, nonce(), LONG).await;
}

/// The next time the slot comes it may come from elsewhere.
pub async fn a_proof_ends_with_its_move(fixture: &dyn Fixture) {
    let between = [None, Some(Mode::Open), Some(Mode::Sealed), Some(Mode::Shut)];
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, mut epoch) = (desk.key("key"), MOVE.0);
    for mode in between {
        desk.becomes(&key, Epoch(epoch), Mode::Import).await;
        let holder = nonce();
        let granted = desk.one(&key, proving(holder, Epoch(epoch))).await;
        assert_eq!(word(&granted), "granted");
        desk.release(&key, holder).await;
        if let Some(mode) = mode {
            desk.becomes(&key, Epoch(epoch + 1), mode).await;
        }
        epoch += 2;
        desk.becomes(&key, Epoch(epoch), Mode::Import).await;
        let reply = desk.acquire(&key, nonce(), LONG).await;
        let expected = Reply::NeedProof {
            epoch: Epoch(epoch),
        };
        assert_eq!(reply, expected, "after {mode:?}");
        epoch += 1;
    }
}

/// Waiting for a proof is waiting.
pub async fn a_request_without_proof_queues_and_a_proof_is_used_for_the_first_ticket(
    fixture: &dyn Fixture,
) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let mut ear = Ear::of(fixture, WAITER).await;
    let [first, second] = [(); 2].map(|()| nonce_of(WAITER));
    for (nonce, sent) in [(first, 1), (second, 1), (first, 2)] {
        desk.waits_for_proof(&key, nonce, sent).await;
    }
    assert_eq!(desk.waiting(&key).await, [first, second]);
    let reply = desk.one(&key, with_proof(queue(second, 2), ABSENT)).await;
    assert!(
        matches!(
            reply,
            Reply::Held {
                position: Some(0),
                ..
            }
        ),
        "{reply:?}"
    );
    let turns = ear.turns(&mut desk).await;
    assert_eq!(turns.len(), 1, "{turns:?}");
    assert_eq!((turns[0].nonce, turns[0].sent.as_nanos()), (first, 2));
}

/// A lock that was moved along, or granted here before, is held.
pub async fn keys_held_in_an_arriving_slot_are_held(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, SHORT).await;
    desk.becomes(&key, EARLIER, Mode::Sealed).await;
    desk.becomes(&key, MOVE, Mode::Import).await;

    assert_eq!(desk.granted(&key, holder, LONG).await, token);
    let renewed = Reply::Renewed {
        reclaimed: false,
        contended: false,
        moving: None,
    };
    assert_eq!(desk.renew(&key, (holder, token), LONG).await, renewed);
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
    assert_eq!(desk.queues(&key, nonce()).await, 0);
    assert!(desk.is_contended(&key, (holder, token)).await);
}

/// Its holder at the former shard may not know yet that it was brought along.
pub async fn an_adopted_lock_is_not_free_when_it_is_released(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let mut ear = Ear::of(fixture, WAITER).await;
    let (holder, token) = (nonce(), Token::new(Epoch(FIRST), 9));
    let waiter = nonce_of(WAITER);
    let adopted = desk.one(&key, adopt(holder, token, MOVE)).await;
    assert_eq!(word(&adopted), "adopted");
    desk.queues(&key, waiter).await;
    assert_eq!(word(&desk.release(&key, holder).await), "released");
    assert_eq!(desk.inspect(&key).await, None, "nothing is passed on");
    let lost = desk.renew(&key, (holder, token), LONG).await;
    assert_eq!(lost, Reply::Lost);
    assert_eq!(desk.inspect(&key).await, None, "nor by a lost renewal");
    desk.waits_for_proof(&key, waiter, 2).await;
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "need proof");
    assert_eq!(ear.turns(&mut desk).await, []);
    let granted = desk.one(&key, with_proof(queue(waiter, 3), ABSENT)).await;
    assert_eq!(word(&granted), "granted");
}

/// A holder of this shard's earlier life comes first.
pub async fn in_grace_a_proof_is_not_looked_at(fixture: &dyn Fixture) {
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let (key, other) = (desk.key("key"), nonce());
    armed_in(fixture, (FIRST, Grace::Full(SHORT)), (&key, Mode::Import)).await;
    desk.becomes(&key, MOVE, Mode::Import).await;
    let reply = desk.one(&key, with_proof(queue(other, 1), ABSENT)).await;
    assert_eq!(word(&reply), "grace");
    assert_eq!(desk.waiting(&key).await, [other]);
    let claim = (nonce(), Token::new(Epoch(FIRST - 1), 1));
    let reclaimed = Reply::Renewed {
        reclaimed: true,
        contended: true,
        moving: None,
    };
    assert_eq!(desk.renew(&key, claim, LONG).await, reclaimed);
    assert_eq!(word(&desk.release(&key, claim.0).await), "released");

    fixture.elapse(PAST_SHORT).await;
    desk.waits_for_proof(&key, other, 2).await;
    let reply = desk.one(&key, with_proof(queue(other, 3), ABSENT)).await;
    assert_eq!(word(&reply), "granted");
}

/// Once all is here, this shard alone decides.
pub async fn an_open_slot_needs_no_proof(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let (waiter, newcomer) = (nonce(), nonce());
    desk.waits_for_proof(&key, waiter, 1).await;
    desk.becomes(&key, MOVE, Mode::Open).await;
    assert_eq!(word(&desk.acquire(&key, newcomer, LONG).await), "held");
    assert_eq!(desk.holder(&key).await, Some(waiter));
}

/// Since it was armed, the former shard may have made tokens that are above its own.
pub async fn slots_armed_with_a_move_grant_nothing_until_a_mover_comes(fixture: &dyn Fixture) {
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let key = desk.key("key");
    armed_in(fixture, (FIRST, Grace::None), (&key, Mode::Import)).await;
    let (first, next) = (nonce(), nonce());
    let refused = Reply::NeedProof { epoch: MOVE };
    assert_eq!(desk.one(&key, proving(first, MOVE)).await, refused);
    assert!(desk.lists(Vec::new(), &[key.slot()]).await.is_empty());
    assert_eq!(desk.acquire(&key, next, LONG).await, refused);
    let above = Token::new(Epoch(FIRST + 5), 100);
    let import = Step {
        above,
        ..step(MOVE, Mode::Import, &[key.slot()])
    };
    assert!(desk.step(&import).await.refused.is_empty());
    assert!(desk.granted(&key, next, LONG).await > above);
}
