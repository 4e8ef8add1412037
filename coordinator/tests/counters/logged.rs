//! The log of a segment on a server: its older effects are packed, read page by page, and dropped in time.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{name::LockKey, shard::CounterOp};
use ringfence_segment_lock::{
    RequestId, Terms,
    segment::{Effect, EffectKind, History, HistoryPage, Purge, Reply},
};

use super::{
    desk::{Desk, create, deposit, key, now_ms},
    stored::part_of,
};
use crate::redis_fixture::Redis;

/// Effects in a page on the server.
const PAGE: usize = 1_024;

fn id(nth: usize) -> RequestId {
    RequestId::new(now_ms(), &format!("order/{nth:026}")).unwrap()
}

/// Deposits 1 by so many ids, 128 in a call.
async fn deposits(desk: &mut Desk, at: &LockKey, numbers: std::ops::Range<usize>) {
    let numbers: Vec<_> = numbers.collect();
    for some in numbers.chunks(128) {
        let ops = some.iter().map(|nth| deposit(&id(*nth), 1));
        let ops = ops.map(|op| (at.clone(), CounterOp::Segment(op.into())));
        desk.batch(&ops.collect::<Vec<_>>()).await;
    }
}

async fn page(desk: &mut Desk, at: &LockKey, after: u64, since_ms: u64, most: u32) -> HistoryPage {
    let history = History {
        after,
        since_ms,
        most,
    };
    match desk.ask(at, history).await {
        Ok(Reply::History(page)) => page,
        answer => panic!("{answer:?}"),
    }
}

/// All effects, read `most` at a time.
async fn all(desk: &mut Desk, at: &LockKey, most: u32) -> Vec<Effect> {
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = page(desk, at, after, 0, most).await;
        assert!(page.effects.len() <= most as usize);
        let Some(last) = page.effects.last() else {
            assert_eq!(after, page.last);
            return found;
        };
        after = last.number;
        found.extend(page.effects);
    }
}

async fn memory_of(raw: &mut MultiplexedConnection, at: &LockKey, part: &str) -> u64 {
    let mut usage = redis::cmd("MEMORY");
    usage.arg("USAGE").arg(part_of(at, part));
    usage.arg("SAMPLES").arg(0);
    usage
        .query_async::<Option<u64>>(raw)
        .await
        .unwrap()
        .unwrap_or_default()
}

#[tokio::test]
async fn a_long_log_is_read_as_it_was_written() {
    let redis = Redis::new().await;
    let (mut desk, mut raw) = (Desk::open(&*redis.shard(), 1).await, redis.raw().await);
    let (hot, unlogged) = (key("hot"), key("unlogged"));
    desk.ask(&hot, create(Terms::in_memory())).await.unwrap();
    let terms = Terms {
        effects_max: 0,
        ..Terms::in_memory()
    };
    desk.ask(&unlogged, create(terms)).await.unwrap();
    let count = 5 * PAGE + 100;
    deposits(&mut desk, &hot, 0..count).await;
    deposits(&mut desk, &unlogged, 0..count).await;
    for most in [100, 2_000] {
        let effects = all(&mut desk, &hot, most).await;
        assert_eq!(effects.len(), count);
        for (nth, effect) in effects.iter().enumerate() {
            let EffectKind::Deposited(id) = &effect.kind else {
                panic!("{effect:?}");
            };
            assert_eq!(id.name(), format!("order/{nth:026}"));
            let money = (effect.number, effect.value, effect.held);
            assert_eq!(money, (nth as u64 + 1, nth as i64 + 1, 0));
        }
    }
    // From a time on: the first effect of each time is the first that is read.
    let effects = all(&mut desk, &hot, 2_000).await;
    for nth in [0, 1, PAGE, 2 * PAGE + 300, count - 1] {
        let at_ms = effects[nth].at_ms;
        let first = effects.iter().find(|effect| effect.at_ms >= at_ms);
        let read = page(&mut desk, &hot, 0, at_ms, 1).await;
        assert_eq!(read.effects.first(), first);
    }
    let mut bytes = memory_of(&mut raw, &hot, "log").await;
    bytes += memory_of(&mut raw, &hot, "pages").await;
    bytes += memory_of(&mut raw, &hot, "blocks").await;
    bytes -= memory_of(&mut raw, &unlogged, "blocks").await;
    let each = bytes as f64 / count as f64;
    println!("{each:.1} bytes of the server for each effect of an id of 32 bytes");
    assert!((50.0..100.0).contains(&each), "{each}");
}

#[tokio::test]
async fn the_oldest_pages_are_dropped() {
    let redis = Redis::new().await;
    let mut desk = Desk::open(&*redis.shard(), 1).await;
    let hot = key("hot");
    let terms = Terms {
        effects_max: 2_000,
        ..Terms::in_memory()
    };
    desk.ask(&hot, create(terms)).await.unwrap();
    deposits(&mut desk, &hot, 0..6 * PAGE).await;
    let effects = all(&mut desk, &hot, 2_000).await;
    let kept = 2_000..=2_000 + 2 * PAGE;
    assert!(kept.contains(&effects.len()), "{}", effects.len());
    assert_eq!(effects.last().unwrap().number, 6 * PAGE as u64);
    assert!(
        effects
            .windows(2)
            .all(|pair| pair[0].number + 1 == pair[1].number)
    );
}

#[tokio::test]
async fn a_purge_drops_effects_that_are_too_old() {
    let redis = Redis::new().await;
    let (mut desk, mut raw) = (Desk::open(&*redis.shard(), 1).await, redis.raw().await);
    let hot = key("hot");
    let terms = Terms {
        effects_for_ms: 500,
        ..Terms::in_memory()
    };
    desk.ask(&hot, create(terms)).await.unwrap();
    deposits(&mut desk, &hot, 0..3 * PAGE).await;
    super::desk::eventually(async || {
        desk.ask(&hot, Purge).await.unwrap();
        page(&mut desk, &hot, 0, 0, 1).await.effects.is_empty()
    })
    .await;
    let parts = ["log", "pages"].map(|part| part_of(&hot, part));
    let left: u64 = redis::cmd("EXISTS")
        .arg(&parts)
        .query_async(&mut raw)
        .await
        .unwrap();
    assert_eq!(left, 0);
    // It goes on.
    tokio::time::timeout(
        Duration::from_secs(5),
        deposits(&mut desk, &hot, 9_000_000..9_000_001),
    )
    .await
    .unwrap();
    let next = page(&mut desk, &hot, 0, 0, 9).await;
    let numbers: Vec<_> = next.effects.iter().map(|effect| effect.number).collect();
    assert_eq!(numbers, [3 * PAGE as u64 + 1]);
}
