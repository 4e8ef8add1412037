//! The script answers as the rules do: random batches to both, every answer compared, and in the end all that is
//! stored.
//!
//! A batch has one instant, which it is asked for: the rules are given the same.

use std::{cell::RefCell, collections::BTreeMap};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use redis::aio::MultiplexedConnection;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    name::LockKey,
    shard::{CounterOp, CounterReply, stored::Stored},
};
use ringfence_segment_lock::{
    HashKey, Terms,
    segment::{Answer, Inspect, Reply, Request, Segment},
};

use super::{
    desk::{Desk, create, key},
    requests::{AGED_MS, Kind, SEGMENTS, Since, Step, batches},
    stored::{part_of, stored},
};
use crate::redis_fixture::Redis;

/// How many runs, each of some hundred requests.
const CASES: u32 = 200;

/// What the rules make of a request to a segment that may not be there.
fn apply(
    segments: &mut BTreeMap<LockKey, Segment>,
    at: &LockKey,
    request: &Request,
    now_ms: u64,
) -> Answer {
    let mut place = segments.remove(at);
    let answer = Segment::apply_to(&mut place, request, now_ms);
    if let Some(segment) = place {
        segments.insert(at.clone(), segment);
    }
    answer
}

/// Two segments that have something, and a third that is not there.
fn begun() -> Vec<(usize, Step)> {
    let deposit = |amount| {
        let id = (Since(0), 0);
        Step::Op(id, Kind::Deposit(amount), 9, Vec::new(), 1)
    };
    vec![
        (0, Step::Create(0, 1, Since(0))),
        (0, deposit(10_000)),
        (1, Step::Create(0, 2, Since(0))),
        (1, deposit(i64::MAX - 1_000)),
    ]
}

/// The words of answers, counted: a run in which nothing happens shows nothing.
type Words = BTreeMap<String, u64>;

fn word(answer: &Answer) -> String {
    let all = format!("{answer:?}");
    let ends = all.match_indices([' ', ')', '{']).next();
    all[..ends.map_or(all.len(), |(at, _)| at)].to_owned()
}

async fn run(
    (desk, raw): (&mut Desk, &mut MultiplexedConnection),
    number: u64,
    batches: &[Vec<(usize, Step)>],
    words: &RefCell<Words>,
) -> Result<(), TestCaseError> {
    let clock = key(&format!("clock {number}"));
    desk.ask(&clock, create(Terms::in_memory())).await.unwrap();
    let keys: Vec<_> = (0..SEGMENTS)
        .map(|at| key(&format!("{number} {at}")))
        .collect();
    let began_ms = desk.view(&clock).await.now_ms;
    let mut segments = BTreeMap::new();
    let first = begun();
    for steps in [first].iter().chain(batches) {
        for (at, step) in steps {
            match (step, segments.get_mut(&keys[*at])) {
                (Step::Lose(doubtful), Some(segment)) => {
                    lose(raw, &keys[*at], segment, *doubtful).await;
                }
                (Step::Age, Some(segment)) => age(raw, &keys[*at], segment).await,
                _ => {}
            }
        }
        let mut batch = vec![(clock.clone(), CounterOp::Segment(Inspect.into()))];
        let requests = steps.iter().map(|(at, step)| {
            let segment: Option<&Segment> = segments.get(&keys[*at]);
            let version = segment.map_or(0, |segment| segment.version);
            let mut request = step.request(began_ms, version);
            if let Request::Op(op) = &mut request {
                // In its place there may be one with a log.
                let removes = |(of, step): &(usize, Step)| of == at && step.removes();
                op.logged = segment.is_none_or(|segment| segment.terms.effects_max > 0)
                    || steps.iter().any(removes);
            }
            (keys[*at].clone(), request)
        });
        let requests: Vec<_> = requests.collect();
        batch.extend(
            requests
                .iter()
                .map(|(key, request)| (key.clone(), CounterOp::Segment(request.clone()))),
        );
        let mut replies = desk.batch(&batch).await.into_iter();
        let Some(CounterReply::Segment(Ok(Reply::View(view)))) = replies.next() else {
            panic!("the clock answers");
        };
        for ((key, request), reply) in requests.iter().zip(replies) {
            let expected = apply(&mut segments, key, request, view.now_ms);
            *words.borrow_mut().entry(word(&expected)).or_default() += 1;
            prop_assert_eq!(
                reply,
                CounterReply::Segment(expected),
                "{:?} to {:?}",
                request,
                key
            );
        }
    }
    for key in &keys {
        let found = stored(raw, key).await;
        let expected = segments.get(key);
        // Nothing else is there: what was written before cannot be told from what was never there.
        let expected = expected.map(|segment| {
            let origin = String::from_utf8(found.0["seg"][&b"origin"[..]].clone()).unwrap();
            Stored::from_segment(segment, HashKey(7), &origin)
        });
        prop_assert_eq!(&found, &expected.unwrap_or_default());
    }
    Ok(())
}

/// Marks a segment, as a server does that came back.
async fn lose(
    raw: &mut MultiplexedConnection,
    key: &LockKey,
    segment: &mut Segment,
    doubtful: bool,
) {
    match doubtful {
        true => segment.doubtful = true,
        false => segment.losses += 1,
    }
    let mut command = redis::cmd("HSET");
    command.arg(part_of(key, "seg"));
    command.arg("doubtful").arg(u8::from(segment.doubtful));
    command.arg("losses").arg(segment.losses);
    command.exec_async(raw).await.unwrap();
}

/// Cuts the window of a segment, as if time had passed.
async fn age(raw: &mut MultiplexedConnection, key: &LockKey, segment: &mut Segment) {
    segment.terms.idempotency_for_ms = AGED_MS;
    let stored = Stored::from_segment(segment, HashKey(7), "");
    let mut command = redis::cmd("HSET");
    command.arg(part_of(key, "seg")).arg("terms");
    command.arg(&stored.0["seg"][&b"terms"[..]]);
    command.exec_async(raw).await.unwrap();
}

/// Batches for a segment with `terms`, which receives no other requests: the words of their answers.
async fn told(terms: u8, batches: impl IntoIterator<Item = Vec<Step>>) -> Words {
    let create = vec![Step::Create(0, terms, Since(0))];
    told_all([create].into_iter().chain(batches)).await
}

/// Batches for a segment that is not there, which receives no other requests: the words of their answers.
async fn told_all(batches: impl IntoIterator<Item = Vec<Step>>) -> Words {
    let redis = Redis::new().await;
    let (mut desk, mut raw) = (Desk::open(&*redis.shard(), 1).await, redis.raw().await);
    let at_third = |steps: Vec<Step>| steps.into_iter().map(|step| (2, step)).collect();
    let batches: Vec<Vec<_>> = batches.into_iter().map(at_third).collect();
    let words = RefCell::default();
    let both = (&mut desk, &mut raw);
    run(both, 1, &batches, &words).await.unwrap();
    words.into_inner()
}

/// By an id that is older than what the segment remembers.
fn old(name: u8, kind: Kind) -> Step {
    Step::Op((Since(-60_000), name), kind, 9, Vec::new(), 1)
}

#[tokio::test]
async fn a_forgotten_request_is_unknown_to_the_rest_of_its_batch() {
    let deposit = || old(0, Kind::Deposit(1));
    let find = Step::Find((Since(-60_000), 0), 9);
    let then = vec![Step::Age, find, Step::Purge, deposit()];
    let words = told(2, [vec![deposit()], then]).await;
    assert!(words.contains_key("Err(TooOld"), "{words:?}");
}

#[tokio::test]
async fn a_replacement_takes_only_loans_of_after_its_acceptance() {
    let accept = |is_as_read| vec![Step::Accept(0, Since(0), is_as_read, 7)];
    let land = |number| Step::Land(1, number, 1, 1);
    let batches = [
        vec![Step::Replace(0, 1, 2, Since(0)), land(9)],
        accept(false),
        accept(true),
        vec![land(7), land(8)],
    ];
    let words = told_all(batches).await;
    for (word, count) in [
        ("Err(Doubtful", 1),
        ("Ok(Stale", 2),
        ("Ok(Landed", 1),
        ("Ok(View(SegmentView", 2),
    ] {
        assert_eq!(words.get(word), Some(&count), "{word}: {words:?}");
    }
}

#[tokio::test]
async fn a_segment_is_made_only_soon_after_its_plan() {
    let create = |planned| vec![Step::Create(0, 1, Since(planned))];
    let batches = [create(-3_600_000), create(3_600_000), create(0)];
    let words = told_all(batches).await;
    assert_eq!(words.get("Err(ClocksDiffer"), Some(&2), "{words:?}");
    // And those of the two that are there before.
    assert_eq!(words.get("Ok(Prepared"), Some(&3), "{words:?}");
}

#[tokio::test]
async fn requests_that_are_not_final_are_kept_however_old() {
    let old = |name: u8, kind| {
        Step::Op(
            (Since(-60_000 + i64::from(name)), name),
            kind,
            9,
            Vec::new(),
            1,
        )
    };
    let transfer = old(1, Kind::Transfer(5, 0));
    let reserve = old(2, Kind::Reserve(5, Since(-45_000)));
    let find = |name: u8| Step::Find((Since(-60_000 + i64::from(name)), name), 9);
    let words = told(
        2,
        [
            vec![old(0, Kind::Deposit(100)), transfer, reserve],
            vec![Step::Age, Step::Purge, find(0), find(1), find(2)],
            vec![Step::Purge, Step::Expire, Step::Purge],
        ],
    );
    let words = words.await;
    assert_eq!(words["Ok(Purged(1"], 2, "{words:?}");
    assert_eq!(words["Ok(Recorded(Held"], 2, "{words:?}");
}

#[tokio::test]
async fn a_ceiling_and_a_unit_are_kept_by_both() {
    let op = |name, kind| Step::Op((Since(0), name), kind, 9, Vec::new(), 1);
    let credit = |name, call| Step::Credit((Since(0), name), 0, 100, 9, call, false);
    let together = vec![
        op(0, Kind::Deposit(1_000)),
        op(1, Kind::Deduct(300)),
        op(2, Kind::Deposit(50)),
    ];
    let beyond = vec![op(3, Kind::Deposit(1_251)), op(4, Kind::Deposit(1_100))];
    // Another unit, the own one, and more than there is room for.
    let credits = vec![credit(0, 1), credit(1, 2), credit(2, 2)];
    let words = told(3, [together, beyond, credits]).await;
    for (word, count) in [
        ("Ok(Recorded(Done,", 6),
        ("Err(Full", 1),
        ("Ok(Credited(Credited", 1),
        ("Ok(Credited(Refused", 2),
    ] {
        assert_eq!(words.get(word), Some(&count), "{word}: {words:?}");
    }
}

#[tokio::test]
async fn forgotten_requests_are_as_old_as_the_mark() {
    // One for each of the next milliseconds to be as old as the window.
    let since = |ms: i64| Since(ms - AGED_MS as i64);
    let deposit = |ms: i64| Step::Op((since(ms), 0), Kind::Deposit(1), 9, Vec::new(), 1);
    let then = vec![Step::Age, Step::Purge, deposit(0), deposit(99), Step::Purge];
    told(2, [(0..100).map(deposit).collect(), then]).await;
}

/// The mark rises to the time of a dropped answer: others of that time go with the next request, also within one batch.
#[tokio::test]
async fn answers_as_old_as_a_dropped_one_make_room_within_a_batch() {
    let remembered = (0..3).map(|name| old(name, Kind::Deposit(1)));
    let new = |name| Step::Op((Since(0), name), Kind::Deposit(1), 9, Vec::new(), 1);
    told(0, [remembered.collect(), vec![new(0), new(1)]]).await;
}

#[test]
fn the_script_answers_as_the_rules_do() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (_redis, desk, raw) = runtime.block_on(async {
        let redis = Redis::new().await;
        let desk = Desk::open(&*redis.shard(), 1).await;
        let raw = redis.raw().await;
        (redis, RefCell::new(desk), RefCell::new(raw))
    });
    let (words, number) = (RefCell::new(Words::new()), RefCell::new(0));
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&batches(), |batches| {
        *number.borrow_mut() += 1;
        let number = *number.borrow();
        let both = (&mut *desk.borrow_mut(), &mut *raw.borrow_mut());
        runtime.block_on(run(both, number, &batches, &words))
    });
    if let Err(difference) = outcome {
        panic!("{difference}");
    }
    for word in SEEN {
        let seen = words.borrow().keys().any(|seen| seen.starts_with(word));
        assert!(seen, "{word} was never answered: {:#?}", words.borrow());
    }
}

/// What must have been answered, or the runs show little.
const SEEN: [&str; 46] = [
    "Err(AboveReserved",
    "Err(Busy",
    "Err(ClocksDiffer",
    "Err(Closed",
    "Err(Conflict",
    "Err(DeadlineTooLate",
    "Err(Doubtful",
    "Err(Full",
    "Err(IdExpired",
    "Err(IdInFuture",
    "Err(Layout",
    "Err(Missing",
    "Err(NoLog",
    "Err(TooManyIds",
    "Err(TooOld",
    "Ok(Changed",
    "Ok(Credited(Credited",
    "Ok(Credited(Refused",
    "Ok(Done",
    "Ok(Expired(1",
    "Ok(History(HistoryPage",
    "Ok(Landed",
    "Ok(Later",
    "Ok(Lent",
    "Ok(View",
    "Ok(Nothing",
    "Ok(Pinned([PinnedCredit",
    "Ok(Prepared",
    "Ok(Promised",
    "Ok(Purged(1",
    "Ok(Recorded(Cancelled",
    "Ok(Recorded(Committed",
    "Ok(Recorded(Confirmed",
    "Ok(Recorded(Delivered",
    "Ok(Recorded(Done",
    "Ok(Recorded(Expired",
    "Ok(Recorded(Held",
    "Ok(Recorded(Insufficient",
    "Ok(Recorded(Returned",
    "Ok(Recorded(Sent",
    "Ok(Sent([(",
    "Ok(Removed",
    "Ok(Short",
    "Ok(Stale",
    "Ok(Unknown",
    "Ok(Expired(0",
];
