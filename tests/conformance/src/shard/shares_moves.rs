//! Semaphores and read-write locks in slots that move: the shares left at the former shard count.

use super::{
    Fixture,
    batches::word,
    desk::{Desk, FIRST, LONG, acquire, nonce},
    line::queue,
    movers::{EARLIER, LATER, MOVE, adopt, moving_desk, still, with_proof},
    shares::{of_mode, permits},
};
use ringfence_coordinator::{
    ids::{Epoch, Nonce, Token},
    name::LockKey,
    shard::{Grace, LockKind, LockMode, Mode, Op, Proof, Reply},
};

impl Desk {
    /// Asks for a share with a ticket, and with the proof that so many are left at the former shard.
    async fn proves(&mut self, key: &LockKey, nonce: Nonce, mode: LockMode, left: u32) -> Reply {
        let proof = Proof { epoch: MOVE, left };
        let op = with_proof(of_mode(queue(nonce, 1), mode), proof);
        self.one(key, op).await
    }
}

/// A share at the former shard, as its holder brings it along.
fn claim(nonce: Nonce, number: u64, mode: LockMode) -> Op {
    of_mode(adopt(nonce, Token::new(Epoch(FIRST), number), MOVE), mode)
}

/// The number falls as holders leave, and never rises.
pub async fn a_sealed_slot_tells_how_many_shares_are_left(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, waiter) = (desk.key("key"), nonce());
    let (two, _) = desk.shares(&key, permits(2, 4)).await;
    let one = desk.shares(&key, permits(1, 4)).await;
    desk.queues_for(&key, waiter, permits(2, 4)).await;
    desk.becomes(&key, MOVE, Mode::Sealed).await;
    for (released, left) in [(None, 3), (Some(two), 1), (Some(one.0), 0)] {
        if let Some(nonce) = released {
            assert_eq!(word(&desk.release(&key, nonce).await), "released");
        }
        let moving = Reply::Moving {
            epoch: MOVE,
            left: Some(left),
        };
        assert_eq!(desk.queues_for(&key, nonce(), permits(1, 4)).await, moving);
        assert!(
            !desk.holders(&key).await.contains(&waiter),
            "nothing is passed on"
        );
    }
    assert_eq!(desk.renews(&key, one, permits(1, 4)).await, "lost");
}

/// It goes on, and its holder is told to move.
pub async fn a_share_in_a_sealed_slot_is_renewed_and_found_again(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let reader = desk.shares(&key, LockMode::Read).await;
    desk.becomes(&key, MOVE, Mode::Sealed).await;
    let again = desk.share(&key, reader.0, LockMode::Read).await;
    assert!(matches!(again, Reply::Granted { token, .. } if token == reader.1));
    assert_eq!(desk.renews(&key, reader, LockMode::Read).await, "renewed");
    for asked in [LockMode::Exclusive, permits(1, 2)] {
        let held = LockKind::ReadWrite;
        let reply = desk.queues_for(&key, nonce(), asked).await;
        assert_eq!(reply, Reply::OtherKind { held }, "{asked:?}");
    }
}

/// Here and there together they are as many as the capacity.
pub async fn shares_left_at_the_former_shard_take_room(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let [first, second, third] = [(); 3].map(|()| nonce());
    let mode = permits(1, 3);
    assert_eq!(
        word(&desk.queues_for(&key, first, mode).await),
        "need proof"
    );
    assert_eq!(word(&desk.proves(&key, first, mode, 3).await), "need proof");
    assert_eq!(word(&desk.proves(&key, first, mode, 2).await), "granted");
    assert_eq!(
        word(&desk.proves(&key, second, mode, 2).await),
        "need proof"
    );
    assert_eq!(desk.holders(&key).await, [first]);
    assert_eq!(word(&desk.proves(&key, second, mode, 1).await), "granted");
    assert_eq!(word(&desk.proves(&key, third, mode, 1).await), "need proof");
    assert_eq!(word(&desk.proves(&key, third, mode, 0).await), "granted");
    desk.has_no_room(&key, mode).await;
}

/// The next request may know that fewer are left, or nothing at all.
pub async fn a_proof_of_shares_left_is_of_its_request(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    assert_eq!(
        word(&desk.proves(&key, nonce(), LockMode::Read, 1).await),
        "granted"
    );
    let reply = desk.share(&key, nonce(), LockMode::Read).await;
    assert_eq!(word(&reply), "need proof");
    for epoch in [EARLIER, LATER] {
        let op = of_mode(acquire(nonce(), LONG), LockMode::Read);
        let reply = desk
            .one(&key, with_proof(op, Proof { epoch, left: 1 }))
            .await;
        assert_eq!(word(&reply), "need proof", "of {epoch}");
    }
    // A writer needs them all.
    assert_eq!(
        word(&desk.proves(&key, nonce(), LockMode::Write, 1).await),
        "need proof"
    );
}

/// Those behind it wait, here as in a slot that does not move.
pub async fn a_proof_of_shares_left_serves_the_first_tickets(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let [first, second, third] = [(); 3].map(|()| nonce());
    for (nonce, count) in [(first, 1), (second, 2), (third, 1)] {
        let reply = desk.queues_for(&key, nonce, permits(count, 4)).await;
        assert_eq!(word(&reply), "need proof");
    }
    let reply = desk.proves(&key, third, permits(1, 4), 2).await;
    assert_eq!(
        word(&reply),
        "need proof",
        "two are ahead, and one does not fit"
    );
    assert_eq!(desk.holders(&key).await, [first]);
    let reply = desk.proves(&key, third, permits(1, 4), 0).await;
    assert_eq!(word(&reply), "granted");
    assert_eq!(desk.holders(&key).await, [first, second, third]);
}

/// Once nothing is left there, room here is all that counts.
pub async fn an_open_slot_asks_for_no_proof_of_shares(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    assert_eq!(
        word(&desk.proves(&key, nonce(), permits(1, 2), 1).await),
        "granted"
    );
    desk.becomes(&key, MOVE, Mode::Open).await;
    desk.shares(&key, permits(1, 2)).await;
    desk.has_no_room(&key, permits(1, 2)).await;
}

/// Its room is counted twice until it is removed at the former shard.
pub async fn shares_are_brought_along_without_room(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let (here, comes) = (nonce(), nonce());
    assert_eq!(
        word(&desk.proves(&key, here, permits(1, 2), 1).await),
        "granted"
    );
    for _ in 0..2 {
        let adopted = desk.one(&key, claim(comes, 1, permits(2, 2))).await;
        assert_eq!(word(&adopted), "adopted");
    }
    assert_eq!(desk.holders(&key).await.len(), 2);
    let next = nonce();
    let reply = desk.proves(&key, next, permits(1, 4), 2).await;
    assert_eq!(word(&reply), "need proof", "3 here, and 2 there");
    let reply = desk.proves(&key, next, permits(1, 4), 0).await;
    assert_eq!(word(&reply), "granted");
}

/// A writer that has downgraded stays a reader.
pub async fn an_adoption_never_adds_shares(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let writer = nonce();
    for mode in [LockMode::Read, LockMode::Write] {
        let adopted = desk.one(&key, claim(writer, 1, mode)).await;
        assert_eq!(word(&adopted), "adopted");
    }
    assert_eq!(
        word(&desk.proves(&key, nonce(), LockMode::Read, 0).await),
        "granted"
    );
}

/// It stays where it is.
pub async fn no_share_is_brought_along_to_another_kind(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let other = desk.beside(&key);
    let holder = nonce();
    assert_eq!(
        word(&desk.proves(&key, holder, permits(1, 2), 0).await),
        "granted"
    );
    assert_eq!(
        word(&desk.proves(&other, holder, LockMode::Exclusive, 0).await),
        "granted"
    );
    for mode in [LockMode::Exclusive, LockMode::Read] {
        let reply = desk.one(&key, claim(nonce(), 9, mode)).await;
        assert_eq!(word(&reply), "not adopted", "{mode:?}");
    }
    let reply = desk.one(&other, claim(nonce(), 9, LockMode::Read)).await;
    assert_eq!(word(&reply), "not adopted");
    for key in [key, other] {
        assert_eq!(desk.holders(&key).await, [holder]);
    }
}

/// Other holders may not have moved yet.
pub async fn a_share_is_removed_alone(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (moved, _) = desk.shares(&key, permits(2, 3)).await;
    let (stays, _) = desk.shares(&key, permits(1, 3)).await;
    let remove = |nonce, epoch| Op::Remove { nonce, epoch };
    assert_eq!(word(&desk.one(&key, remove(moved, MOVE)).await), "gone");
    desk.becomes(&key, MOVE, Mode::Sealed).await;
    for (nonce, epoch, expected) in [
        (moved, EARLIER, "gone"),
        (nonce(), MOVE, "gone"),
        (moved, MOVE, "released"),
        (moved, MOVE, "gone"),
    ] {
        assert_eq!(word(&desk.one(&key, remove(nonce, epoch)).await), expected);
    }
    assert_eq!(desk.holders(&key).await, [stays]);
    let moving = Reply::Moving {
        epoch: MOVE,
        left: Some(1),
    };
    assert_eq!(desk.queues_for(&key, nonce(), permits(1, 3)).await, moving);
}

/// Until the last of its holders has left.
pub async fn a_mover_finds_keys_with_shares(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let mutex = desk.beside(&key);
    let free = desk.many_beside(&key).nth(1).expect("there are more");
    desk.granted(&mutex, nonce(), LONG).await;
    let mut holders = Vec::new();
    for _ in 0..2 {
        holders.push(desk.shares(&key, LockMode::Read).await.0);
    }
    desk.becomes(&key, MOVE, Mode::Sealed).await;
    let mut held = vec![key.clone(), mutex.clone()];
    held.sort();
    assert_eq!(desk.scanned(MOVE).await, held);
    for reader in holders {
        let ask = still(MOVE, &[&key, &mutex, &free], &[key.slot()]);
        let found = desk.mover.still_held(&ask).await.expect("an answer");
        assert_eq!(found.keys, [key.clone(), mutex.clone()]);
        desk.release(&key, reader).await;
    }
    assert_eq!(desk.scanned(MOVE).await, std::slice::from_ref(&mutex));
    let ask = still(MOVE, &[&key, &mutex], &[key.slot()]);
    let found = desk.mover.still_held(&ask).await.expect("an answer");
    assert_eq!(found.keys, [mutex]);
}
