//! How a holder takes its lock from one shard to the next.

use std::time::Duration;

use super::{
    Fixture,
    batches::word,
    desk::{Desk, FIRST, LONG, PAST_SHORT, SHORT, locks, nonce},
    grants::assert_full,
    line::queue,
    movers::{EARLIER, IN_USE, LATER, MOVE, adopt, adopt_agreed, armed_in, moving_desk, proving},
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Nonce, Token},
    name::LockKey,
    shard::{Grace, Mode, Op, Reply, ShardError},
};

/// One of the former shard's.
fn its_token(counter: u64) -> Token {
    Token::new(Epoch(FIRST - 1), counter)
}

fn adopted(contended: bool) -> Reply {
    Reply::Adopted { contended }
}

async fn adopts(desk: &mut Desk, key: &LockKey, (nonce, token): (Nonce, Token)) -> Reply {
    desk.one(key, adopt(nonce, token, MOVE)).await
}

async fn removes(desk: &mut Desk, key: &LockKey, nonce: Nonce, epoch: Epoch) -> &'static str {
    word(&desk.one(key, Op::Remove { nonce, epoch }).await)
}

/// A resize loses no lock.
pub async fn a_lock_is_brought_along_with_its_token_and_a_full_lease(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let grant @ (holder, token) = (nonce(), its_token(9));
    assert_eq!(adopts(&mut desk, &key, grant).await, adopted(false));
    assert_full(&mut desk, &key, grant).await;
    let found = desk.inspect(&key).await.expect("it is held");
    assert_eq!(found.tokens, 1, "more may be in use at the former shard");

    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
    assert_eq!(word(&desk.renew(&key, grant, LONG).await), "renewed");
    assert_eq!(desk.granted(&key, holder, LONG).await, token);
    desk.becomes(&key, MOVE, Mode::Open).await;
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
    assert_eq!(word(&desk.renew(&key, grant, LONG).await), "renewed");
    assert_eq!(word(&desk.release(&key, holder).await), "released");
}

/// An answer may be lost, and the slot may have opened since.
pub async fn a_repeated_adoption_extends(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let grant = (nonce(), its_token(9));
    assert_eq!(adopts(&mut desk, &key, grant).await, adopted(false));
    for mode in [Mode::Import, Mode::Open] {
        desk.becomes(&key, MOVE, mode).await;
        assert_eq!(word(&desk.renew(&key, grant, SHORT).await), "renewed");
        assert_eq!(
            adopts(&mut desk, &key, grant).await,
            adopted(false),
            "{mode:?}"
        );
        assert_full(&mut desk, &key, grant).await;
    }
}

/// Two processes that claim a key had it one after the other: the tokens tell which had it last.
pub async fn an_adoption_takes_a_key_from_lower_tokens_alone(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    // Numbers of unequal length: compared as numbers, not as text.
    let [lower, middle, higher] = [9, 10, 100].map(|counter| (nonce(), its_token(counter)));
    assert_eq!(adopts(&mut desk, &key, lower).await, adopted(false));
    assert_eq!(adopts(&mut desk, &key, middle).await, adopted(false));
    assert_full(&mut desk, &key, middle).await;
    assert_eq!(adopts(&mut desk, &key, lower).await, Reply::NotAdopted);
    assert_full(&mut desk, &key, middle).await;
    assert_eq!(adopts(&mut desk, &key, higher).await, adopted(false));
    assert_full(&mut desk, &key, higher).await;

    // What this shard has granted has the highest token of all.
    desk.release(&key, higher.0).await;
    let newest = nonce();
    assert_eq!(
        word(&desk.one(&key, proving(newest, MOVE)).await),
        "granted"
    );
    assert_eq!(adopts(&mut desk, &key, lower).await, Reply::NotAdopted);
    assert_eq!(desk.holder(&key).await, Some(newest));
}

/// The token of another replica says nothing about the order of two claims at the former shard: an adoption may come
/// late, of an attempt that never held the lock.
pub async fn an_adoption_compares_the_token_of_the_former_shard(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let (own, of_another) = (its_token(9), its_token(100));
    let late = || adopt_agreed(nonce(), (own, of_another), MOVE);
    for between in [10, 99, 9].map(its_token) {
        let holder = (nonce(), between);
        assert_eq!(adopts(&mut desk, &key, holder).await, adopted(false));
        assert_eq!(desk.one(&key, late()).await, Reply::NotAdopted);
        assert_full(&mut desk, &key, holder).await;
        desk.release(&key, holder.0).await;
    }

    let below = (nonce(), its_token(8));
    assert_eq!(adopts(&mut desk, &key, below).await, adopted(false));
    let newer = nonce();
    let op = adopt_agreed(newer, (own, of_another), MOVE);
    assert_eq!(desk.one(&key, op).await, adopted(false));
    assert_full(&mut desk, &key, (newer, of_another)).await;
}

/// The other replicas may have agreed on a greater token since.
pub async fn an_adoption_raises_its_own_record_to_a_greater_token(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let (holder, own) = (nonce(), its_token(9));
    assert_eq!(adopts(&mut desk, &key, (holder, own)).await, adopted(false));
    for (agreed, recorded) in [(100, 100), (50, 100)] {
        let op = adopt_agreed(holder, (own, its_token(agreed)), MOVE);
        assert_eq!(desk.one(&key, op).await, adopted(false));
        assert_full(&mut desk, &key, (holder, its_token(recorded))).await;
    }
    // One that only the other replicas knew.
    let agreed = Token::new(Epoch(MOVE.0 + 1), 40);
    let op = adopt_agreed(holder, (own, agreed), MOVE);
    assert_eq!(desk.one(&key, op).await, adopted(false));
    assert_full(&mut desk, &key, (holder, agreed)).await;
    desk.release(&key, holder).await;
    let granted = desk.one(&key, proving(nonce(), MOVE)).await;
    let token = Token::new(agreed.epoch(), agreed.counter() + u64::from(IN_USE));
    assert!(
        matches!(granted, Reply::Granted { token: next, .. } if next == token),
        "{granted:?}"
    );
}

/// A holder that is told to move gives up its record at the former shard.
pub async fn an_adoption_outside_its_move_is_none(fixture: &dyn Fixture) {
    const A_WHILE: Duration = Duration::from_secs(5);
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, A_WHILE).await;
    let free = desk.beside(&key);
    for (epoch, mode) in [
        (Epoch(FIRST), Mode::Open),
        (EARLIER, Mode::Sealed),
        (MOVE, Mode::Sealed),
        (MOVE, Mode::Shut),
        (LATER, Mode::Import),
        (LATER, Mode::Open),
    ] {
        desk.becomes(&key, epoch, mode).await;
        for (key, nonce) in [(&key, holder), (&key, nonce()), (&free, nonce())] {
            let token = Token::new(token.epoch(), token.counter() + 9);
            let reply = adopts(&mut desk, key, (nonce, token)).await;
            assert_eq!(reply, Reply::NotAdopted, "{mode:?} at {epoch}");
        }
        assert_eq!(desk.inspect(&free).await, None, "{mode:?} at {epoch}");
        let found = desk
            .inspect(&key)
            .await
            .expect("its own lease has not ended");
        assert!(
            found.nonce == holder && found.remaining <= A_WHILE + fixture.late(),
            "{found:?}"
        );
    }
}

/// Its slot has opened, and others have been granted what was free.
pub async fn an_adoption_that_comes_after_all_was_open_finds_its_own_or_nothing(
    fixture: &dyn Fixture,
) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let free = desk.beside(&key);
    let [mine, late] = [9, 10].map(|counter| (nonce(), its_token(counter)));
    assert_eq!(adopts(&mut desk, &key, mine).await, adopted(false));
    desk.becomes(&key, MOVE, Mode::Open).await;
    assert_eq!(adopts(&mut desk, &key, mine).await, adopted(false));
    for key in [&key, &free] {
        assert_eq!(adopts(&mut desk, key, late).await, Reply::NotAdopted);
    }
    assert_eq!(desk.holder(&key).await, Some(mine.0));
    assert_eq!(desk.inspect(&free).await, None);
}

/// Two servers may be restarted at a time, one that a slot leaves and one that it comes to.
pub async fn in_grace_a_lock_is_brought_along_and_taken_away(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, LONG).await;
    for (number, mode) in [(FIRST + 1, Mode::Sealed), (FIRST + 2, Mode::Import)] {
        fixture.restart().await;
        armed_in(fixture, (number, Grace::Full(SHORT)), (&key, mode)).await;
        desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
        match mode {
            Mode::Sealed => assert_eq!(removes(&mut desk, &key, holder, MOVE).await, "released"),
            _ => {
                let reply = adopts(&mut desk, &key, (holder, token)).await;
                assert_eq!(reply, adopted(false));
            }
        }
    }
    fixture.elapse(PAST_SHORT).await;
    assert_full(&mut desk, &key, (holder, token)).await;
    assert_eq!(word(&desk.acquire(&key, nonce(), LONG).await), "held");
}

/// The holder of the key does not wait for it, and learns of the waiters.
pub async fn an_adoption_removes_its_own_ticket_and_tells_of_others(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let [holder, other] = [(); 2].map(|()| nonce());
    desk.waits_for_proof(&key, holder, 1).await;
    let grant = (holder, its_token(9));
    assert_eq!(adopts(&mut desk, &key, grant).await, adopted(false));
    assert_eq!(desk.waiting(&key).await, []);
    assert_eq!(desk.queues(&key, other).await, 0);
    assert_eq!(adopts(&mut desk, &key, grant).await, adopted(true));
    assert_eq!(desk.waiting(&key).await, [other]);
}

/// One that comes late may meet the same lock, moved back.
pub async fn a_removal_is_of_its_own_move_and_its_own_nonce(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (waiter, other) = (nonce(), nonce());
    let (key, (holder, _)) = desk.with_queue("key", LONG, &[waiter]).await;
    for (epoch, mode) in [
        (Epoch(FIRST), Mode::Open),
        (EARLIER, Mode::Sealed),
        (EARLIER, Mode::Shut),
        (MOVE, Mode::Import),
        (MOVE, Mode::Open),
        (LATER, Mode::Sealed),
    ] {
        desk.becomes(&key, epoch, mode).await;
        assert_eq!(
            removes(&mut desk, &key, holder, MOVE).await,
            "gone",
            "{mode:?} at {epoch}"
        );
        assert_eq!(desk.holder(&key).await, Some(holder), "{mode:?} at {epoch}");
    }
    assert_eq!(removes(&mut desk, &key, other, LATER).await, "gone");
    assert_eq!(removes(&mut desk, &key, waiter, LATER).await, "gone");
    assert_eq!(desk.holder(&key).await, Some(holder));
    assert_eq!(removes(&mut desk, &key, holder, LATER).await, "released");
    assert_eq!(removes(&mut desk, &key, holder, LATER).await, "gone");
    assert_eq!(desk.inspect(&key).await, None, "nothing is passed on");
    assert_eq!(desk.waiting(&key).await, [waiter]);
    assert_eq!(word(&desk.one(&key, queue(waiter, 2)).await), "absent");
}

/// One of each in a batch: what comes of one is seen by the next.
pub async fn moving_operations_on_one_key_keep_their_order(fixture: &dyn Fixture) {
    let (mut desk, key) = moving_desk(fixture, Mode::Import).await;
    let [lower, higher] = [9, 10].map(|counter| (nonce(), its_token(counter)));
    let take = |(nonce, token)| adopt(nonce, token, MOVE);
    let ops = [
        take(lower),
        take(higher),
        take(lower),
        Op::Remove {
            nonce: higher.0,
            epoch: MOVE,
        },
        Op::Release { nonce: higher.0 },
        take(lower),
        Op::Release { nonce: lower.0 },
        proving(higher.0, MOVE),
        take(lower),
    ];
    let batch = ops.map(|op| desk.request(&key, op));
    let replies = desk.batch(&batch).await.replies;
    let words: Vec<_> = replies.iter().map(word).collect();
    let expected = [
        "adopted",
        "adopted",
        "not adopted",
        "gone",
        "released",
        "adopted",
        "released",
        "granted",
        "not adopted",
    ];
    assert_eq!(words, expected);
}

/// A life without state answers with that.
pub async fn an_unarmed_shard_adopts_and_removes_nothing(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let (key, holder) = (desk.key("key"), nonce());
    let token = desk.granted(&key, holder, LONG).await;
    fixture.restart().await;
    for op in [
        adopt(nonce(), token, MOVE),
        Op::Remove {
            nonce: holder,
            epoch: MOVE,
        },
    ] {
        let request = desk.request(&key, op);
        let refused = locks(fixture).await.call(&[request]).await;
        assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
    }
    armed_in(
        fixture,
        (FIRST + 1, Grace::Full(LONG)),
        (&key, Mode::Sealed),
    )
    .await;
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    assert_eq!(desk.holder(&key).await, Some(holder));
}
