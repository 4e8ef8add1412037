//! The list that the next shard gets from the former one: the keys that still need a proof.

use std::time::Duration;

use super::{
    Fixture,
    batches::word,
    desk::{Desk, FIRST, LONG, PAST_SHORT, SHORT, mover, nonce},
    line::queue,
    movers::{EARLIER, LATER, MOVE, armed_in, moving_desk, proving},
    slots::elsewhere,
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion},
    shard::{Grace, Listing, Mode, Reply, ShardError},
};

/// A mover may have died, and nobody goes on for as long.
const HOURS: Duration = Duration::from_secs(5 * 3600);

/// After it, a requester of a free key asks one shard.
pub async fn a_complete_list_frees_the_keys_it_does_not_name(fixture: &dyn Fixture) {
    let (mut desk, free) = moving_desk(fixture, Mode::Import).await;
    let taken = desk.beside(&free);
    let slot = free.slot();
    assert_eq!(desk.lists(vec![taken.clone()], &[slot]).await, []);
    desk.granted(&free, nonce(), LONG).await;
    let reply = desk.acquire(&taken, nonce(), LONG).await;
    assert_eq!(reply, Reply::NeedProof { epoch: MOVE });
    assert_eq!(
        word(&desk.one(&taken, proving(nonce(), MOVE)).await),
        "granted"
    );
}

/// The key that is asked for may be on the next page.
pub async fn a_list_frees_nothing_before_it_is_complete(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let mut others = desk.many_beside(&key);
    let [one, other, free] = [(); 3].map(|()| others.next().expect("there are many"));
    drop(others);
    let pages = [vec![one.clone()], Vec::new(), vec![other.clone()]];
    for page in pages {
        assert_eq!(desk.lists(page, &[]).await, []);
        for key in [&key, &free, &one] {
            let reply = desk.acquire(key, nonce(), LONG).await;
            assert_eq!(word(&reply), "need proof", "{key}");
        }
    }
    assert_eq!(desk.lists(Vec::new(), &[key.slot()]).await, []);
    for (key, expected) in [
        (&key, "granted"),
        (&free, "granted"),
        (&one, "need proof"),
        (&other, "need proof"),
    ] {
        let reply = desk.acquire(key, nonce(), LONG).await;
        assert_eq!(word(&reply), expected, "{key}");
    }
}

/// However long the mover pauses, what it said before counts.
pub async fn a_list_goes_on_after_any_pause(fixture: &dyn Fixture) {
    let (mut desk, free) = moving_desk(fixture, Mode::Import).await;
    let taken = desk.beside(&free);
    assert_eq!(desk.lists(vec![taken.clone()], &[]).await, []);
    fixture.elapse(HOURS).await;
    assert_eq!(desk.lists(Vec::new(), &[free.slot()]).await, []);
    let reply = desk.acquire(&taken, nonce(), LONG).await;
    assert_eq!(reply, Reply::NeedProof { epoch: MOVE });
    desk.granted(&free, nonce(), LONG).await;
}

/// A proof is of later than the scan, or of as early.
pub async fn a_list_that_names_a_key_takes_no_proof_back(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let holder = nonce();
    assert_eq!(
        word(&desk.one(&key, proving(holder, MOVE)).await),
        "granted"
    );
    for complete in [vec![], vec![key.slot()]] {
        assert_eq!(desk.lists(vec![key.clone()], &complete).await, []);
    }
    desk.release(&key, holder).await;
    desk.granted(&key, nonce(), LONG).await;
}

/// The list of another move is about another shard, or another time.
pub async fn a_list_does_nothing_where_no_slot_comes_by_that_move(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let other = elsewhere(&desk, &key);
    let mut slots = [other.slot(), key.slot()];
    slots.sort();
    let named = desk.beside(&key);
    let held = || vec![named.clone(), other.clone()];

    for epoch in [EARLIER, LATER] {
        let mut refused = desk.lists_at(epoch, held(), &slots).await;
        refused.sort();
        assert_eq!(refused, slots, "{epoch}");
        assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "need proof");
    }
    for (epoch, mode) in [
        (MOVE, Mode::Sealed),
        (MOVE, Mode::Shut),
        (LATER, Mode::Open),
    ] {
        desk.becomes(&other, epoch, mode).await;
        assert_eq!(desk.lists(held(), &[other.slot()]).await, [other.slot()]);
    }
    assert_eq!(desk.lists(held(), &slots).await, [other.slot()]);
    desk.granted(&key, nonce(), LONG).await;
    let reply = desk.acquire(&named, nonce(), LONG).await;
    assert_eq!(word(&reply), "need proof", "its own slot is not refused");
}

/// The next time the slot comes it may come from elsewhere.
pub async fn a_list_ends_with_its_move(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let taken = desk.beside(&key);
    desk.lists(vec![taken.clone()], &[key.slot()]).await;
    let mut epoch = MOVE;
    for between in [Some(Mode::Sealed), None] {
        if let Some(mode) = between {
            desk.becomes(&key, LATER, mode).await;
        }
        epoch = Epoch(epoch.0 + 2);
        desk.becomes(&key, epoch, Mode::Import).await;
        assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "need proof");
        desk.lists_at(epoch, Vec::new(), &[key.slot()]).await;
        for key in [&key, &taken] {
            let holder = nonce();
            desk.granted(key, holder, LONG).await;
            desk.release(key, holder).await;
        }
    }
}

/// A holder of this shard's earlier life comes first; what was told of the former shard stays true.
pub async fn in_grace_a_list_is_taken_and_nothing_is_granted(fixture: &dyn Fixture) {
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let (key, waiter) = (desk.key("key"), nonce());
    armed_in(fixture, (FIRST, Grace::Full(SHORT)), (&key, Mode::Import)).await;
    desk.becomes(&key, MOVE, Mode::Import).await;
    assert_eq!(word(&desk.one(&key, queue(waiter, 1)).await), "grace");
    assert_eq!(desk.lists(Vec::new(), &[key.slot()]).await, []);
    assert_eq!(desk.inspect(&key).await, None);
    assert_eq!(desk.waiting(&key).await, [waiter]);
    fixture.elapse(PAST_SHORT).await;
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
    assert_eq!(desk.holder(&key).await, Some(waiter));
    assert_eq!(word(&desk.one(&key, queue(waiter, 2)).await), "granted");
}

/// It would be of a slot of which nobody knows whether it comes here.
pub async fn an_unarmed_shard_takes_no_list(fixture: &dyn Fixture) {
    let key = Desk::open(fixture, MapVersion::UNKNOWN).await.key("key");
    let listing = Listing {
        epoch: MOVE,
        held: vec![key.clone()],
        complete: vec![key.slot()],
    };
    let refused = mover(fixture).await.take_list(&listing).await;
    assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
}
