//! Semaphores and read-write locks: room, order, ends.

use std::time::Duration;

use super::{
    Fixture,
    batches::word,
    desk::{Desk, FIRST, LONG, PAST_SHORT, SHORT, acquire, armed_with, nonce, nonce_of, renew},
    line::{Ear, WAITER, queue},
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Nonce, Token},
    limits::{COUNTER_MAX, PASS_MAX},
    name::LockKey,
    shard::{Grace, List, LockKind, LockMode, Op, Reply},
};

/// So many permits of a semaphore that has so many.
pub(super) fn permits(count: u32, capacity: u32) -> LockMode {
    LockMode::Permits { count, capacity }
}

/// `op` for another share of the key.
pub(super) fn of_mode(mut op: Op, its: LockMode) -> Op {
    if let Op::Acquire { mode, .. } | Op::Renew { mode, .. } | Op::Adopt { mode, .. } = &mut op {
        *mode = its;
    }
    op
}

/// An acquire, of the side that its users prefer.
fn preferred(mut op: Op) -> Op {
    if let Op::Acquire { preferred, .. } = &mut op {
        *preferred = true;
    }
    op
}

impl Desk {
    /// Asks for a share, without a ticket.
    pub(super) async fn share(&mut self, key: &LockKey, nonce: Nonce, mode: LockMode) -> Reply {
        self.one(key, of_mode(acquire(nonce, LONG), mode)).await
    }

    /// Asks for a share with a ticket.
    pub(super) async fn queues_for(
        &mut self,
        key: &LockKey,
        nonce: Nonce,
        mode: LockMode,
    ) -> Reply {
        self.one(key, of_mode(queue(nonce, 1), mode)).await
    }

    /// Takes a share that is free, for `lease`.
    pub(super) async fn shares_for(
        &mut self,
        key: &LockKey,
        mode: LockMode,
        lease: Duration,
    ) -> (Nonce, Token) {
        let nonce = nonce();
        match self.one(key, of_mode(acquire(nonce, lease), mode)).await {
            Reply::Granted { token, .. } => (nonce, token),
            other => panic!("{mode:?} of {key} was to be granted: {other:?}"),
        }
    }

    /// Takes a share that is free.
    pub(super) async fn shares(&mut self, key: &LockKey, mode: LockMode) -> (Nonce, Token) {
        self.shares_for(key, mode, LONG).await
    }

    /// Asks in vain for a share, without a ticket.
    pub(super) async fn has_no_room(&mut self, key: &LockKey, mode: LockMode) {
        let reply = self.share(key, nonce(), mode).await;
        assert_eq!(word(&reply), "held", "{mode:?} of {key}: {reply:?}");
    }

    /// Renews a share.
    pub(super) async fn renews(
        &mut self,
        key: &LockKey,
        (nonce, token): (Nonce, Token),
        mode: LockMode,
    ) -> &'static str {
        let op = of_mode(renew(nonce, token, LONG), mode);
        word(&self.one(key, op).await)
    }

    /// The holders of `key`, by their tokens.
    pub(super) async fn holders(&mut self, key: &LockKey) -> Vec<Nonce> {
        let found = self.mover.inspect(key).await.expect("an answer");
        let holders = found.holder.iter().chain(&found.others);
        holders.map(|holder| holder.nonce).collect()
    }
}

/// The capacity is the asker's, and its permits count.
pub async fn permits_are_granted_up_to_the_capacity(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let key = desk.key("key");
        let (two, _) = desk.shares(&key, permits(2, 3)).await;
        desk.has_no_room(&key, permits(2, 3)).await;
        let (one, _) = desk.shares(&key, permits(1, 3)).await;
        desk.has_no_room(&key, permits(1, 3)).await;
        desk.release(&key, two).await;
        desk.shares(&key, permits(2, 3)).await;
        desk.release(&key, one).await;
        desk.shares(&key, permits(1, 3)).await;
        desk.has_no_room(&key, permits(1, 3)).await;
    }
}

/// No capacity is stored.
pub async fn each_request_is_granted_by_its_own_capacity(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    desk.shares(&key, permits(2, 2)).await;
    desk.shares(&key, permits(1, 3)).await;
    desk.has_no_room(&key, permits(1, 2)).await;
    desk.shares(&key, permits(1, 4)).await;
}

/// Many readers, or one writer.
pub async fn readers_share_and_a_writer_is_alone(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let key = desk.key("key");
        let (one, _) = desk.shares(&key, LockMode::Read).await;
        let (other, _) = desk.shares(&key, LockMode::Read).await;
        desk.has_no_room(&key, LockMode::Write).await;
        for reader in [one, other] {
            desk.release(&key, reader).await;
        }
        let (writer, _) = desk.shares(&key, LockMode::Write).await;
        for mode in [LockMode::Read, LockMode::Write] {
            desk.has_no_room(&key, mode).await;
        }
        desk.release(&key, writer).await;
        desk.shares(&key, LockMode::Read).await;
    }
}

/// A resource that has seen a writer refuses the readers, and writers, of before.
pub async fn tokens_rise_from_share_to_share(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let mut last = Token::default();
    for mode in [LockMode::Read, LockMode::Read, LockMode::Write] {
        if mode == LockMode::Write {
            for reader in desk.holders(&key).await {
                desk.release(&key, reader).await;
            }
        }
        let (_, token) = desk.shares(&key, mode).await;
        assert!(token > last, "{token} after {last}");
        last = token;
    }
}

/// Also from a share that passes to a waiter to one that the same request takes beside it.
pub async fn tokens_rise_from_a_passed_share_to_the_next(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let key = desk.key("key");
        desk.shares_for(&key, permits(1, 1), SHORT).await;
        let waiter = nonce();
        let reply = desk.queues_for(&key, waiter, permits(2, 2)).await;
        assert_eq!(word(&reply), "held", "{reply:?}");
        fixture.elapse(PAST_SHORT).await;
        let (next, token) = desk.shares(&key, permits(1, 3)).await;
        assert_eq!(desk.holders(&key).await, [waiter, next], "by their tokens");
        let (_, after) = desk.shares(&key, permits(1, 4)).await;
        assert!(after > token, "{after} after {token}");
    }
}

/// The reply to the first request may have been lost.
pub async fn a_repeated_share_takes_no_more_room(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let key = desk.key("key");
        let (first, token) = desk.shares_for(&key, permits(1, 2), SHORT).await;
        let again = desk.share(&key, first, permits(1, 2)).await;
        assert!(matches!(again, Reply::Granted { token: its, .. } if its == token));
        let (second, _) = desk.shares(&key, permits(1, 2)).await;
        desk.has_no_room(&key, permits(1, 2)).await;
        fixture.elapse(PAST_SHORT).await;
        assert_eq!(
            desk.holders(&key).await,
            [first, second],
            "for a full lease"
        );
    }
}

/// Each has its own lease.
pub async fn one_of_many_shares_ends_alone(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let key = desk.key("key");
        let ended = desk.shares_for(&key, permits(1, 3), SHORT).await;
        let renewed = desk.shares_for(&key, permits(1, 3), SHORT).await;
        let (long, _) = desk.shares(&key, permits(1, 3)).await;
        assert_eq!(desk.renews(&key, renewed, permits(1, 3)).await, "renewed");
        fixture.elapse(PAST_SHORT).await;
        assert_eq!(desk.renews(&key, ended, permits(1, 3)).await, "lost");
        assert_eq!(word(&desk.release(&key, ended.0).await), "gone");
        assert_eq!(desk.holders(&key).await, [renewed.0, long]);
        desk.shares(&key, permits(1, 3)).await;
        desk.has_no_room(&key, permits(1, 3)).await;
    }
}

/// Its record lasts as long as the last of them.
pub async fn the_end_of_every_share_frees_the_key(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    for _ in 0..2 {
        desk.shares_for(&key, LockMode::Read, SHORT).await;
    }
    fixture.elapse(PAST_SHORT).await;
    assert_eq!(desk.holders(&key).await, []);
    desk.granted(&key, nonce(), LONG).await;
}

/// And no others.
pub async fn a_release_takes_its_own_shares(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (one, _) = desk.shares(&key, permits(1, 3)).await;
    let (two, _) = desk.shares(&key, permits(2, 3)).await;
    assert_eq!(word(&desk.release(&key, nonce()).await), "gone");
    assert_eq!(word(&desk.release(&key, one).await), "released");
    assert_eq!(word(&desk.release(&key, one).await), "gone");
    assert_eq!(desk.holders(&key).await, [two]);
    desk.shares(&key, permits(1, 3)).await;
    desk.has_no_room(&key, permits(1, 3)).await;
}

/// First come, first served, although a later request would fit.
pub async fn no_newcomer_goes_before_a_ticket_that_does_not_fit(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, writer) = (desk.key("key"), nonce());
        let (reader, _) = desk.shares(&key, LockMode::Read).await;
        assert_eq!(
            word(&desk.queues_for(&key, writer, LockMode::Write).await),
            "held"
        );
        desk.has_no_room(&key, LockMode::Read).await;
        let behind = nonce();
        let reply = desk.queues_for(&key, behind, LockMode::Read).await;
        assert!(
            matches!(
                reply,
                Reply::Held {
                    position: Some(1),
                    ..
                }
            ),
            "{reply:?}"
        );
        desk.release(&key, reader).await;
        assert_eq!(desk.holders(&key).await, [writer]);
        desk.release(&key, writer).await;
        assert_eq!(desk.holders(&key).await, [behind]);
    }
}

/// Of the side that its users prefer, as long as it fits.
pub async fn a_preferred_newcomer_goes_before_tickets_that_are_not(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, [writer, reader, last]) = (desk.key("key"), [nonce(), nonce(), nonce()]);
        let (first, _) = desk.shares(&key, LockMode::Read).await;
        desk.queues_for(&key, writer, LockMode::Write).await;
        desk.has_no_room(&key, LockMode::Read).await;
        let asked = preferred(of_mode(acquire(reader, LONG), LockMode::Read));
        assert_eq!(word(&desk.one(&key, asked).await), "granted");
        assert_eq!(desk.holders(&key).await, [first, reader]);
        for (waits, mode) in [
            (queue(last, 1), LockMode::Write),
            (acquire(nonce(), LONG), LockMode::Read),
        ] {
            let asked = preferred(of_mode(waits, mode));
            assert_eq!(word(&desk.one(&key, asked).await), "held");
        }
    }
}

/// Before all tickets that are not preferred, and behind those that are; a re-check keeps the place.
pub async fn preferred_tickets_go_before_others_in_their_order(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, [fair, first, late, second]) = (desk.key("key"), [(); 4].map(|()| nonce()));
        let (holder, _) = desk.shares(&key, LockMode::Write).await;
        let reader = |waiter| of_mode(queue(waiter, 1), LockMode::Read);
        let writer = |waiter| preferred(of_mode(queue(waiter, 1), LockMode::Write));
        for (asked, its) in [
            (reader(fair), 0),
            (writer(first), 0),
            (reader(late), 2),
            (writer(second), 1),
            (writer(first), 0),
            (reader(fair), 2),
        ] {
            let reply = desk.one(&key, asked).await;
            let is_there = matches!(reply, Reply::Held { position: Some(at), .. } if at == its);
            assert!(is_there, "at {its}: {reply:?}");
        }
        for (leaves, next) in [(holder, [first]), (first, [second])] {
            desk.release(&key, leaves).await;
            assert_eq!(desk.holders(&key).await, next);
        }
        desk.release(&key, second).await;
        assert_eq!(desk.holders(&key).await, [fair, late]);
    }
}

/// All that fit, and each is notified.
pub async fn free_shares_go_to_the_first_tickets_while_they_fit(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let mut ear = Ear::of(fixture, WAITER).await;
        let key = desk.key("key");
        let (holder, _) = desk.shares(&key, permits(3, 3)).await;
        let waiting = [1, 2, 1].map(|count| (nonce_of(WAITER), count));
        for (nonce, count) in waiting {
            desk.queues_for(&key, nonce, permits(count, 3)).await;
        }
        desk.release(&key, holder).await;
        let [first, second, third] = waiting.map(|(nonce, _)| nonce);
        assert_eq!(desk.holders(&key).await, [first, second]);
        let turns = ear.turns(&mut desk).await;
        let told: Vec<_> = turns.iter().map(|turn| turn.nonce).collect();
        assert_eq!(told, [first, second]);
        assert!(turns[0].token < turns[1].token);
        desk.release(&key, second).await;
        assert_eq!(desk.holders(&key).await, [first, third]);
    }
}

/// A shard serves other requests in between. A re-check passes on the rest.
pub async fn a_release_grants_to_a_bounded_number_of_tickets(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (writer, _) = desk.shares(&key, LockMode::Write).await;
    let readers: Vec<_> = (0..PASS_MAX + 2).map(|_| nonce()).collect();
    for reader in &readers {
        desk.queues_for(&key, *reader, LockMode::Read).await;
    }
    desk.release(&key, writer).await;
    assert_eq!(desk.holders(&key).await.len(), PASS_MAX);
    let last = readers[PASS_MAX + 1];
    assert_eq!(
        word(&desk.queues_for(&key, last, LockMode::Read).await),
        "granted"
    );
    assert_eq!(desk.holders(&key).await, readers);
}

/// Its place is free, and those behind it may fit.
pub async fn a_ticket_given_up_lets_the_next_ones_in(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, writer, behind) = (desk.key("key"), nonce(), nonce());
        let (reader, _) = desk.shares(&key, LockMode::Read).await;
        desk.queues_for(&key, writer, LockMode::Write).await;
        desk.queues_for(&key, behind, LockMode::Read).await;
        assert_eq!(word(&desk.release(&key, writer).await), "gone");
        assert_eq!(desk.holders(&key).await, [reader, behind]);
    }
}

/// Room that an ended share leaves is found by the next request.
pub async fn an_ended_share_is_passed_on_by_a_recheck(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, first, second) = (desk.key("key"), nonce(), nonce());
    desk.shares_for(&key, permits(2, 2), SHORT).await;
    for waiter in [first, second] {
        desk.queues_for(&key, waiter, permits(1, 2)).await;
    }
    fixture.elapse(PAST_SHORT).await;
    let reply = desk.queues_for(&key, second, permits(1, 2)).await;
    assert_eq!(word(&reply), "granted");
    assert_eq!(desk.holders(&key).await, [first, second]);
}

/// In one step, and for good.
pub async fn a_writer_that_downgrades_lets_readers_in(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let mut ear = Ear::of(fixture, WAITER).await;
        let (key, waiting) = (desk.key("key"), [(); 2].map(|()| nonce_of(WAITER)));
        let writer = desk.shares(&key, LockMode::Write).await;
        for reader in waiting {
            desk.queues_for(&key, reader, LockMode::Read).await;
        }
        assert_eq!(desk.renews(&key, writer, LockMode::Read).await, "renewed");
        assert_eq!(desk.holders(&key).await, [writer.0, waiting[0], waiting[1]]);
        let turns = ear.turns(&mut desk).await.into_iter();
        let told: Vec<_> = turns.map(|turn| turn.nonce).collect();
        assert_eq!(told, waiting);
        // A renewal that was sent before may arrive later.
        assert_eq!(desk.renews(&key, writer, LockMode::Write).await, "renewed");
        desk.shares(&key, LockMode::Read).await;
        desk.has_no_room(&key, LockMode::Write).await;
    }
}

/// While it is held. The error names the kind of its holders.
pub async fn a_key_is_of_one_kind_at_a_time(fixture: &dyn Fixture) {
    let kinds = [LockMode::Exclusive, permits(1, 2), LockMode::Read];
    for mut desk in Desk::both_ways(fixture).await {
        for held in kinds {
            let key = desk.key(format!("{held:?}"));
            let (holder, _) = desk.shares(&key, held).await;
            for asked in kinds.into_iter().filter(|asked| *asked != held) {
                let reply = desk.queues_for(&key, nonce(), asked).await;
                assert_eq!(reply, Reply::OtherKind { held: held.kind() }, "{asked:?}");
            }
            assert_eq!(desk.waiting(&key).await, [], "{held:?}");
            desk.release(&key, holder).await;
            for next in kinds {
                let (holder, _) = desk.shares(&key, next).await;
                desk.release(&key, holder).await;
            }
        }
    }
}

/// After its end, too.
pub async fn a_key_changes_its_kind_when_its_last_holder_has_ended(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let kinds = [
        LockMode::Exclusive,
        permits(1, 2),
        LockMode::Read,
        LockMode::Exclusive,
    ];
    for pair in kinds.windows(2) {
        let key = desk.key(format!("{pair:?}"));
        let ended = desk.shares_for(&key, pair[0], SHORT).await;
        fixture.elapse(PAST_SHORT).await;
        let (holder, _) = desk.shares(&key, pair[1]).await;
        assert_eq!(desk.renews(&key, ended, pair[0]).await, "lost");
        assert_eq!(word(&desk.release(&key, ended.0).await), "gone");
        assert_eq!(desk.holders(&key).await, [holder]);
    }
}

/// A request without a ticket leaves nothing behind.
pub async fn a_try_for_a_share_leaves_nothing_behind(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (writer, _) = desk.shares(&key, LockMode::Write).await;
    desk.has_no_room(&key, LockMode::Write).await;
    assert_eq!(desk.waiting(&key).await, []);
    desk.release(&key, writer).await;
    assert_eq!(desk.holders(&key).await, []);
}

/// For people, and for releases by force, which release them all.
pub async fn an_inspection_tells_every_holder_of_a_share(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let mut held = Vec::new();
    for count in [2, 1, 3] {
        held.push((desk.shares(&key, permits(count, 9)).await, count));
    }
    let found = desk.mover.inspect(&key).await.expect("an answer");
    let holders: Vec<_> = found.holder.iter().chain(&found.others).collect();
    for (holder, ((nonce, token), count)) in holders.iter().zip(&held) {
        let seen = (holder.nonce, holder.token, holder.kind, holder.shares);
        assert_eq!(seen, (*nonce, *token, LockKind::Semaphore, *count));
        assert!(holder.remaining <= LONG + fixture.late() && holder.remaining > LONG / 2);
    }
    let page = desk.mover.list(&List::default()).await.expect("an answer");
    let listed = page.locks.iter().find(|lock| lock.key == key);
    let listed = listed.expect("it is held");
    assert_eq!((listed.holder.nonce, listed.others), (held[0].0.0, 2));
    for ((nonce, _), _) in held {
        assert_eq!(word(&desk.release(&key, nonce).await), "released");
    }
    assert_eq!(desk.holders(&key).await, []);
}

/// The waiter ahead is not overtaken either.
pub async fn a_spent_counter_grants_no_shares(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, waiter) = (desk.key("key"), nonce());
    let (holder, _) = desk.shares(&key, permits(2, 2)).await;
    desk.queues_for(&key, waiter, permits(1, 2)).await;
    fixture.set_counter(COUNTER_MAX).await;
    assert_eq!(word(&desk.release(&key, holder).await), "released");
    for nonce in [nonce(), waiter] {
        let reply = desk.queues_for(&key, nonce, permits(1, 2)).await;
        assert_eq!(reply, Reply::NoTokens);
    }
    assert_eq!(desk.holders(&key).await, []);
}

/// All true holders fit, and a ghost must not keep one of them out.
pub async fn in_grace_a_share_is_put_back_without_room(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, waiter) = (desk.key("key"), nonce());
    let kept = desk.shares(&key, permits(1, 2)).await;
    let (ghost, _) = desk.shares(&key, permits(1, 2)).await;
    fixture.restart().await;
    let mut desk = rearmed(fixture, SHORT).await;

    let [lost, other] = [8, 9].map(|number| (nonce(), Token::new(Epoch(FIRST), number)));
    assert_eq!(
        word(&desk.queues_for(&key, waiter, permits(1, 2)).await),
        "grace"
    );
    assert_eq!(desk.renews(&key, kept, permits(1, 2)).await, "renewed");
    for claim in [lost, other] {
        assert_eq!(desk.renews(&key, claim, permits(1, 2)).await, "reclaimed");
    }
    assert_eq!(desk.holders(&key).await.len(), 4);

    fixture.elapse(PAST_SHORT).await;
    let held = [kept.0, lost.0, other.0];
    assert_eq!(desk.holders(&key).await, held, "{ghost} was not put back");
    for released in [lost.0, other.0] {
        let reply = desk.queues_for(&key, waiter, permits(1, 2)).await;
        assert_eq!(word(&reply), "held");
        desk.release(&key, released).await;
    }
    assert_eq!(desk.holders(&key).await, [kept.0, waiter]);
    let found = desk.mover.inspect(&key).await.expect("an answer");
    assert!(found.others[0].token > other.1, "{found:?}");
}

/// Others may have its room.
pub async fn after_grace_a_share_of_an_older_arming_is_lost(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let old = desk.shares(&key, permits(2, 2)).await;
    fixture.restart().await;
    let mut desk = rearmed(fixture, SHORT).await;
    fixture.elapse(PAST_SHORT).await;

    assert_eq!(desk.holders(&key).await, []);
    let (new, _) = desk.shares(&key, permits(2, 2)).await;
    assert_eq!(desk.renews(&key, old, permits(2, 2)).await, "lost");
    assert_eq!(desk.holders(&key).await, [new]);
    desk.has_no_room(&key, permits(1, 2)).await;
}

/// Which of the two is the older, nothing tells.
pub async fn in_grace_no_share_is_put_back_beside_another_kind(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (mutex, semaphore) = (desk.key("mutex"), desk.key("semaphore"));
    let (holder, _) = desk.shares(&mutex, LockMode::Exclusive).await;
    let (share, _) = desk.shares(&semaphore, permits(1, 2)).await;
    fixture.restart().await;
    let mut desk = rearmed(fixture, LONG).await;

    let claim = (nonce(), Token::new(Epoch(FIRST), 9));
    assert_eq!(desk.renews(&mutex, claim, LockMode::Read).await, "lost");
    for mode in [LockMode::Exclusive, LockMode::Read] {
        assert_eq!(desk.renews(&semaphore, claim, mode).await, "lost");
    }
    assert_eq!(desk.holders(&mutex).await, [holder]);
    assert_eq!(desk.holders(&semaphore).await, [share]);
}

/// A desk at the shard in its next life, with a grace.
async fn rearmed(fixture: &dyn Fixture, grace: Duration) -> Desk {
    let armed = armed_with(fixture, FIRST + 1, Grace::Full(grace)).await;
    assert!(armed.expect("it was not armed").armed_now);
    Desk::open(fixture, MapVersion::UNKNOWN).await
}
