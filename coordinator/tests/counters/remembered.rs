//! What a segment remembers when it is asked much: older answers are packed, and it never fills for good.

use std::time::Duration;

use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    name::LockKey,
    shard::{CounterOp, CounterReply},
};
use ringfence_segment_lock::{
    RequestId, Terms,
    segment::{Find, Money, Purge, Refusal, Reply, State},
};

use super::desk::{Desk, create, deduct, deposit, eventually, key, now_ms, without_money};
use crate::redis_fixture::Redis;

fn id(time_ms: u64, nth: usize) -> RequestId {
    RequestId::new(time_ms, &format!("{nth:032x}")).unwrap()
}

/// Deposits 1 by each id, 128 in a call.
async fn deposits(desk: &mut Desk, at: &LockKey, ids: &[RequestId]) {
    for some in ids.chunks(128) {
        let ops = some
            .iter()
            .map(|id| (at.clone(), CounterOp::Segment(deposit(id, 1).into())));
        let ops: Vec<_> = ops.collect();
        for reply in desk.batch(&ops).await {
            let done = CounterReply::Segment(Ok(Reply::Recorded(State::Done, Money::default())));
            assert_eq!(without_money(reply), done);
        }
    }
}

/// Every 37th is known with its content, and another content is a conflict; money is as it was.
async fn are_known(desk: &mut Desk, at: &LockKey, ids: &[RequestId]) {
    let before = desk.view(at).await;
    for id in ids.iter().step_by(37) {
        let done = Ok(Reply::Recorded(State::Done, Money::default()));
        assert_eq!(desk.ask(at, deposit(id, 1)).await, done, "{id}");
        let other = desk.ask(at, deduct(id, 1)).await;
        assert_eq!(other, Err(Refusal::Conflict), "{id}");
    }
    let repeats: Vec<_> = ids.iter().rev().take(256).cloned().collect();
    deposits(desk, at, &repeats).await;
    deposits(desk, at, &ids[..256]).await;
    let after = desk.view(at).await;
    assert_eq!((after.value, after.version), (before.value, before.version));
}

async fn used_memory(raw: &mut redis::aio::MultiplexedConnection) -> u64 {
    let info: String = redis::cmd("INFO")
        .arg("memory")
        .query_async(raw)
        .await
        .unwrap();
    let used = info
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    used.unwrap().trim().parse().unwrap()
}

#[tokio::test]
#[ignore = "long: many answers"]
async fn many_answers_are_known_each_in_few_bytes() {
    let redis = Redis::new().await;
    let (mut desk, mut raw) = (Desk::open(&*redis.shard(), 1).await, redis.raw().await);
    let hot = key("hot");
    let terms = Terms {
        effects_max: 0,
        ..Terms::in_memory()
    };
    desk.ask(&hot, create(terms)).await.unwrap();
    let before = used_memory(&mut raw).await;
    // As clocks of several processes differ: by up to 40 ms, of which the last came an hour ago.
    let began_ms = now_ms() - 60_000;
    let time = |nth: usize| began_ms + nth as u64 / 20 - (nth as u64 * 7919) % 40;
    let mut ids: Vec<_> = (0..200_000).map(|nth| id(time(nth), nth)).collect();
    deposits(&mut desk, &hot, &ids).await;
    let each = (used_memory(&mut raw).await - before) as f64 / ids.len() as f64;
    println!(
        "{each:.1} bytes of the server for each of {} ids",
        ids.len()
    );
    assert!(each <= 40.0, "{each}");
    // Late ones go where their time is; and many of one time.
    let late: Vec<_> = (0..3_000)
        .map(|nth| id(began_ms + 5_000 + nth as u64 % 700, 1_000_000 + nth))
        .chain((0..20_000).map(|nth| id(began_ms + 6_000, 2_000_000 + nth)))
        .collect();
    deposits(&mut desk, &hot, &late).await;
    ids.extend(late);
    are_known(&mut desk, &hot, &ids).await;
    assert_eq!(desk.view(&hot).await.value, ids.len() as i64);
}

#[tokio::test]
async fn old_answers_go_with_new_requests() {
    let redis = Redis::new().await;
    let mut desk = Desk::open(&*redis.shard(), 1).await;
    let hot = key("hot");
    let terms = Terms {
        idempotency_for_ms: 20_000,
        idempotency_at_least_ms: 20_000,
        ids_max: 20_000,
        ..Terms::in_memory()
    };
    desk.ask(&hot, create(terms)).await.unwrap();
    // Half of them will be too old in eight seconds: a slow machine fills the segment within that time.
    let began_ms = now_ms();
    let old: Vec<_> = (0..10_000)
        .map(|nth| id(began_ms - 12_000 + nth as u64 / 100, nth))
        .collect();
    let young: Vec<_> = (0..10_000)
        .map(|nth| id(began_ms - 5_000 + nth as u64 / 100, 100_000 + nth))
        .collect();
    deposits(&mut desk, &hot, &old).await;
    deposits(&mut desk, &hot, &young).await;
    let refused = desk.ask(&hot, deposit(&id(now_ms(), 999_999), 1)).await;
    let Err(Refusal::TooManyIds { retry_after_ms, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(retry_after_ms <= 8_500, "{retry_after_ms}");
    // Nobody sweeps: as soon as it is said, there is room again.
    let deadline_ms = now_ms() + retry_after_ms + 5_000;
    eventually(async || {
        assert!(now_ms() < deadline_ms);
        desk.ask(&hot, deposit(&id(now_ms(), 999_999), 1))
            .await
            .is_ok()
    })
    .await;
    let repeated = desk.ask(&hot, deposit(&old[0], 1)).await;
    assert!(
        matches!(repeated, Err(Refusal::TooOld { .. })),
        "{repeated:?}"
    );
    are_known(&mut desk, &hot, &young).await;
}

#[tokio::test]
async fn a_full_segment_forgets_early_and_forgotten_requests_are_too_old() {
    let redis = Redis::new().await;
    let mut desk = Desk::open(&*redis.shard(), 1).await;
    let hot = key("hot");
    let terms = Terms {
        idempotency_at_least_ms: 10_000,
        ids_max: 30_000,
        ..Terms::in_memory()
    };
    desk.ask(&hot, create(terms)).await.unwrap();
    let began_ms = now_ms();
    let old: Vec<_> = (0..30_000)
        .map(|nth| id(began_ms - 60_000 + nth as u64, nth))
        .collect();
    let young: Vec<_> = (0..20_000)
        .map(|nth| id(began_ms - nth as u64 % 50, 100_000 + nth))
        .collect();
    deposits(&mut desk, &hot, &old).await;
    deposits(&mut desk, &hot, &young).await;
    let total = (old.len() + young.len()) as i64;
    assert_eq!(desk.view(&hot).await.value, total);
    are_known(&mut desk, &hot, &young).await;
    let mut too_old = 0;
    for id in old.iter().step_by(100) {
        match desk.ask(&hot, deposit(id, 1)).await {
            Err(Refusal::TooOld { mark_ms }) => {
                assert!(id.time_ms() <= mark_ms && mark_ms <= now_ms() - 10_000);
                too_old += 1;
            }
            answer => assert_eq!(answer, Ok(Reply::Recorded(State::Done, Money::default()))),
        }
    }
    assert!((150..=300).contains(&too_old), "{too_old}");
    let generation = 1;
    let find = Find {
        id: old[0].clone(),
        generation,
    };
    assert!(matches!(
        desk.ask(&hot, find).await,
        Err(Refusal::TooOld { .. })
    ));
    assert_eq!(desk.ask(&hot, Purge).await, Ok(Reply::Purged(0)));
    assert_eq!(desk.view(&hot).await.value, total, "no second effect");
}

#[tokio::test]
async fn a_purge_while_the_servers_clock_is_wrong_refuses_no_new_request() {
    let redis = Redis::new().await;
    let mut desk = Desk::open(&*redis.shard(), 1).await;
    let hot = key("hot");
    desk.ask(&hot, create(Terms::in_memory())).await.unwrap();
    let first = id(now_ms(), 1);
    desk.ask(&hot, deposit(&first, 1)).await.unwrap();
    let days = Duration::from_secs(40 * 24 * 60 * 60);
    redis.elapse(days).await;
    assert_eq!(desk.ask(&hot, Purge).await, Ok(Reply::Purged(1)));
    redis.set_clock_back(days).await;
    let done = Ok(Reply::Recorded(State::Done, Money::default()));
    let next = id(first.time_ms() + 1, 2);
    assert_eq!(desk.ask(&hot, deposit(&next, 1)).await, done);
}
