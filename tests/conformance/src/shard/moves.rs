//! What a mover does to slots, and what it cannot do.

use std::ops::Range;

use ringfence_ring::SlotCount;

use super::{
    Fixture,
    batches::word,
    desk::{
        Desk, FIRST, LONG, PAST_SHORT, QUIET, SHORT, acquire, all_slots, armed_with, incarnation,
        locks, marked_quiet, mover, nonce, quiet_mark, renew,
    },
    movers::{
        EARLIER, LATER, MOVE, all_but, armed_in, quiet_beside_sealed, seal_quietly, step, still,
    },
    slots::elsewhere,
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion, Token},
    name::{LockKey, Namespace},
    shard::{Grace, Mode, Op, Reply, ShardError, Step},
};

/// What a newcomer is answered where nobody holds `key`, and nobody came before it.
async fn newcomer(desk: &mut Desk, key: &LockKey) -> &'static str {
    let nonce = nonce();
    let reply = desk.acquire(key, nonce, LONG).await;
    desk.release(key, nonce).await;
    word(&reply)
}

const fn answer_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Shut => "moved",
        Mode::Open => "granted",
        Mode::Sealed => "absent",
        Mode::Import => "need proof",
    }
}

/// A namespace with replicas makes the ring longer than a shard was armed for.
pub async fn a_slot_of_a_new_rank_is_shut_until_a_step_opens_it(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let ranks = SlotCount::new(64).expect("a power of two");
    let namespace = Namespace::new("ledger").expect("a plain word");
    let key_of = |slots: Range<usize>| {
        let keys = (0..).map(|at: u32| LockKey::new(&namespace, at.to_string().as_bytes(), ranks));
        let mut keys = keys.map(|key| key.expect("a key of fair length"));
        keys.find(|key| slots.contains(&key.slot().index()))
            .expect("keys fall in any slot")
    };
    // Slots between the opened one and those that the shard was armed with stay as they were.
    let (between, key, behind) = (key_of(16..40), key_of(40..48), key_of(48..64));
    for key in [&between, &key, &behind] {
        let moved = Reply::Moved { epoch: Epoch(0) };
        assert_eq!(desk.acquire(key, nonce(), LONG).await, moved);
    }
    let above = Token::new(MOVE, 0);
    let open = Step {
        above,
        ..step(MOVE, Mode::Open, &[key.slot()])
    };
    assert_eq!(desk.step(&open).await.refused, []);
    let holder = nonce();
    assert!(desk.granted(&key, holder, LONG).await > above);
    for other in [&between, &behind] {
        assert_eq!(newcomer(&mut desk, other).await, "moved");
    }

    let all = all_slots().into_iter().chain([key.slot()]).collect();
    let quiet = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, all)).await;
    assert!(quiet.expect("it is armed"), "every slot of the map is open");
    let more = all_slots().into_iter().chain([key.slot(), behind.slot()]);
    let quiet = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, more.collect())).await;
    assert!(!quiet.expect("it is armed"), "one was never opened");

    desk.becomes(&key, LATER, Mode::Sealed).await;
    assert_eq!(desk.scanned(LATER).await, std::slice::from_ref(&key));
    desk.release(&key, holder).await;
    let still = still(LATER, &[&key], &[key.slot(), between.slot()]);
    let left = desk.mover.still_held(&still).await.expect("an answer");
    assert_eq!((left.keys, left.refused), (vec![], vec![between.slot()]));
}

/// Movers may be several, and begin again.
pub async fn a_step_leads_where_it_says_and_may_be_repeated(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    for (epoch, mode) in [
        (EARLIER, Mode::Sealed),
        (EARLIER, Mode::Shut),
        (MOVE, Mode::Import),
        (MOVE, Mode::Open),
        (LATER, Mode::Sealed),
    ] {
        for _ in 0..2 {
            desk.becomes(&key, epoch, mode).await;
            assert_eq!(newcomer(&mut desk, &key).await, answer_of(mode), "{mode:?}");
        }
    }
    assert_eq!(
        desk.acquire(&key, nonce(), LONG).await,
        Reply::Moving {
            epoch: LATER,
            left: Some(0)
        }
    );
    let other = elsewhere(&desk, &key);
    assert_eq!(newcomer(&mut desk, &other).await, "granted", "another slot");
}

/// A mover that was asleep does no harm.
pub async fn a_late_step_changes_nothing(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (seal, import, open, shut) = (Mode::Sealed, Mode::Import, Mode::Open, Mode::Shut);
    for (now, late) in [
        (
            (EARLIER, seal),
            vec![(Epoch(FIRST), shut), (EARLIER, import)],
        ),
        (
            (EARLIER, open),
            vec![(EARLIER, seal), (EARLIER, import), (EARLIER, shut)],
        ),
        (
            (MOVE, import),
            vec![(EARLIER, shut), (EARLIER, seal), (MOVE, seal)],
        ),
        (
            (MOVE, shut),
            vec![(MOVE, import), (MOVE, seal), (MOVE, open), (EARLIER, open)],
        ),
    ] {
        desk.becomes(&key, now.0, now.1).await;
        for (epoch, mode) in late {
            let refused = desk.step(&step(epoch, mode, &[key.slot()])).await.refused;
            assert_eq!(refused, [key.slot()], "{mode:?} at {epoch} after {now:?}");
            let answer = newcomer(&mut desk, &key).await;
            assert_eq!(answer, answer_of(now.1), "{mode:?} at {epoch}");
        }
    }
    let moved = Reply::Moved { epoch: MOVE };
    assert_eq!(desk.acquire(&key, nonce(), LONG).await, moved);
}

/// One slot's guard is not another's.
pub async fn a_step_changes_some_slots_and_names_the_others(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let other = elsewhere(&desk, &key);
    desk.becomes(&key, LATER, Mode::Sealed).await;
    let both = [key.slot(), other.slot()];
    let stepped = desk.step(&step(MOVE, Mode::Shut, &both)).await;
    assert_eq!(stepped.refused, [key.slot()]);
    assert_eq!(newcomer(&mut desk, &key).await, "absent");
    assert_eq!(newcomer(&mut desk, &other).await, "moved");
}

/// A mover with an old record does not know the owners of the slots.
pub async fn a_stale_step_is_refused_and_writes_nothing(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let stale = Step {
        incarnation: incarnation(FIRST - 1),
        copy: (99, "stale".into()),
        above: Token::new(Epoch(99), 1),
        ..step(MOVE, Mode::Sealed, &[key.slot()])
    };
    let refused = desk.mover.step(&stale).await;
    let fence = incarnation(FIRST).to_string();
    let is_stale = matches!(&refused, Err(ShardError::Stale { fence: its }) if *its == fence);
    assert!(is_stale, "{refused:?}");
    let token = desk.granted(&key, nonce(), LONG).await;
    assert_eq!(token.epoch(), Epoch(FIRST));
    assert_ne!(fixture.copy().await.as_deref(), Some("stale"));

    let newer = Step {
        incarnation: incarnation(FIRST + 1),
        ..step(MOVE, Mode::Sealed, &[key.slot()])
    };
    desk.step(&newer).await;
    let refused = armed_with(fixture, FIRST, Grace::None).await;
    assert!(
        matches!(refused, Err(ShardError::Stale { .. })),
        "a step raises the fence: {refused:?}"
    );
}

/// A shard that came back is armed by the topology, with its grace: by nobody else.
pub async fn a_step_on_an_unarmed_shard_creates_nothing_but_fence_and_copy(fixture: &dyn Fixture) {
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let key = desk.key("key");
    for mode in [Mode::Import, Mode::Open, Mode::Sealed, Mode::Shut] {
        let mut link = mover(fixture).await;
        let refused = link.step(&step(MOVE, mode, &all_slots())).await;
        assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
        let mut link = locks(fixture).await;
        let refused = link
            .call(&[desk.request(&key, acquire(nonce(), LONG))])
            .await;
        assert!(matches!(refused, Err(ShardError::Unarmed)), "{refused:?}");
    }
    let copy = format!("record {MOVE}");
    assert_eq!(fixture.copy().await, Some(copy), "what recovery asks for");
    let refused = armed_with(fixture, FIRST - 1, Grace::None).await;
    assert!(
        matches!(refused, Err(ShardError::Stale { .. })),
        "an unarmed member has a fence: {refused:?}"
    );
    desk = Desk::armed(fixture, Grace::None).await;
    assert_eq!(newcomer(&mut desk, &key).await, "granted");
}

/// Wherever the record is lost, what came of it is known.
pub async fn steps_and_quiet_marks_leave_a_copy_of_the_newest_topology(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    assert_eq!(fixture.copy().await, Some(format!("record {FIRST}")));
    desk.becomes(&key, MOVE, Mode::Sealed).await;
    assert_eq!(fixture.copy().await, Some(format!("record {MOVE}")));

    let mut late = step(EARLIER, Mode::Sealed, &[key.slot()]);
    desk.step(&late).await;
    let older = quiet_mark(FIRST, QUIET, Vec::new());
    marked_quiet(fixture, &older).await.expect("it is armed");
    assert_eq!(
        fixture.copy().await,
        Some(format!("record {MOVE}")),
        "older"
    );

    late.copy = (LATER.0, "a newer record".into());
    assert_eq!(desk.step(&late).await.refused, [key.slot()]);
    assert_eq!(fixture.copy().await.as_deref(), Some("a newer record"));

    let mut newer = quiet_mark(FIRST, QUIET, Vec::new());
    newer.copy = (LATER.0 + 1, "the newest".into());
    marked_quiet(fixture, &newer).await.expect("it is armed");
    assert_eq!(fixture.copy().await.as_deref(), Some("the newest"));
}

/// A request that trusts the quiet mark checks no slot.
pub async fn a_step_ends_the_quiet_until_the_next_mark(fixture: &dyn Fixture) {
    let [mut full, mut desk] = Desk::both_ways(fixture).await;
    let key = desk.key("key");
    let rest = all_but(&key);
    for (epoch, mode) in [
        (MOVE, Mode::Sealed),
        (MOVE, Mode::Shut),
        (LATER, Mode::Import),
    ] {
        full.becomes(&key, epoch, mode).await;
        assert!(!desk.is_quiet().await, "{mode:?}");
        assert_eq!(newcomer(&mut desk, &key).await, answer_of(mode));
        let all = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, all_slots())).await;
        assert!(!all.expect("it is armed"), "{mode:?} is not open");
        let quiet = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, rest.clone())).await;
        assert!(quiet.expect("it is armed"), "all but {mode:?} are open");
        assert!(desk.is_quiet().await);
    }
    full.becomes(&key, LATER, Mode::Open).await;
    assert!(!desk.is_quiet().await);
    let all = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, all_slots())).await;
    assert!(all.expect("it is armed"));
}

/// A quiet mark at the map by which the slots migrate says nothing of them.
pub async fn a_step_in_the_name_of_the_map_it_is_quiet_at_leaves_the_quiet(fixture: &dyn Fixture) {
    let [mut full, mut desk] = Desk::both_ways(fixture).await;
    let key = desk.key("key");
    let rest = all_but(&key);
    let other = MapVersion(QUIET.0 - 1);
    for (epoch, mode) in [
        (MOVE, Mode::Sealed),
        (MOVE, Mode::Shut),
        (LATER, Mode::Import),
    ] {
        let mark = quiet_mark(FIRST, QUIET, rest.clone());
        for (map, stays) in [(other, false), (QUIET, true)] {
            assert!(marked_quiet(fixture, &mark).await.expect("it is armed"));
            let step = Step {
                map,
                ..step(epoch, mode, &[key.slot()])
            };
            assert_eq!(full.step(&step).await.refused, []);
            assert_eq!(desk.is_quiet().await, stays, "{mode:?} at {map}");
        }
    }
    let above = Step {
        map: QUIET,
        above: Token::new(LATER, 0),
        ..step(LATER, Mode::Import, &[key.slot()])
    };
    full.step(&above).await;
    assert!(desk.is_quiet().await);
    let token = desk.granted(&elsewhere(&desk, &key), nonce(), LONG).await;
    assert!(token > above.above, "{token}");
}

/// Quiet at its map version helps a request with no other one, in the same batch too.
pub async fn keys_of_migrating_slots_are_checked_beside_others(fixture: &dyn Fixture) {
    let ([full, mut desk], key) = quiet_beside_sealed(fixture).await;
    let other = elsewhere(&desk, &key);
    for on_its_way_first in [false, true] {
        let nonce = nonce();
        let mut batch = [
            desk.request(&other, acquire(nonce, LONG)),
            full.request(&key, acquire(nonce, LONG)),
        ];
        if on_its_way_first {
            batch.reverse();
        }
        let answers = desk.batch(&batch).await;
        let mut words: Vec<_> = answers.replies.iter().map(word).collect();
        assert_eq!(answers.quiet, !on_its_way_first, "as for the first");
        words.sort_unstable();
        assert_eq!(words, ["absent", "granted"]);
        desk.release(&other, nonce).await;
    }
    let holder = nonce();
    desk.granted(&other, holder, LONG).await;
    let batch = [
        desk.request(&other, Op::Release { nonce: holder }),
        full.request(&key, acquire(nonce(), LONG)),
    ];
    let replies = desk.batch(&batch).await.replies;
    assert_eq!(
        replies.iter().map(word).collect::<Vec<_>>(),
        ["released", "absent"]
    );
}

/// Its holder learns that it has to move, and no waiter is granted anything here.
pub async fn held_keys_of_migrating_slots_are_checked_beside_others(fixture: &dyn Fixture) {
    let [mut full, mut desk] = Desk::both_ways(fixture).await;
    let waiting = nonce();
    let (key, (holder, token)) = full.with_queue("key", LONG, &[waiting]).await;
    seal_quietly(fixture, &mut full, &key).await;
    let other = elsewhere(&desk, &key);
    let its_holder = nonce();
    let its_token = desk.granted(&other, its_holder, LONG).await;

    let renewals = [
        desk.request(&other, renew(its_holder, its_token, LONG)),
        full.request(&key, renew(holder, token, LONG)),
    ];
    let renewed = |contended, moving| Reply::Renewed {
        reclaimed: false,
        contended,
        moving,
    };
    let replies = desk.batch(&renewals).await.replies;
    assert_eq!(replies, [renewed(false, None), renewed(true, Some(MOVE))]);

    let releases = [
        desk.request(&other, Op::Release { nonce: its_holder }),
        full.request(&key, Op::Release { nonce: holder }),
    ];
    let replies = desk.batch(&releases).await.replies;
    assert!(replies.iter().all(|reply| word(reply) == "released"));
    assert_eq!(
        desk.holder(&key).await,
        None,
        "a sealed slot grants nothing"
    );
}

/// A key's next shard grants it with a greater token than its former one has.
pub async fn tokens_rise_above_those_of_the_shard_a_slot_comes_from(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let (other, mut epoch) = (elsewhere(&desk, &key), MOVE);
    // Numbers of unequal length: compared as numbers, not as text.
    for above in [
        Token::new(Epoch(FIRST), 99),
        Token::new(Epoch(FIRST), 9),
        Token::new(Epoch(FIRST), 1 << 34),
        Token::new(Epoch(FIRST - 1), 1 << 34),
        Token::new(MOVE, 0),
        Token::new(LATER, 9),
        Token::new(LATER, 100),
        Token::new(MOVE, 1 << 33),
    ] {
        let before = desk.granted(&other, nonce(), LONG).await;
        let import = Step {
            above,
            ..step(epoch, Mode::Import, &[key.slot()])
        };
        let stepped = desk.step(&import).await;
        assert!(stepped.last_token >= above.max(before), "above {above}");
        let holder = desk.holder(&other).await.expect("it was granted");
        desk.release(&other, holder).await;
        let after = desk.granted(&other, nonce(), LONG).await;
        assert!(after > stepped.last_token, "above {above}");
        let holder = desk.holder(&other).await.expect("it was granted");
        desk.release(&other, holder).await;
        epoch = Epoch(epoch.0 + 1);
    }
}

/// What the next shard's tokens have to be above.
pub async fn a_seal_tells_the_last_token_when_it_is_repeated_too(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let last = desk.granted(&key, nonce(), LONG).await;
    for _ in 0..2 {
        let stepped = desk.becomes(&key, MOVE, Mode::Sealed).await;
        assert!(stepped.last_token >= last);
    }
    let other = elsewhere(&desk, &key);
    let later = desk.granted(&other, nonce(), LONG).await;
    let stepped = desk.becomes(&key, MOVE, Mode::Sealed).await;
    assert!(stepped.last_token >= later);
}

/// After any step at a shard in grace, its own holders may still come back.
pub async fn no_step_ends_a_grace(fixture: &dyn Fixture) {
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let key = desk.key("key");
    armed_in(fixture, (FIRST, Grace::Full(SHORT)), (&key, Mode::Shut)).await;
    for (epoch, mode) in [
        (LATER, Mode::Import),
        (LATER, Mode::Open),
        (Epoch(LATER.0 + 1), Mode::Sealed),
        (Epoch(LATER.0 + 2), Mode::Open),
    ] {
        let stepped = desk.becomes(&key, epoch, mode).await;
        let left = stepped.grace_left;
        assert!(
            !left.is_zero() && left <= SHORT + fixture.late(),
            "{stepped:?}"
        );
        let expected = if mode == Mode::Sealed {
            "moving"
        } else {
            "grace"
        };
        assert_eq!(newcomer(&mut desk, &key).await, expected, "{mode:?}");
    }
    fixture.elapse(PAST_SHORT).await;
    assert_eq!(newcomer(&mut desk, &key).await, "granted");
}
