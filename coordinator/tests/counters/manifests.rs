//! A manifest after its server came back.

use ringfence_coordinator::{
    shard::{CounterOp, CounterReply, Counters},
    spawn::RedisServer,
};
use ringfence_segment_lock::Durability;

use super::{
    desk::{Desk, key},
    durable::{desk, raw, shard, synced},
};

fn swap(expected: u64) -> CounterOp {
    CounterOp::SwapManifest {
        expected,
        manifest: "layout".into(),
        durability: Durability::Memory,
    }
}

#[tokio::test]
async fn a_manifest_is_in_doubt_after_a_restart_that_may_lose_until_it_is_swapped() {
    let mut server = RedisServer::spawn().await.unwrap();
    let hot = key("hot");
    let mut first = desk(&server, 1).await;
    assert_eq!(first.one(&hot, swap(0)).await, CounterReply::Swapped(true));
    raw(&server, &["SAVE"]).await;
    assert_eq!(first.one(&hot, swap(1)).await, CounterReply::Swapped(true));
    server.restart().await.unwrap();

    let mut second = desk(&server, 2).await;
    let in_doubt = CounterReply::ManifestInDoubt(1, "layout".into());
    assert_eq!(second.one(&hot, CounterOp::ReadManifest).await, in_doubt);
    assert_eq!(
        desk(&server, 2)
            .await
            .one(&hot, CounterOp::ReadManifest)
            .await,
        in_doubt
    );
    // What was read before the restart is no version of this one, now or later.
    assert_eq!(
        second.one(&hot, swap(2)).await,
        CounterReply::Swapped(false)
    );
    assert_eq!(second.one(&hot, swap(1)).await, CounterReply::Swapped(true));
    assert_eq!(
        second.one(&hot, swap(2)).await,
        CounterReply::Swapped(false)
    );
    let certain = CounterReply::Manifest(Some((1 + (1 << 32), "layout".into())));
    assert_eq!(second.one(&hot, CounterOp::ReadManifest).await, certain);
}

#[tokio::test]
async fn a_manifest_is_certain_after_a_restart_that_loses_nothing() {
    let mut server = synced().spawn().await.unwrap();
    let hot = key("hot");
    let mut first = desk(&server, 1).await;
    assert_eq!(first.one(&hot, swap(0)).await, CounterReply::Swapped(true));
    for epoch in [2, 3] {
        server.restart().await.unwrap();
        let manifest = CounterReply::Manifest(Some((1, "layout".into())));
        assert_eq!(
            desk(&server, epoch)
                .await
                .one(&hot, CounterOp::ReadManifest)
                .await,
            manifest
        );
    }
}

#[tokio::test]
async fn a_manifest_that_is_missing_was_never_made_where_none_can_be_lost() {
    let missing = CounterReply::Manifest(None);
    let cases = [
        (synced(), CounterReply::NeverMade),
        (synced().set("appendfsync", "everysec"), missing.clone()),
        (synced().set("appendonly", "no"), missing.clone()),
    ];
    for (server, restarted) in cases {
        let settings = format!("{server:?}");
        let mut server = server.spawn().await.unwrap();
        let (hot, other) = (key("hot"), key("other"));
        let mut first = desk(&server, 1).await;
        for _ in 0..2 {
            let found = first.one(&other, CounterOp::ReadManifest).await;
            assert_eq!(found, CounterReply::NeverMade, "{settings}");
            first.one(&hot, swap(0)).await;
        }
        raw(&server, &["SAVE"]).await;
        for epoch in [2, 3] {
            server.restart().await.unwrap();
            let mut desk = desk(&server, epoch).await;
            let found = desk.one(&other, CounterOp::ReadManifest).await;
            assert_eq!(found, restarted, "{settings}");
        }
        // What the same life did under another address may be missing, also after a restart.
        let mut again = desk(&server, 4).await;
        let found = again.one(&other, CounterOp::ReadManifest).await;
        assert_eq!(found, missing, "{settings}");
        server.restart().await.unwrap();
        let mut last = desk(&server, 5).await;
        let found = last.one(&other, CounterOp::ReadManifest).await;
        assert_eq!(found, missing, "{settings}");
    }
}

/// It had not opened all slots of a dead shard when it went down.
#[tokio::test]
async fn a_manifest_may_be_missing_at_a_shard_that_came_back_with_slots_of_a_dead_one() {
    let mut server = synced().spawn().await.unwrap();
    desk(&server, 1).await;
    server.restart().await.unwrap();
    let shard = shard(&server.url(), &server).await;
    let mut second = Desk::armed(&shard, 2, Counters::Lost).await;
    let found = second.one(&key("other"), CounterOp::ReadManifest).await;
    assert_eq!(found, CounterReply::Manifest(None));
}
