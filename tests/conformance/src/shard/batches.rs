//! Many operations in one call, and the numbers they use up.

use super::{
    Fixture,
    desk::{Desk, FIRST, LONG, acquire, control, incarnation, nonce, renew},
};
use ringfence_coordinator::{
    ids::{Epoch, Token},
    limits::{BATCH_MAX, COUNTER_MAX},
    shard::{Grace, Op, Reply},
};

/// A batch does what its operations would have done one after the other.
pub async fn operations_on_one_key_keep_their_order(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (key, [first, second, third, fourth]) = (desk.key("key"), [(); 4].map(|()| nonce()));
        let release = |nonce| Op::Release { nonce };
        let any = Token::new(Epoch(FIRST), 1);
        let ops = [
            acquire(first, LONG),
            release(first),
            acquire(second, LONG),
            renew(first, any, LONG),
            renew(second, any, LONG),
            release(second),
            release(second),
            renew(second, any, LONG),
            acquire(third, LONG),
            acquire(fourth, LONG),
        ];
        let batch = ops.map(|op| desk.request(&key, op));
        let replies = desk.batch(&batch).await.replies;

        let words: Vec<_> = replies.iter().map(word).collect();
        let expected = [
            "granted", "released", "granted", "lost", "renewed", "released", "gone", "lost",
            "granted", "held",
        ];
        assert_eq!(words, expected, "{replies:?}");
        assert_eq!(desk.holder(&key).await, Some(third));
    }
}

/// One operation's refusal is not another's.
pub async fn each_operation_of_a_batch_has_its_own_answer(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let [taken, free, gone, mine] =
            ["taken", "free", "gone", "mine"].map(|name| desk.key(name));
        let holder = nonce();
        desk.granted(&taken, nonce(), LONG).await;
        let token = desk.granted(&mine, holder, LONG).await;

        let batch = [
            desk.request(&taken, acquire(nonce(), LONG)),
            desk.request(&mine, renew(holder, token, LONG)),
            desk.request(&free, acquire(nonce(), LONG)),
            desk.request(&gone, renew(holder, token, LONG)),
            desk.request(&gone, Op::Release { nonce: holder }),
            desk.request(&mine, acquire(holder, LONG)),
            desk.request(&mine, Op::Release { nonce: holder }),
        ];
        let replies = desk.batch(&batch).await.replies;
        let words: Vec<_> = replies.iter().map(word).collect();
        let expected = [
            "held", "renewed", "granted", "lost", "gone", "granted", "released",
        ];
        assert_eq!(words, expected, "{replies:?}");
        assert_eq!(
            replies[5],
            Reply::Granted {
                token,
                tokens: 1,
                contended: false
            }
        );
    }
}

/// The largest batch is one like any other.
pub async fn a_full_batch_is_granted_in_order(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let take = |at: usize| desk.request(&desk.key(at.to_string()), acquire(nonce(), LONG));
        let batch: Vec<_> = (0..BATCH_MAX).map(take).collect();
        let replies = desk.batch(&batch).await.replies;

        let tokens: Vec<_> = replies.iter().filter_map(token).collect();
        assert_eq!(tokens.len(), BATCH_MAX, "{replies:?}");
        assert!(
            tokens.is_sorted_by(|earlier, later| earlier < later),
            "{tokens:?}"
        );
    }
}

/// The counter tells when a new token epoch is due; refusals count as grants do.
pub async fn every_acquire_uses_up_one_number(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (taken, holder) = (desk.key("taken"), nonce());
        let first = desk.granted(&taken, holder, LONG).await;
        let batch = [
            desk.request(&taken, acquire(nonce(), LONG)),
            desk.request(&desk.key("a"), acquire(nonce(), LONG)),
            desk.request(&taken, acquire(holder, LONG)),
            desk.request(&desk.key("b"), acquire(nonce(), LONG)),
        ];
        let answers = desk.batch(&batch).await;

        let tokens: Vec<_> = answers.replies.iter().filter_map(token).collect();
        let after = |count| Token::new(first.epoch(), first.counter() + count);
        assert_eq!(tokens, [after(2), first, after(4)]);
        assert_eq!(answers.counter, first.counter() + 4);

        let request = desk.request(&taken, Op::Release { nonce: holder });
        assert_eq!(
            desk.batch(&[request]).await.counter,
            0,
            "it could not grant"
        );
    }
}

/// The counter never overflows into the epoch; held locks stay held, and a new epoch helps.
pub async fn at_the_end_of_the_counter_nothing_new_is_granted(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let (last, next, holder) = (desk.key("last"), desk.key("next"), nonce());
        fixture.set_counter(COUNTER_MAX - 1).await;
        let token = desk.granted(&last, holder, LONG).await;
        assert_eq!(token.counter(), COUNTER_MAX);

        assert_eq!(desk.acquire(&next, nonce(), LONG).await, Reply::NoTokens);
        assert_eq!(desk.inspect(&next).await, None);
        assert_eq!(word(&desk.acquire(&last, nonce(), LONG).await), "held");
        assert_eq!(desk.granted(&last, holder, LONG).await, token);
        assert_eq!(
            word(&desk.renew(&last, (holder, token), LONG).await),
            "renewed"
        );
        assert_eq!(word(&desk.release(&last, holder).await), "released");
        assert_eq!(desk.acquire(&last, holder, LONG).await, Reply::NoTokens);

        let epoch = Epoch(token.epoch().0 + 1);
        let mut control = control(fixture).await;
        control
            .raise(incarnation(FIRST), epoch)
            .await
            .expect("it is armed");
        assert_eq!(
            desk.granted(&next, nonce(), LONG).await,
            Token::new(epoch, 1)
        );
    }
}

/// A batch gets all of its numbers or none.
pub async fn a_batch_that_does_not_fit_below_the_end_of_the_counter_uses_no_number(
    fixture: &dyn Fixture,
) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    fixture.set_counter(COUNTER_MAX - 1).await;
    let take = |name: &str| desk.request(&desk.key(name), acquire(nonce(), LONG));
    let batch = [take("one"), take("two")];

    let answers = desk.batch(&batch).await;
    assert_eq!(answers.replies, [Reply::NoTokens, Reply::NoTokens]);
    assert_eq!(answers.counter, COUNTER_MAX - 1);
    assert_eq!(
        desk.granted(&desk.key("one"), nonce(), LONG)
            .await
            .counter(),
        COUNTER_MAX
    );
}

fn token(reply: &Reply) -> Option<Token> {
    match reply {
        Reply::Granted { token, .. } => Some(*token),
        _ => None,
    }
}

/// A reply without its numbers.
pub(super) fn word(reply: &Reply) -> &'static str {
    match reply {
        Reply::Granted { .. } => "granted",
        Reply::Held { .. } => "held",
        Reply::TooManyWaiters { .. } => "too many",
        Reply::Renewed {
            reclaimed: false, ..
        } => "renewed",
        Reply::Renewed {
            reclaimed: true, ..
        } => "reclaimed",
        Reply::Lost => "lost",
        Reply::Released { held: true } => "released",
        Reply::Released { held: false } => "gone",
        Reply::Outdated => "outdated",
        Reply::Moved { .. } => "moved",
        Reply::Moving { left: Some(0), .. } => "absent",
        Reply::Moving { .. } => "moving",
        Reply::NeedProof { .. } => "need proof",
        Reply::Adopted { .. } => "adopted",
        Reply::NotAdopted => "not adopted",
        Reply::Grace { .. } => "grace",
        Reply::NoTokens => "no tokens",
        Reply::OtherKind { .. } => "other kind",
        Reply::Foreign => "foreign",
        Reply::OutOfMemory => "out of memory",
    }
}
