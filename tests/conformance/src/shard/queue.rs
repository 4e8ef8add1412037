//! The waiters, and their order.

use std::time::Duration;

use super::{
    Fixture,
    batches::word,
    desk::{Desk, LONG, PAST_SHORT, SHORT, nonce},
    grants::hostile_pairs,
    line::{queue, queue_for},
};
use ringfence_coordinator::{
    limits::{BATCH_MAX, CLAIM_MAX, RECHECK_MAX, TICKET_KEEP, WAITERS_MAX},
    shard::{Grace, Op, Reply},
};

/// Most of what a ticket lasts: enough for one that came before, and one that comes after, to differ.
const MOST_OF_A_TICKET: Duration = TICKET_KEEP.saturating_sub(Duration::from_secs(1));
const HALF_A_SECOND: Duration = Duration::from_millis(500);
/// The rest of it, and some more.
const THE_REST: Duration = Duration::from_millis(1200);

/// Fairness: in the order they came, and nobody is left out.
pub async fn tickets_are_served_first_come_first_served(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let waiting = [(); 5].map(|()| nonce());
        let (key, (mut holder, mut token)) = desk.with_queue("key", LONG, &waiting).await;
        for next in waiting {
            assert_eq!(word(&desk.release(&key, holder).await), "released");
            let found = desk.inspect(&key).await.expect("somebody waited");
            assert_eq!(found.nonce, next);
            assert!(found.token > token, "{found:?}");
            (holder, token) = (found.nonce, found.token);
        }
        assert_eq!(word(&desk.release(&key, holder).await), "released");
        assert_eq!(desk.inspect(&key).await, None);
    }
}

/// A key with an ended lease does not go to the first newcomer.
pub async fn a_newcomer_never_goes_before_a_live_ticket(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (first, second) = (nonce(), nonce());
        let (tried, _) = desk.with_queue("tried", SHORT, &[first]).await;
        let (queued, _) = desk.with_queue("queued", SHORT, &[first]).await;
        fixture.elapse(PAST_SHORT).await;

        let reply = desk.acquire(&tried, second, LONG).await;
        assert!(
            matches!(reply, Reply::Held { position: None, .. }),
            "{reply:?}"
        );
        assert_eq!(desk.holder(&tried).await, Some(first));
        assert_eq!(desk.queues(&queued, second).await, 0);
        assert_eq!(desk.holder(&queued).await, Some(first));
    }
}

/// Asking again is no disadvantage.
pub async fn a_recheck_keeps_its_place(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let waiting @ [first, second, third] = [(); 3].map(|()| nonce());
        let (key, (holder, _)) = desk.with_queue("key", LONG, &waiting).await;
        for (nonce, position) in [(third, 2), (first, 0), (second, 1), (first, 0)] {
            assert_eq!(desk.queues(&key, nonce).await, position);
        }
        desk.release(&key, holder).await;
        assert_eq!(desk.holder(&key).await, Some(first));
        assert_eq!(desk.queues(&key, third).await, 1);
    }
}

/// The message may be lost: asking again finds the grant, its tokens and a full lease.
pub async fn a_recheck_finds_the_grant_made_to_it(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let waiter = nonce();
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[]).await;
        let ask = |sent| queue_for(waiter, sent, (3, SHORT));
        desk.one(&key, ask(1)).await;
        desk.release(&key, holder).await;
        let token = desk.inspect(&key).await.expect("it was granted").token;
        let granted = Reply::Granted {
            token,
            tokens: 3,
            contended: false,
        };
        assert_eq!(desk.one(&key, ask(2)).await, granted);
        fixture.elapse(PAST_SHORT).await;
        assert_eq!(desk.one(&key, ask(3)).await, granted, "its claim has ended");
        assert_eq!(word(&desk.release(&key, waiter).await), "released");
        assert_eq!(desk.inspect(&key).await, None, "its ticket is gone");
    }
}

/// A waiter that does not ask again is forgotten, and does not block the others.
pub async fn an_ended_ticket_is_skipped(fixture: &dyn Fixture) {
    let mut desks = Vec::new();
    for mut desk in Desk::both_ways(fixture).await {
        let waiting = [(); 3].map(|()| nonce());
        let (key, (holder, _)) = desk.with_queue("key", LONG, &waiting).await;
        desks.push((desk, key, holder, waiting));
    }
    fixture.elapse(MOST_OF_A_TICKET).await;
    for (desk, key, _, [_, second, _]) in &mut desks {
        assert_eq!(desk.queues(key, *second).await, 1);
    }
    fixture.elapse(THE_REST).await;
    for (desk, key, holder, [_, second, _]) in &mut desks {
        desk.release(key, *holder).await;
        assert_eq!(desk.holder(key).await, Some(*second));
        desk.release(key, *second).await;
        assert_eq!(desk.holder(key).await, None, "the third has ended too");
        let next = nonce();
        let token = desk.granted(key, next, LONG).await;
        assert!(
            !desk.is_contended(key, (next, token)).await,
            "nobody is left"
        );
    }
}

/// So does a renewal that finds that it has lost the key.
pub async fn a_renewal_that_comes_too_late_skips_an_ended_ticket(fixture: &dyn Fixture) {
    let lease = MOST_OF_A_TICKET + HALF_A_SECOND;
    let mut desks = Vec::new();
    for mut desk in Desk::both_ways(fixture).await {
        let waiting = [(); 2].map(|()| nonce());
        let (key, grant) = desk.with_queue("key", lease, &waiting).await;
        desks.push((desk, key, grant, waiting));
    }
    fixture.elapse(MOST_OF_A_TICKET).await;
    for (desk, key, _, [_, second]) in &mut desks {
        assert_eq!(desk.queues(key, *second).await, 1);
    }
    fixture.elapse(THE_REST).await;
    for (desk, key, grant, [_, second]) in &mut desks {
        assert_eq!(word(&desk.renew(key, *grant, LONG).await), "lost");
        assert_eq!(desk.holder(key).await, Some(*second));
    }
}

/// For any length of the queue: a waiter that asks again stays.
pub async fn a_queue_lasts_for_as_long_as_somebody_asks_again(fixture: &dyn Fixture) {
    let mut desks = Vec::new();
    for mut desk in Desk::both_ways(fixture).await {
        let waiter = nonce();
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[waiter]).await;
        desks.push((desk, key, holder, waiter));
    }
    for _ in 0..2 {
        fixture.elapse(MOST_OF_A_TICKET).await;
        for (desk, key, _, waiter) in &mut desks {
            assert_eq!(desk.queues(key, *waiter).await, 0);
        }
    }
    // Twice as long as a ticket lasts, and not yet at the end of this one.
    fixture.elapse(TICKET_KEEP - HALF_A_SECOND).await;
    for (desk, key, holder, waiter) in &mut desks {
        desk.release(key, *holder).await;
        assert_eq!(desk.holder(key).await, Some(*waiter));
    }
}

/// A queue disappears when its last ticket has ended.
pub async fn when_every_ticket_has_ended_nobody_waits(fixture: &dyn Fixture) {
    let mut desks = Vec::new();
    for mut desk in Desk::both_ways(fixture).await {
        let waiting = [nonce(), nonce()];
        let (key, grant) = desk.with_queue("key", LONG, &waiting).await;
        assert!(desk.is_contended(&key, grant).await);
        desks.push((desk, key, grant));
    }
    fixture.elapse(MOST_OF_A_TICKET + THE_REST).await;
    for (desk, key, grant) in &mut desks {
        assert!(!desk.is_contended(key, *grant).await);
        assert_eq!(desk.queues(key, nonce()).await, 0);
    }
}

/// A waiter that died costs the next ones one claim time, not a lease.
pub async fn a_dead_head_costs_its_claim(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (dead, next, newcomer) = (nonce(), nonce(), nonce());
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[]).await;
        desk.one(&key, queue_for(dead, 1, (1, SHORT))).await;
        desk.queues(&key, next).await;
        desk.release(&key, holder).await;
        assert_eq!(desk.holder(&key).await, Some(dead));
        let reply = desk.acquire(&key, newcomer, LONG).await;
        assert!(
            matches!(reply, Reply::Held { remaining, .. } if remaining <= SHORT + fixture.late()),
            "{reply:?}"
        );
        fixture.elapse(PAST_SHORT).await;
        assert_eq!(word(&desk.acquire(&key, newcomer, LONG).await), "held");
        assert_eq!(desk.holder(&key).await, Some(next));
    }
}

/// A waiter that gave up is granted nothing later.
pub async fn giving_up_leaves_no_ticket(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let waiting @ [first, second, third] = [(); 3].map(|()| nonce());
        let (key, (holder, token)) = desk.with_queue("key", LONG, &waiting).await;
        for (gone, left) in [(second, 1), (first, 0)] {
            assert_eq!(word(&desk.release(&key, gone).await), "gone");
            assert_eq!(desk.queues(&key, third).await, left);
        }
        assert!(desk.is_contended(&key, (holder, token)).await);
        assert_eq!(word(&desk.release(&key, third).await), "gone");
        assert!(!desk.is_contended(&key, (holder, token)).await);
        desk.release(&key, holder).await;
        assert_eq!(desk.inspect(&key).await, None);
    }
}

/// A release may be late, or meant for another shard.
pub async fn a_release_of_a_nonce_that_has_nothing_changes_nothing(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let waiting = [nonce(), nonce()];
        let (key, (holder, _)) = desk.with_queue("key", LONG, &waiting).await;
        assert_eq!(word(&desk.release(&key, nonce()).await), "gone");
        assert_eq!(desk.holder(&key).await, Some(holder));
        assert_eq!(desk.queues(&key, waiting[1]).await, 1);
    }
}

/// A queue has a bound; what has ended does not count.
pub async fn past_the_bound_nobody_new_queues_until_tickets_end(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, grant) = desk.with_queue("key", LONG, &[]).await;
    let waiting: Vec<_> = (0..WAITERS_MAX).map(|_| nonce()).collect();
    for some in waiting.chunks(BATCH_MAX) {
        let batch: Vec<_> = some
            .iter()
            .map(|nonce| desk.request(&key, queue(*nonce, 1)))
            .collect();
        desk.batch(&batch).await;
    }
    let newcomer = nonce();
    let reply = desk.one(&key, queue(newcomer, 1)).await;
    assert!(
        matches!(reply, Reply::TooManyWaiters { retry_after } if retry_after <= RECHECK_MAX),
        "{reply:?}"
    );
    let last = waiting[waiting.len() - 1];
    assert_eq!(desk.queues(&key, last).await, WAITERS_MAX - 1);
    assert_eq!(word(&desk.acquire(&key, newcomer, LONG).await), "held");

    fixture.elapse(MOST_OF_A_TICKET).await;
    desk.queues(&key, last).await;
    fixture.elapse(THE_REST).await;
    assert!(desk.queues(&key, newcomer).await < WAITERS_MAX);
    desk.release(&key, grant.0).await;
    assert_eq!(desk.holder(&key).await, Some(last));
}

/// A request without a ticket does not wait.
pub async fn a_try_leaves_nothing_behind(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, grant) = desk.with_queue("key", LONG, &[]).await;
        let reply = desk.acquire(&key, nonce(), LONG).await;
        assert!(
            matches!(reply, Reply::Held { position: None, .. }),
            "{reply:?}"
        );
        assert!(!desk.is_contended(&key, grant).await);
        desk.release(&key, grant.0).await;
        assert_eq!(desk.inspect(&key).await, None);
    }
}

/// A process that has used up its tokens goes behind the waiters.
pub async fn a_key_released_and_requested_in_one_batch_goes_to_the_waiter(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (waiter, again) = (nonce(), nonce());
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[waiter]).await;
        let batch = [
            desk.request(&key, Op::Release { nonce: holder }),
            desk.request(&key, queue(again, 1)),
        ];
        let replies = desk.batch(&batch).await.replies;
        assert_eq!(word(&replies[0]), "released");
        assert!(
            matches!(replies[1], Reply::Held { position: Some(0), remaining, .. } if remaining <= CLAIM_MAX + fixture.late()),
            "{replies:?}"
        );
        assert_eq!(desk.holder(&key).await, Some(waiter));

        let batch = [
            desk.request(&key, Op::Release { nonce: again }),
            desk.request(&key, Op::Release { nonce: waiter }),
            desk.request(&key, queue(nonce(), 1)),
        ];
        let replies = desk.batch(&batch).await.replies;
        let words: Vec<_> = replies.iter().map(word).collect();
        assert_eq!(words, ["gone", "released", "granted"]);
    }
}

/// What one release of a batch passes on, another may give back.
pub async fn a_key_passed_on_is_given_back_in_the_same_batch(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let waiter = nonce();
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[waiter]).await;
        let batch = [holder, waiter].map(|nonce| desk.request(&key, Op::Release { nonce }));
        let replies = desk.batch(&batch).await.replies;
        let words: Vec<_> = replies.iter().map(word).collect();
        assert_eq!(words, ["released", "released"]);
        assert_eq!(desk.holder(&key).await, None);
    }
}

/// A queue is one key's.
pub async fn queues_of_keys_with_hostile_bytes_do_not_touch_each_other(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    for [one, other] in hostile_pairs(&desk) {
        let (holder, its_holder, waiter) = (nonce(), nonce(), nonce());
        desk.granted(&one, holder, LONG).await;
        let token = desk.granted(&other, its_holder, LONG).await;
        desk.queues(&one, waiter).await;
        assert!(
            !desk.is_contended(&other, (its_holder, token)).await,
            "{one:?}"
        );
        desk.release(&other, its_holder).await;
        assert_eq!(desk.inspect(&other).await, None, "{one:?}");
        desk.release(&one, holder).await;
        assert_eq!(desk.holder(&one).await, Some(waiter), "{one:?}");
    }
}
