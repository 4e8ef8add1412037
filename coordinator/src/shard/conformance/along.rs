//! A waiter of a slot's former shard that comes with its proof keeps its place.

use super::{
    Fixture,
    batches::word,
    desk::{Desk, FIRST, LONG, PAST_SHORT, PAST_WINDOW, SHORT, WINDOW, acquire, nonce, nonce_of},
    line::{Ear, WAITER, queue},
    movers::{EARLIER, LATER, MOVE, adopt, came_along, moving_desk, proven, proving, waited_for},
};
use crate::{
    ids::{Epoch, Nonce, Token},
    name::LockKey,
    shard::{Left, Mode, Op, Reply, Waited},
};

/// A desk at which the slot of a key arrives, with a holder that moved along.
async fn held_desk(fixture: &dyn Fixture) -> (Desk, LockKey, Nonce) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let (holder, token) = (nonce(), Token::new(Epoch(FIRST), 9));
    let adopted = desk.one(&key, adopt(holder, token, MOVE)).await;
    assert_eq!(word(&adopted), "adopted");
    (desk, key, holder)
}

/// First come, first served, from one shard to the next.
pub async fn who_waited_at_the_former_shard_goes_before_who_came_here(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let mut ear = Ear::of(fixture, WAITER).await;
    let [here, first, second, third, newcomer] = [(); 5].map(|()| nonce_of(WAITER));
    // The second of them asked here too, before it was its turn there.
    for nonce in [here, second] {
        desk.waits_for_proof(&key, nonce, 1).await;
    }
    let reply = desk.one(&key, came_along(first, 1, Waited::First)).await;
    assert_eq!(word(&reply), "granted");
    for (nonce, waited) in [(second, Waited::First), (third, Waited::Alone)] {
        let reply = desk.one(&key, came_along(nonce, 2, waited)).await;
        assert_eq!(word(&reply), "held");
    }
    assert_eq!(desk.queues(&key, newcomer).await, 3);
    let expected = [second, third, here, newcomer];
    assert_eq!(desk.waiting(&key).await, expected);

    let mut served = vec![first];
    for next in expected {
        desk.release(&key, served[served.len() - 1]).await;
        assert_eq!(desk.holder(&key).await, Some(next));
        served.push(next);
    }
    let turns = ear.turns(&mut desk).await;
    let told: Vec<_> = turns.iter().map(|turn| turn.nonce).collect();
    assert_eq!(told, expected, "nobody has to ask");
}

/// They came before.
pub async fn while_others_wait_at_the_former_shard_a_proof_frees_nothing_for_who_came_here(
    fixture: &dyn Fixture,
) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let [here, first, second, third] = [(); 4].map(|()| nonce());
    let refused = Reply::NeedProof { epoch: MOVE };
    desk.waits_for_proof(&key, here, 1).await;
    let reply = desk.one(&key, came_along(first, 1, Waited::First)).await;
    assert_eq!(word(&reply), "granted");
    desk.release(&key, first).await;
    assert_eq!(desk.inspect(&key).await, None, "released to nobody");
    let lost = desk.renew(&key, (first, Token::default()), LONG).await;
    assert_eq!(lost, Reply::Lost);
    assert_eq!(desk.inspect(&key).await, None, "nor by a lost renewal");
    desk.lists(vec![waited_for(&key, &[])], &[]).await;
    assert_eq!(desk.inspect(&key).await, None, "nor by a part of a list");
    assert_eq!(desk.one(&key, queue(here, 2)).await, refused);
    assert_eq!(desk.acquire(&key, nonce(), LONG).await, refused);

    // Waiters in the list were behind the first one, and go before the newcomers.
    desk.lists(vec![waited_for(&key, &[(second, 1)])], &[])
        .await;
    assert_eq!(desk.holder(&key).await, Some(second));
    desk.release(&key, second).await;
    assert_eq!(desk.inspect(&key).await, None);
    let reply = desk.one(&key, came_along(third, 1, Waited::Alone)).await;
    assert_eq!(word(&reply), "granted");
    desk.release(&key, third).await;
    assert_eq!(desk.holder(&key).await, Some(here), "nobody was before it");
}

/// However the key becomes free.
pub async fn what_ends_is_passed_on_to_who_came_along(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let [here, came, next] = [(); 3].map(|()| nonce());
    let (holder, token) = (nonce(), Token::new(Epoch(FIRST), 9));
    let mut brought = adopt(holder, token, MOVE);
    if let Op::Adopt { lease, .. } = &mut brought {
        *lease = WINDOW;
    }
    assert_eq!(word(&desk.one(&key, brought).await), "adopted");
    assert_eq!(desk.queues(&key, here).await, 0);
    for nonce in [came, next] {
        let reply = desk.one(&key, came_along(nonce, 1, Waited::First)).await;
        assert_eq!(word(&reply), "held");
    }
    fixture.elapse(PAST_WINDOW).await;
    assert_eq!(desk.renew(&key, (holder, token), LONG).await, Reply::Lost);
    assert_eq!(desk.holder(&key).await, Some(came));
    desk.release(&key, came).await;
    assert_eq!(desk.holder(&key).await, Some(next));
}

/// Those others are here by then.
pub async fn a_complete_list_frees_what_others_waited_for(fixture: &dyn Fixture) {
    let (mut desk, named) = moving_desk(fixture, Mode::Import).await;
    let unnamed = desk.beside(&named);
    let [here, first, second] = [(); 3].map(|()| nonce());
    for key in [&named, &unnamed] {
        desk.waits_for_proof(key, here, 1).await;
        let reply = desk.one(key, came_along(first, 1, Waited::First)).await;
        assert_eq!(word(&reply), "granted");
    }
    let left = [(&named, true), (&unnamed, false)].map(|(key, held)| Left {
        held,
        ..waited_for(key, &[(second, 1)])
    });
    desk.lists(left.to_vec(), &[named.slot()]).await;
    for key in [&named, &unnamed] {
        for (released, next) in [(first, second), (second, here)] {
            desk.release(key, released).await;
            assert_eq!(desk.holder(key).await, Some(next), "{key}");
        }
    }
}

/// It was before them there, whichever arrives first.
pub async fn who_was_first_goes_before_whom_the_list_carries(fixture: &dyn Fixture) {
    let (mut desk, key, holder) = held_desk(fixture).await;
    let [fourth, here, third, second, first] = [(); 5].map(|()| nonce());
    assert_eq!(desk.queues(&key, here).await, 0);
    let left = Left {
        held: true,
        ..waited_for(&key, &[(third, 1), (fourth, 1)])
    };
    desk.lists(vec![left.clone()], &[]).await;
    for (nonce, waited) in [(first, Waited::First), (second, Waited::First)] {
        let reply = desk.one(&key, came_along(nonce, 1, waited)).await;
        assert_eq!(word(&reply), "held");
    }
    let expected = [first, second, third, fourth, here];
    assert_eq!(desk.waiting(&key).await, expected);
    // It keeps its place after any late or repeated message.
    let again = waited_for(&key, &[(second, 1), (third, 1), (fourth, 1), (first, 1)]);
    desk.lists(vec![again], &[]).await;
    for nonce in [fourth, third, first] {
        let reply = desk.one(&key, came_along(nonce, 2, Waited::First)).await;
        assert_eq!(word(&reply), "held");
    }
    assert_eq!(desk.waiting(&key).await, expected);
    desk.release(&key, holder).await;
    assert_eq!(desk.holder(&key).await, Some(first));
}

/// A waiter that claims this for an open slot, or for another move, gets a newcomer's place.
pub async fn a_place_comes_along_by_its_own_move_alone(fixture: &dyn Fixture) {
    let (mut desk, key, _) = held_desk(fixture).await;
    let waiting = [(); 6].map(|()| nonce());
    let [here, earlier, later, anew, late, last] = waiting;
    assert_eq!(desk.queues(&key, here).await, 0);
    for (nonce, epoch) in [(earlier, EARLIER), (later, LATER)] {
        let op = proven(queue(nonce, 1), epoch, Waited::First);
        assert_eq!(word(&desk.one(&key, op).await), "held");
    }
    let op = came_along(anew, 1, Waited::Nobody);
    assert_eq!(word(&desk.one(&key, op).await), "held");
    desk.becomes(&key, MOVE, Mode::Open).await;
    for nonce in [late, last] {
        let op = came_along(nonce, 1, Waited::Alone);
        assert_eq!(word(&desk.one(&key, op).await), "held");
    }
    assert_eq!(desk.waiting(&key).await, waiting);
}

/// A repeat after a lost reply is no second place.
pub async fn who_came_along_has_a_place_until_it_is_granted(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let came = nonce();
    let first = desk.one(&key, came_along(came, 1, Waited::First)).await;
    let Reply::Granted { token, wanted, .. } = first else {
        panic!("it was to be granted: {first:?}");
    };
    assert!(!wanted);
    let again = desk.one(&key, came_along(came, 2, Waited::First)).await;
    assert_eq!(again, first, "{token}");
    assert_eq!(desk.waiting(&key).await, []);
    let found = desk.inspect(&key).await.expect("it is held");
    assert!(found.remaining > LONG / 2, "a full lease: {found:?}");
    desk.release(&key, came).await;
    assert_eq!(desk.waiting(&key).await, []);
}

/// A place is a ticket's.
pub async fn without_a_ticket_nobody_comes_along(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let [here, tries, proves] = [(); 3].map(|()| nonce());
    desk.waits_for_proof(&key, here, 1).await;
    let op = proven(acquire(tries, LONG), MOVE, Waited::First);
    let reply = desk.one(&key, op.clone()).await;
    assert_eq!(reply, Reply::NeedProof { epoch: MOVE });
    assert_eq!(desk.waiting(&key).await, [here]);
    // What others waited for is nobody's until they are here, or are known to be gone.
    assert_eq!(word(&desk.one(&key, proving(proves, MOVE)).await), "held");
    assert_eq!(desk.holder(&key).await, Some(here));
    assert_eq!(word(&desk.one(&key, op).await), "held");
    desk.release(&key, here).await;
    let token = desk.granted(&key, nonce(), SHORT).await;
    assert!(token > Token::default());
    fixture.elapse(PAST_SHORT).await;
    desk.granted(&key, nonce(), LONG).await;
}
