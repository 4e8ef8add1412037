//! A manifest after its server came back.

use ringfence_coordinator::{
    shard::{CounterOp, CounterReply},
    spawn::RedisServer,
};
use ringfence_segment_lock::Durability;

use super::{
    desk::key,
    durable::{desk, raw, synced},
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
