//! The list that the next shard gets from the former one: the keys that still need a proof, and
//! their waiters.

use std::time::Duration;

use super::{
    Fixture,
    batches::word,
    desk::{Desk, FIRST, LONG, PAST_SHORT, PAST_WINDOW, WINDOW, mover, nonce, nonce_of},
    line::{Ear, WAITER, queue},
    movers::{EARLIER, LATER, MOVE, adopt, armed_in, held, moving_desk, proving, waited_for},
    slots::elsewhere,
};
use crate::{
    ids::{Epoch, MapVersion, Token},
    limits::TICKET_KEEP,
    shard::{Grace, Left, Listing, Mode, Reply, ShardError},
};

/// A mover may have died, and nobody goes on for as long.
const HOURS: Duration = Duration::from_secs(5 * 3600);

/// After it, a requester of a free key asks one shard.
pub async fn a_complete_list_frees_what_it_does_not_name(fixture: &dyn Fixture) {
    let (mut desk, free) = moving_desk(fixture, Mode::Import).await;
    let taken = desk.beside(&free);
    let slot = free.slot();
    assert_eq!(desk.lists(vec![held(&taken)], &[slot]).await, []);
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
    let pages = [
        vec![held(&one)],
        vec![waited_for(&free, &[])],
        vec![held(&other)],
    ];
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
    assert_eq!(desk.lists(vec![held(&taken)], &[]).await, []);
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
        assert_eq!(desk.lists(vec![held(&key)], &complete).await, []);
    }
    desk.release(&key, holder).await;
    desk.granted(&key, nonce(), LONG).await;
}

/// The list of another move is about another shard, or another time.
pub async fn a_list_does_nothing_where_no_slot_comes_by_that_move(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let other = elsewhere(&desk, &key);
    let carried = nonce();
    let mut slots = [other.slot(), key.slot()];
    slots.sort();
    let left = || {
        vec![
            waited_for(&key, &[(carried, 1)]),
            waited_for(&other, &[(carried, 1)]),
        ]
    };

    for epoch in [EARLIER, LATER] {
        let mut refused = desk.lists_at(epoch, left(), &slots).await;
        refused.sort();
        assert_eq!(refused, slots, "{epoch}");
        assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "need proof");
    }
    for key in [&key, &other] {
        assert_eq!(desk.waiting(key).await, []);
        assert_eq!(desk.inspect(key).await, None);
    }
    for (epoch, mode) in [
        (MOVE, Mode::Sealed),
        (MOVE, Mode::Shut),
        (LATER, Mode::Open),
    ] {
        desk.becomes(&other, epoch, mode).await;
        assert_eq!(desk.lists(left(), &[other.slot()]).await, [other.slot()]);
        assert_eq!(desk.waiting(&other).await, [], "{mode:?}");
        assert_eq!(desk.inspect(&other).await, None, "{mode:?}");
    }
    assert_eq!(desk.lists(left(), &slots).await, [other.slot()]);
    assert_eq!(
        desk.holder(&key).await,
        Some(carried),
        "its own slot is not refused"
    );
}

/// The next time the slot comes it may come from elsewhere.
pub async fn a_list_ends_with_its_move(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let taken = desk.beside(&key);
    desk.lists(vec![held(&taken)], &[key.slot()]).await;
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

/// The order in which they came, at whichever shard.
pub async fn carried_tickets_come_first_and_in_their_order(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let [here, both, early, middle, newcomer] = [(); 5].map(|()| nonce());
    for nonce in [here, both] {
        desk.waits_for_proof(&key, nonce, 1).await;
    }
    let left = Left {
        held: true,
        ..waited_for(&key, &[(early, 1), (both, 1), (middle, 1)])
    };
    for _ in 0..2 {
        assert_eq!(desk.lists(vec![left.clone()], &[]).await, []);
        assert_eq!(desk.waiting(&key).await, [early, both, middle, here]);
    }
    desk.waits_for_proof(&key, newcomer, 1).await;
    desk.waits_for_proof(&key, middle, 2).await;
    let expected = [early, both, middle, here, newcomer];
    assert_eq!(desk.waiting(&key).await, expected);
}

/// Two movers may scan, one after the other.
pub async fn newcomers_are_behind_what_a_later_list_carries(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    // Their order is not that of their numbers.
    let [newcomer, third, second, first] = [(); 4].map(|()| nonce());
    desk.lists(vec![waited_for(&key, &[(first, 1)])], &[]).await;
    desk.waits_for_proof(&key, newcomer, 1).await;
    let later = waited_for(&key, &[(first, 1), (second, 1)]);
    desk.lists(vec![later], &[]).await;
    assert_eq!(desk.waiting(&key).await, [first, second, newcomer]);
    // The first ones' tickets at the former shard may have ended since.
    for waiting in [vec![(second, 1), (third, 1)], vec![(third, 1)]] {
        desk.lists(vec![waited_for(&key, &waiting)], &[]).await;
        let expected = [first, second, third, newcomer];
        assert_eq!(desk.waiting(&key).await, expected);
    }
}

/// The deadline of a turn counts from the latest request, whichever shard it went to.
pub async fn a_carried_ticket_keeps_the_later_sent(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let mut ear = Ear::of(fixture, WAITER).await;
    let [later_here, later_there] = [(); 2].map(|()| nonce_of(WAITER));
    desk.waits_for_proof(&key, later_here, 10).await;
    desk.waits_for_proof(&key, later_there, 9).await;
    let left = waited_for(&key, &[(later_here, 9), (later_there, 10)]);
    desk.lists(vec![left], &[key.slot()]).await;
    desk.release(&key, later_here).await;
    let turns = ear.turns(&mut desk).await;
    let told: Vec<_> = turns
        .iter()
        .map(|turn| (turn.nonce, turn.sent.as_nanos()))
        .collect();
    assert_eq!(told, [(later_here, 10), (later_there, 10)]);
}

/// A holder that moved along no longer waits.
pub async fn who_holds_the_key_here_is_not_carried_into_its_queue(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let (holder, token, other) = (nonce(), Token::new(Epoch(FIRST), 9), nonce());
    let adopted = desk.one(&key, adopt(holder, token, MOVE)).await;
    assert_eq!(word(&adopted), "adopted");
    let left = waited_for(&key, &[(holder, 1), (other, 1)]);
    desk.lists(vec![left], &[]).await;
    assert_eq!(desk.waiting(&key).await, [other]);
}

/// Its process asks again here from now on, or has died.
pub async fn a_carried_ticket_lasts_as_long_as_one_that_is_sent(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let [here, carried] = [(); 2].map(|()| nonce());
    desk.waits_for_proof(&key, here, 1).await;
    fixture.elapse(TICKET_KEEP / 2).await;
    let left = waited_for(&key, &[(carried, 1)]);
    desk.lists(vec![left], &[]).await;
    fixture.elapse(TICKET_KEEP / 2 + PAST_SHORT).await;
    assert_eq!(desk.waiting(&key).await, [carried], "it came later");
    fixture.elapse(TICKET_KEEP / 2).await;
    assert_eq!(desk.waiting(&key).await, []);
}

/// Nobody has to ask for what became free.
pub async fn a_complete_list_passes_on_what_it_frees(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let mut ear = Ear::of(fixture, WAITER).await;
    let mut others = desk.many_beside(&key);
    let [unnamed, taken] = [(); 2].map(|()| others.next().expect("there are many"));
    drop(others);
    let [carried, here, behind] = [(); 3].map(|()| nonce_of(WAITER));
    for key in [&key, &unnamed, &taken] {
        desk.waits_for_proof(key, here, 1).await;
    }
    let left = vec![
        waited_for(&key, &[(carried, 7)]),
        Left {
            held: true,
            ..waited_for(&taken, &[(behind, 1)])
        },
    ];
    desk.lists(left.clone(), &[]).await;
    assert_eq!(desk.inspect(&key).await, None, "the list is not complete");
    desk.lists(left.clone(), &[key.slot()]).await;
    assert_eq!(desk.holder(&key).await, Some(carried));
    assert_eq!(desk.inspect(&taken).await, None, "it is held elsewhere");
    assert_eq!(desk.waiting(&taken).await, [behind, here]);
    assert_eq!(ear.turns(&mut desk).await.len(), 1);
    // No list names waiters of a free key: they ask again.
    let granted = desk.one(&unnamed, queue(here, 2)).await;
    assert_eq!(word(&granted), "granted");

    // A waiter that is carried later finds its key free already.
    desk.release(&key, carried).await;
    desk.release(&key, here).await;
    desk.lists(left, &[]).await;
    assert_eq!(desk.holder(&key).await, Some(carried));
    assert_eq!(
        ear.turns(&mut desk).await.len(),
        2,
        "here's, then carried's"
    );
}

/// A holder of this shard's earlier life comes first; what was told of the former shard stays true.
pub async fn in_grace_a_list_is_taken_and_passes_nothing_on(fixture: &dyn Fixture) {
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let (key, carried) = (desk.key("key"), nonce());
    armed_in(fixture, (FIRST, Grace::Full(WINDOW)), (&key, Mode::Import)).await;
    desk.becomes(&key, MOVE, Mode::Import).await;
    let left = waited_for(&key, &[(carried, 1)]);
    assert_eq!(desk.lists(vec![left], &[key.slot()]).await, []);
    assert_eq!(desk.inspect(&key).await, None);
    assert_eq!(desk.waiting(&key).await, [carried]);
    fixture.elapse(PAST_WINDOW).await;
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
    assert_eq!(desk.holder(&key).await, Some(carried));
    assert_eq!(word(&desk.one(&key, queue(carried, 2)).await), "granted");
}

/// It would be of a slot of which nobody knows whether it comes here.
pub async fn an_unarmed_shard_takes_no_list(fixture: &dyn Fixture) {
    let key = Desk::open(fixture, MapVersion::UNKNOWN).await.key("key");
    let listing = Listing {
        epoch: MOVE,
        left: vec![held(&key)],
        complete: vec![key.slot()],
    };
    let refused = mover(fixture).await.take_list(&listing).await;
    assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
}
