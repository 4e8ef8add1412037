//! Grants that the shard makes by itself, and how they are told.

use super::{
    Fixture,
    batches::word,
    desk::{Desk, FIRST, LONG, PAST_SHORT, SHORT, acquire, armed_with, nonce, nonce_of},
    line::{Ear, HOLDER, WAITER, queue, queue_for},
};
use crate::cancel::after_every_turn;
use ringfence_coordinator::{
    clock::Instant,
    ids::{ClientId, MapVersion, Token},
    limits::CLAIM_MAX,
    shard::{Grace, Notification, Op, QueuedGrant, Reply, ShardError},
};

/// One message a release, however many wait, and all that its client needs to know is in it.
pub async fn a_release_grants_to_the_first_ticket_and_tells_its_client_once(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let mut ear = Ear::of(fixture, WAITER).await;
        let waiting = [(); 3].map(|()| nonce_of(WAITER));
        let (key, (mut holder, _)) = desk.with_queue("key", LONG, &[]).await;
        for (sent, (nonce, tokens)) in waiting.into_iter().zip([7, 1, 2]).enumerate() {
            let op = queue_for(nonce, sent as u64, (tokens, SHORT));
            assert_eq!(word(&desk.one(&key, op).await), "held");
        }
        for (sent, (nonce, tokens)) in waiting.into_iter().zip([7, 1, 2]).enumerate() {
            assert_eq!(word(&desk.release(&key, holder).await), "released");
            let found = desk.inspect(&key).await.expect("somebody waited");
            assert_eq!(found.nonce, nonce);
            let turn = QueuedGrant {
                key: key.clone(),
                nonce,
                token: found.token,
                tokens,
                claim: SHORT,
                sent: Instant::from_nanos(sent as u64),
                contended: sent < 2,
            };
            assert_eq!(ear.turns(&mut desk).await, [turn]);
            holder = nonce;
        }
    }
}

/// The deadline of a turn counts from the latest request, for any order of arrival.
pub async fn a_turn_echoes_the_latest_sent(fixture: &dyn Fixture) {
    // A sender's clock has as many digits as it likes.
    for (earlier, later) in [(9, 10), (99, 100), (u64::MAX - 1, u64::MAX)] {
        let mut desk = match earlier {
            9 => Desk::armed(fixture, Grace::None).await,
            _ => Desk::open(fixture, MapVersion::UNKNOWN).await,
        };
        for order in [[earlier, later], [later, earlier]] {
            let mut ear = Ear::of(fixture, WAITER).await;
            let waiter = nonce_of(WAITER);
            let (key, (holder, _)) = desk.with_queue("key", LONG, &[]).await;
            for sent in order {
                assert_eq!(word(&desk.one(&key, queue(waiter, sent)).await), "held");
            }
            desk.release(&key, holder).await;
            let turns = ear.turns(&mut desk).await;
            assert_eq!(turns.len(), 1);
            assert_eq!(turns[0].sent.as_nanos(), later, "{order:?}");
            desk.release(&key, waiter).await;
        }
    }
}

/// A process that gets its turn must confirm that it is alive.
pub async fn a_claim_is_not_a_lease_until_it_is_extended(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        for rechecks in [false, true] {
            let waiter = nonce();
            let (key, (holder, _)) = desk.with_queue("key", LONG, &[waiter]).await;
            desk.release(&key, holder).await;
            let found = desk.inspect(&key).await.expect("somebody waited");
            assert!(found.remaining <= CLAIM_MAX + fixture.late(), "{found:?}");
            if rechecks {
                assert_eq!(word(&desk.one(&key, queue(waiter, 2)).await), "granted");
            } else {
                let renewed = desk.renew(&key, (waiter, found.token), LONG).await;
                assert_eq!(word(&renewed), "renewed");
            }
            let found = desk.inspect(&key).await.expect("it was extended");
            assert!(found.remaining > CLAIM_MAX, "{found:?}");
            desk.release(&key, waiter).await;
        }
    }
}

/// The first process that finds that a lease has ended passes the key on: its former holder, too.
pub async fn a_lost_renewal_passes_the_key_on(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let mut ear = Ear::of(fixture, WAITER).await;
        let waiter = nonce_of(WAITER);
        let (key, late) = desk.with_queue("key", SHORT, &[waiter]).await;
        fixture.elapse(PAST_SHORT).await;
        assert_eq!(desk.renew(&key, late, LONG).await, Reply::Lost);
        assert_eq!(desk.holder(&key).await, Some(waiter));
        assert_eq!(ear.turns(&mut desk).await.len(), 1);
    }
}

/// The answer says it.
pub async fn a_request_that_finds_its_own_turn_is_answered_and_not_notified(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let mut ear = Ear::of(fixture, WAITER).await;
        let (waiter, behind) = (nonce_of(WAITER), nonce());
        let (key, _) = desk.with_queue("key", SHORT, &[waiter, behind]).await;
        fixture.elapse(PAST_SHORT).await;
        let reply = desk.one(&key, queue(waiter, 2)).await;
        assert!(
            matches!(
                reply,
                Reply::Granted {
                    contended: true,
                    ..
                }
            ),
            "{reply:?}"
        );
        let found = desk.inspect(&key).await.expect("it was granted");
        assert!(found.remaining > CLAIM_MAX, "a full lease: {found:?}");
        assert_eq!(ear.heard(&mut desk).await, []);
    }
}

/// No token is handed out twice, though the holder hands some out by itself.
pub async fn blocks_of_tokens_rise_and_do_not_overlap(fixture: &dyn Fixture) {
    let after = |(token, tokens): (Token, u32)| token.get() + u64::from(tokens);
    let rise = |blocks: &[(Token, u32)]| {
        assert!(
            blocks.is_sorted_by(|earlier, later| after(*earlier) <= later.0.get()),
            "{blocks:?}"
        );
    };
    let mut all = Vec::new();
    for mut desk in Desk::both_ways(fixture).await {
        let mut blocks = Vec::new();
        let mut ear = Ear::of(fixture, WAITER).await;
        let key = desk.key("key");
        for (mine, theirs) in [(1, 5), (8, 1), (3, 3)] {
            let (holder, waiter) = (nonce(), nonce_of(WAITER));
            let batch = [
                desk.request(&key, queue_for(holder, 1, (mine, CLAIM_MAX))),
                desk.request(&key, queue_for(waiter, 1, (theirs, CLAIM_MAX))),
                desk.request(&desk.key(format!("{mine} more")), acquire(nonce(), LONG)),
            ];
            let replies = desk.batch(&batch).await.replies;
            let mut granted = replies.iter().filter_map(block);
            blocks.extend(granted.next());
            all.extend(granted);
            desk.release(&key, holder).await;
            let turns = ear.turns(&mut desk).await;
            blocks.extend(turns.iter().map(|turn| (turn.token, turn.tokens)));
            desk.release(&key, waiter).await;
        }
        rise(&blocks);
        all.extend(blocks);
    }
    assert_eq!(all.len(), 18, "{all:?}");
    all.sort_unstable();
    rise(&all);
}

fn block(reply: &Reply) -> Option<(Token, u32)> {
    match reply {
        Reply::Granted { token, tokens, .. } => Some((*token, *tokens)),
        _ => None,
    }
}

/// Tokens set aside for a batch are not older than those the batch itself made necessary.
pub async fn tokens_of_a_key_rise_when_it_is_passed_on_within_a_batch(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let mut ear = Ear::of(fixture, WAITER).await;
        let (waiter, last) = (nonce_of(WAITER), nonce());
        let (key, _) = desk.with_queue("key", SHORT, &[waiter]).await;
        fixture.elapse(PAST_SHORT).await;
        let batch = [
            desk.request(&key, acquire(nonce(), LONG)),
            desk.request(&key, Op::Release { nonce: waiter }),
            desk.request(&key, acquire(last, LONG)),
        ];
        let replies = desk.batch(&batch).await.replies;
        let words: Vec<_> = replies.iter().map(word).collect();
        assert_eq!(words, ["held", "released", "granted"]);
        let turns = ear.turns(&mut desk).await;
        let found = desk.inspect(&key).await.expect("it was granted");
        assert!(turns[0].token < found.token, "{turns:?} {found:?}");
    }
}

/// A lost answer costs no tokens.
pub async fn a_repeat_finds_the_same_block(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, holder) = (desk.key("key"), nonce());
        let first = desk.one(&key, queue_for(holder, 1, (5, CLAIM_MAX))).await;
        assert!(
            matches!(first, Reply::Granted { tokens: 5, .. }),
            "{first:?}"
        );
        for tokens in [5, 2, 9] {
            let again = queue_for(holder, 2, (tokens, CLAIM_MAX));
            assert_eq!(desk.one(&key, again).await, first);
        }
    }
}

/// Each message goes to one process.
pub async fn a_client_gets_no_notifications_of_other_clients(fixture: &dyn Fixture) {
    let stranger = ClientId(WAITER.0 | 1 << 127);
    for mut desk in Desk::both_ways(fixture).await {
        let mut ear = Ear::of(fixture, stranger).await;
        let waiter = nonce_of(WAITER);
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[waiter]).await;
        desk.queues(&key, waiter).await;
        desk.release(&key, holder).await;
        assert_eq!(ear.heard(&mut desk).await, []);
    }
}

/// A listener learns that the shard has another life.
pub async fn a_listening_connection_ends_with_the_life(fixture: &dyn Fixture) {
    let _desk = Desk::armed(fixture, Grace::None).await;
    let mut former = Ear::of(fixture, WAITER).await;
    fixture.restart().await;
    let ended = former.next().await;
    assert!(
        matches!(ended, Err(ShardError::NoReply { .. })),
        "{ended:?}"
    );
    armed_with(fixture, FIRST + 1, Grace::None)
        .await
        .expect("a new life");
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let mut ear = Ear::of(fixture, HOLDER).await;
    desk.with_queue("key", LONG, &[nonce()]).await;
    assert_eq!(ear.heard(&mut desk).await.len(), 1);
}

/// Cancel safety of the wait for a message.
pub async fn a_dropped_wait_for_a_message_loses_none(fixture: &dyn Fixture) {
    let _desk = Desk::armed(fixture, Grace::None).await;
    fixture.slow_down().await;
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let mut ear = Ear::of(fixture, HOLDER).await;
    after_every_turn("a wait for a message", async |turns| {
        let (key, (holder, _)) = desk.with_queue("key", LONG, &[]).await;
        let waiter = nonce();
        let dropped = ear.dropped_after(turns, fixture);
        let (heard, _) = tokio::join!(dropped, desk.queues(&key, waiter));
        let answered = heard.is_some();
        let notification = match heard {
            Some(notification) => notification,
            None => ear.next().await.expect("it goes on"),
        };
        let contended = Notification::Contended {
            key: key.clone(),
            nonce: holder,
        };
        assert_eq!(notification, contended);
        desk.release(&key, waiter).await;
        desk.release(&key, holder).await;
        answered
    })
    .await;
}
