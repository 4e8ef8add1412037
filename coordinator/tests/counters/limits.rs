//! Servers that are full, and names that others have taken.

use redis::Value;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::shard::{CounterOp, CounterReply};
use ringfence_segment_lock::{
    Account, Amount, Change, RequestId, Terms,
    segment::{Inspect, Purge},
};

use super::{
    desk::{Desk, create, deposit, id, key, op},
    stored::part_of,
};
use crate::redis_fixture::Redis;

#[tokio::test]
async fn a_full_server_refuses_a_batch_whole() {
    let redis = Redis::new().await;
    let (mut desk, mut raw) = (Desk::open(&*redis.shard(), 1).await, redis.raw().await);
    let hot = key("hot");
    desk.ask(&hot, create(Terms::in_memory())).await.unwrap();
    let full = async |raw: &mut _, bytes: &str| {
        let mut config = redis::cmd("CONFIG");
        config
            .arg("SET")
            .arg("maxmemory")
            .arg(bytes)
            .exec_async(raw)
            .await
            .unwrap();
    };
    full(&mut raw, "1").await;
    let op = |name: &str| CounterOp::Segment(deposit(&id(name), 5).into());
    let batch = [(hot.clone(), op("a")), (hot.clone(), op("b"))];
    assert_eq!(
        desk.batch(&batch).await,
        [CounterReply::OutOfMemory, CounterReply::OutOfMemory]
    );
    full(&mut raw, "0").await;
    assert_eq!(desk.view(&hot).await.value, 0);
    desk.batch(&batch).await;
    assert_eq!(desk.view(&hot).await.value, 10);
}

#[tokio::test]
async fn foreign_values_are_left_alone_and_others_are_answered() {
    let redis = Redis::new().await;
    let (mut desk, mut raw) = (Desk::open(&*redis.shard(), 1).await, redis.raw().await);
    let (hot, other) = (key("hot"), key("other"));
    desk.ask(&other, create(Terms::in_memory())).await.unwrap();
    let ask = |name: &str, change| CounterOp::Segment(op(&id(name), change).into());
    let amount = Amount::new(5).unwrap();
    let deadline_ms = id("a").time_ms() + 1;
    let to = Account::new("other").unwrap();
    let asked = [
        ("seg", Change::Deposit { amount }),
        ("ids", Change::Deposit { amount }),
        ("order", Change::Deposit { amount }),
        ("log", Change::Deposit { amount }),
        (
            "due",
            Change::Reserve {
                amount,
                deadline_ms,
            },
        ),
        ("sent", Change::Transfer { amount, to }),
    ];

    for (part, change) in asked {
        if part != "seg" {
            desk.ask(&hot, create(Terms::in_memory())).await.unwrap();
        }
        let mut del = redis::cmd("DEL");
        del.arg(part_of(&hot, part))
            .exec_async(&mut raw)
            .await
            .unwrap();
        redis::Cmd::set(part_of(&hot, part), "theirs")
            .exec_async(&mut raw)
            .await
            .unwrap();
        let before = desk
            .batch(&[(other.clone(), CounterOp::Segment(Inspect.into()))])
            .await;
        let batch = [
            (other.clone(), ask(part, Change::Deposit { amount })),
            (hot.clone(), ask("a", change)),
            (other.clone(), ask(part, Change::Deposit { amount })),
        ];
        let replies = desk.batch(&batch).await;
        assert_eq!(replies[1], CounterReply::Foreign, "{part}");
        assert_eq!(replies[0], replies[2], "{part}");
        assert!(
            before
                != desk
                    .batch(&[(other.clone(), CounterOp::Segment(Inspect.into()))])
                    .await
        );
        let theirs: Value = redis::Cmd::get(part_of(&hot, part))
            .query_async(&mut raw)
            .await
            .unwrap();
        assert_eq!(theirs, Value::BulkString(b"theirs".into()), "{part}");
        redis::Cmd::del(part_of(&hot, part))
            .exec_async(&mut raw)
            .await
            .unwrap();
        if part != "seg" {
            assert_eq!(desk.view(&hot).await.value, 0, "{part}");
        }
    }
}

#[tokio::test]
async fn nothing_is_forgotten_where_answers_are_foreign() {
    let redis = Redis::new().await;
    let (mut desk, mut raw) = (Desk::open(&*redis.shard(), 1).await, redis.raw().await);
    let hot = key("hot");
    desk.ask(&hot, create(Terms::in_memory())).await.unwrap();
    let now_ms = desk.view(&hot).await.now_ms;
    let old = RequestId::new(now_ms - 1_000, "old").unwrap();
    desk.ask(&hot, deposit(&old, 5)).await.unwrap();
    let aged = redis::Cmd::hset(part_of(&hot, "seg"), "terms", "1000     ");
    aged.exec_async(&mut raw).await.unwrap();
    let theirs = redis::Cmd::set(part_of(&hot, "ids"), "theirs");
    theirs.exec_async(&mut raw).await.unwrap();

    let purge = CounterOp::Segment(Purge.into());
    assert_eq!(desk.one(&hot, purge).await, CounterReply::Foreign);
    let order: u64 = redis::cmd("LLEN")
        .arg(part_of(&hot, "order"))
        .query_async(&mut raw)
        .await
        .unwrap();
    assert_eq!(order, 1);
}
