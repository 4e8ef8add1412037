//! Segments and manifests: where they are asked, in which order, and what stands between them.
//!
//! What a segment answers is a matter of its rules, which backends are compared with elsewhere.

use std::time::Duration;

use ringfence_segment_lock::{
    Change, Durability, HashKey,
    segment::{Inspect, Money, Refusal, Reply as Said, Request, SegmentView, State},
};

use super::{
    Fixture,
    decommission::force,
    desk::{
        Desk, FIRST, LONG, QUIET, all_slots, arm, armed_with, control, incarnation, marked_quiet,
        nonce, quiet_mark, slot_count,
    },
    hands::{amount, create, deposit, leave_money_out, op},
    movers::{MOVE, quiet_beside_sealed},
    slots::elsewhere,
};
use ringfence_coordinator::{
    ids::{Epoch, MapVersion},
    name::LockKey,
    shard::{
        Admit, Arm, AskGroups, CounterAnswers, CounterOp, CounterReply, CounterRequest, Counters,
        Grace, Mode, ShardError, SlotState, SlotStates, When,
    },
};

fn deduct(name: &str, units: i64) -> CounterOp {
    let amount = amount(units);
    op(name, Change::Deduct { amount })
}

fn inspect() -> CounterOp {
    CounterOp::Segment(Request::Inspect(Inspect))
}

fn swap(expected: u64, manifest: &str) -> CounterOp {
    CounterOp::SwapManifest {
        expected,
        manifest: manifest.into(),
        durability: Durability::Memory,
    }
}

fn done() -> CounterReply {
    CounterReply::Segment(Ok(Said::Recorded(State::Done, Money::default())))
}

/// The answers, apart from the money after each.
async fn asked(
    desk: &mut Desk,
    batch: impl IntoIterator<Item = (&LockKey, CounterOp)>,
) -> Result<CounterAnswers, ShardError> {
    let map = desk.map;
    let requests = batch.into_iter().map(|(key, op)| CounterRequest {
        key: key.clone(),
        map,
        hash_key: HashKey(7),
        op,
    });
    let requests: Vec<_> = requests.collect();
    let mut answers = desk.counters.call(&requests).await?;
    answers.replies.iter_mut().for_each(leave_money_out);
    Ok(answers)
}

async fn one(desk: &mut Desk, key: &LockKey, op: CounterOp) -> CounterReply {
    let answers = asked(desk, [(key, op)]).await.expect("an answer");
    let [reply] = &answers.replies[..] else {
        panic!("one answer: {answers:?}")
    };
    reply.clone()
}

async fn view_of(desk: &mut Desk, key: &LockKey) -> SegmentView {
    match one(desk, key, inspect()).await {
        CounterReply::Segment(Ok(Said::View(view))) => *view,
        other => panic!("{other:?}"),
    }
}

/// Of what a shard has no slot it has no counter; of one that moves neither shard changes any.
pub async fn counters_are_asked_only_where_their_slot_is_open(fixture: &dyn Fixture) {
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let mut names = (0..).map(|at: u32| desk.key(at.to_string()));
    let mut in_slot = |index: usize| {
        let found = names.find(|key| key.slot().index() == index);
        found.expect("keys spread over slots")
    };
    let keys = [0, 1, 2, 3].map(&mut in_slot);
    let modes = [Mode::Shut, Mode::Sealed, Mode::Import, Mode::Open];
    let mut arm = arm(fixture, FIRST, Grace::None);
    arm.slots = SlotStates::new(slot_count().iter(), |slot| SlotState {
        mode: modes.get(slot.index()).copied().unwrap_or(Mode::Open),
        epoch: Epoch(3),
    });
    let mut control = control(fixture).await;
    control.arm(&arm).await.expect("it was not armed");

    let epoch = Epoch(3);
    let elsewhere = [
        CounterReply::Moved { epoch },
        CounterReply::Moving { epoch },
        CounterReply::Coming { epoch },
    ];
    for op in [
        create,
        inspect,
        || swap(0, "layout"),
        || CounterOp::ReadManifest,
    ] {
        let answers = asked(&mut desk, keys.iter().map(|key| (key, op()))).await;
        let replies = answers.expect("an answer").replies;
        assert_eq!(replies[..3], elsewhere, "{:?}", op());
        assert!(!elsewhere.contains(&replies[3]), "{replies:?}");
    }
}

/// A life that knows no slots knows no counters.
pub async fn an_unarmed_shard_answers_no_counter(fixture: &dyn Fixture) {
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let key = desk.key("key");
    let unarmed = asked(&mut desk, [(&key, create())]).await;
    assert!(matches!(unarmed, Err(ShardError::Unarmed)), "{unarmed:?}");
    armed_with(fixture, FIRST, Grace::None)
        .await
        .expect("it was not armed");
    let mut desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    let missing = CounterReply::Segment(Err(Refusal::Missing));
    assert_eq!(one(&mut desk, &key, inspect()).await, missing);
}

/// A grace is for leases.
pub async fn counters_do_not_wait_for_a_grace(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::Full(LONG)).await;
    let key = desk.key("key");
    let batch = [(&key, create()), (&key, deposit("a", 5))];
    let answers = asked(&mut desk, batch).await.expect("an answer");
    assert_eq!(answers.replies[1], done());
}

/// The short way is taken at its map version, and is said to have been.
pub async fn counters_say_whether_the_shard_is_quiet(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let ask = async |desk: &mut Desk| {
        let answers = asked(desk, [(&key, CounterOp::ReadManifest)]).await;
        answers.expect("an answer").quiet
    };
    assert!(!ask(&mut desk).await);
    let quiet = marked_quiet(fixture, &quiet_mark(FIRST, QUIET, all_slots())).await;
    assert!(quiet.expect("it is armed"));
    assert!(!ask(&mut desk).await, "of another map");
    desk.map = QUIET;
    assert!(ask(&mut desk).await);
}

/// Quiet at its map version helps a request with no other one, in the same batch too.
pub async fn counters_on_their_way_are_frozen_beside_those_that_are_not(fixture: &dyn Fixture) {
    let ([_, mut desk], key) = quiet_beside_sealed(fixture).await;
    let other = elsewhere(&desk, &key);
    let read = |key: &LockKey, map| CounterRequest {
        key: key.clone(),
        map,
        hash_key: HashKey::default(),
        op: CounterOp::ReadManifest,
    };
    let mut batch = [read(&other, QUIET), read(&key, MapVersion::UNKNOWN)];
    let mut replies = [
        CounterReply::Manifest(None),
        CounterReply::Moving { epoch: MOVE },
    ];
    for quiet in [true, false] {
        let answers = desk.counters.call(&batch).await;
        let expected = CounterAnswers {
            quiet,
            replies: replies.to_vec(),
        };
        assert_eq!(answers.expect("an answer"), expected);
        batch.reverse();
        replies.reverse();
    }
}

/// Each request finds what those before it in the batch have done, and nothing of those behind.
pub async fn a_batch_of_counters_keeps_its_order(fixture: &dyn Fixture) {
    for mut desk in Desk::both_ways(fixture).await {
        let [first, second] = ["first", "second"].map(|name| desk.key(name));
        let batch = [
            (&first, inspect()),
            (&first, create()),
            (&second, create()),
            (&first, deposit("a", 5)),
            (&second, deposit("a", 1)),
            (&first, deposit("a", 5)),
            (&first, deposit("a", 6)),
            (&first, deduct("b", 3)),
            (&first, deduct("c", 3)),
        ];
        let replies = asked(&mut desk, batch).await.expect("an answer").replies;
        let prepared = CounterReply::Segment(Ok(Said::Prepared));
        let expected = [
            CounterReply::Segment(Err(Refusal::Missing)),
            prepared.clone(),
            prepared,
            done(),
            done(),
            done(),
            CounterReply::Segment(Err(Refusal::Conflict)),
            done(),
        ];
        assert_eq!(replies[..8], expected);
        let short =
            matches!(&replies[8], CounterReply::Segment(Ok(Said::Short(view))) if view.value == 2);
        assert!(short, "{:?}", replies[8]);
        let (one, other) = (
            view_of(&mut desk, &first).await,
            view_of(&mut desk, &second).await,
        );
        assert_eq!((one.value, one.version, other.value), (2, 2, 1));
    }
}

/// A repeated request gets the same answer, on every connection.
pub async fn a_request_counts_once_over_connections(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    one(&mut desk, &key, create()).await;
    for _ in 0..3 {
        assert_eq!(one(&mut desk, &key, deposit("a", 5)).await, done());
        desk = Desk::open(fixture, MapVersion::UNKNOWN).await;
    }
    assert_eq!(view_of(&mut desk, &key).await.value, 5);
}

/// A manifest changes from the version that was read, or not at all.
pub async fn a_manifest_is_swapped_from_its_version_alone(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let key = desk.key("key");
    let batch = [
        (&key, CounterOp::ReadManifest),
        (&key, swap(1, "too early")),
        (&key, swap(0, "first")),
        (&key, swap(0, "too late")),
        (&key, CounterOp::ReadManifest),
        (&key, swap(1, "second\0é")),
    ];
    let replies = asked(&mut desk, batch).await.expect("an answer").replies;
    let expected = [
        CounterReply::Manifest(None),
        CounterReply::Swapped(false),
        CounterReply::Swapped(true),
        CounterReply::Swapped(false),
        CounterReply::Manifest(Some((1, "first".into()))),
        CounterReply::Swapped(true),
    ];
    assert_eq!(replies[..], expected);
    let second = CounterReply::Manifest(Some((2, "second\0é".into())));
    assert_eq!(one(&mut desk, &key, CounterOp::ReadManifest).await, second);
}

/// Manifests are lost with a dead shard, with a shard that came back from another one, and at a shard from which slots come.
pub async fn a_missing_manifest_was_never_made_unless_some_may_be_lost(fixture: &dyn Fixture) {
    let armed = async |number, counters| {
        let arm = Arm {
            incarnation: incarnation(FIRST),
            counters,
            ..arm(fixture, number, Grace::None)
        };
        let armed = control(fixture).await.arm(&arm).await;
        assert!(armed.expect("an answer").armed_now);
        Desk::open(fixture, MapVersion::UNKNOWN).await
    };
    let mut desk = armed(FIRST, Counters::Kept).await;
    let [key, other] = ["key", "other"].map(|name| desk.key(name));
    let missing = CounterReply::Manifest(None);
    let read = async |desk: &mut Desk| one(desk, &key, CounterOp::ReadManifest).await;
    assert_eq!(read(&mut desk).await, missing);

    let mut desk = armed(FIRST + 1, Counters::Never).await;
    assert_eq!(read(&mut desk).await, CounterReply::NeverMade);
    one(&mut desk, &other, swap(0, "layout")).await;
    assert_eq!(read(&mut desk).await, CounterReply::NeverMade);
    let mut desk = armed(FIRST + 2, Counters::Kept).await;
    assert_eq!(
        read(&mut desk).await,
        missing,
        "the address may have led elsewhere"
    );

    let mut desk = armed(FIRST + 3, Counters::Never).await;
    let slot = elsewhere(&desk, &key);
    let (epoch, slots) = (Epoch(FIRST + 4), vec![slot.slot()]);
    desk.becomes(&slot, epoch, Mode::Import).await;
    assert_eq!(desk.admits(epoch, &slot).await, []);
    assert_eq!(read(&mut desk).await, CounterReply::NeverMade);
    let (epoch, when) = (Epoch(FIRST + 5), When::Sealed);
    desk.becomes(&slot, epoch, Mode::Sealed).await;
    let ask = AskGroups { epoch, slots, when };
    assert!(desk.mover.groups(&ask).await.expect("an answer").complete);
    let (epoch, slots) = (Epoch(FIRST + 6), ask.slots.clone());
    desk.becomes(&slot, epoch, Mode::Import).await;
    let admit = Admit {
        epoch,
        slots,
        complete: false,
    };
    assert_eq!(desk.mover.admit(&admit).await.expect("an answer"), []);
    assert_eq!(read(&mut desk).await, missing, "a slot came without");
    let epoch = Epoch(FIRST + 7);
    desk.becomes(&slot, epoch, Mode::Sealed).await;
    let ask = AskGroups { epoch, ..ask };
    assert!(!desk.mover.groups(&ask).await.expect("an answer").complete);

    let mut desk = armed(FIRST + 8, Counters::Never).await;
    assert_eq!(read(&mut desk).await, CounterReply::NeverMade);
    desk.force_open(&force(Epoch(FIRST + 9), &[slot.slot()], Duration::ZERO))
        .await;
    assert_eq!(read(&mut desk).await, missing, "a slot was opened by force");
    let mut desk = armed(FIRST + 10, Counters::Never).await;
    assert_eq!(read(&mut desk).await, CounterReply::NeverMade);
    let mut desk = armed(FIRST + 11, Counters::Lost).await;
    assert_eq!(read(&mut desk).await, missing);
}

/// A key may name a lock, a segment and a manifest.
pub async fn locks_segments_and_manifests_of_one_key_do_not_touch(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let hostile = [
        &b"key"[..],
        b"key:seg",
        b"{1}:key",
        b"#{2}:key",
        b"\0\xff|* ",
    ];
    let (keys, holder) = (hostile.map(|name| desk.key(name)), nonce());
    for (at, key) in keys.iter().enumerate() {
        desk.granted(key, holder, LONG).await;
        assert_eq!(
            one(&mut desk, key, swap(0, "layout")).await,
            CounterReply::Swapped(true)
        );
        one(&mut desk, key, create()).await;
        assert_eq!(
            one(&mut desk, key, deposit("a", 1 + at as i64)).await,
            done()
        );
    }
    for (at, key) in keys.iter().enumerate() {
        assert_eq!(view_of(&mut desk, key).await.value, 1 + at as i64);
        let manifest = CounterReply::Manifest(Some((1, "layout".into())));
        assert_eq!(one(&mut desk, key, CounterOp::ReadManifest).await, manifest);
        assert_eq!(desk.holder(key).await, Some(holder));
    }
}

/// As many as there may be, of many segments and of one.
pub async fn a_full_batch_of_counters_is_answered_one_by_one(fixture: &dyn Fixture) {
    let mut desk = Desk::armed(fixture, Grace::None).await;
    let keys: Vec<_> = (0..ringfence_coordinator::limits::BATCH_MAX)
        .map(|at| desk.key(at.to_string()))
        .collect();
    let created = asked(&mut desk, keys.iter().map(|key| (key, create()))).await;
    assert_eq!(created.expect("an answer").replies.len(), keys.len());
    let deposits = (0..keys.len()).map(|at| (&keys[0], deposit(&at.to_string(), i64::MAX / 256)));
    let replies = asked(&mut desk, deposits).await.expect("an answer").replies;
    assert_eq!(replies, vec![done(); keys.len()]);
    let value = view_of(&mut desk, &keys[0]).await.value;
    assert_eq!(value, i64::MAX / 256 * keys.len() as i64);
}
