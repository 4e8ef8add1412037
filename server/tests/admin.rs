//! What operators see and do.

use ringfence_api::{
    Error, Reason,
    v1::{ForceReleaseRequest, GetTopologyRequest, admin_service_client::AdminServiceClient},
};
use ringfence_test_support::eventually;

use super::scene::{Scene, acquire, ask, renew};

fn force(key: &str, reason: &str) -> ForceReleaseRequest {
    ForceReleaseRequest {
        namespace: String::new(),
        key: key.into(),
        reason: reason.into(),
    }
}

#[tokio::test]
async fn the_topology_is_shown_shard_by_shard() {
    let scene = Scene::set().await;
    let mut admin = AdminServiceClient::new(scene.channel().await);
    let shown = admin.get_topology(GetTopologyRequest {}).await.unwrap();
    let shown = shown.into_inner();
    let ids: Vec<_> = shown.shards.iter().map(|shard| &*shard.id).collect();
    assert_eq!(ids, ["a", "b"]);
    let share: f64 = shown.shards.iter().map(|shard| shard.share).sum();
    assert!((share - 1.0).abs() < 1e-6, "{share}");
    assert!(shown.shards.iter().all(|shard| shard.error.is_empty()));
    assert!(!shown.resizing && shown.version > 0 && !shown.id.is_empty());
}

#[tokio::test]
async fn a_lock_is_taken_from_its_holder() {
    let scene = Scene::set().await;
    let mut admin = AdminServiceClient::new(scene.channel().await);
    let mut locks = scene.locks().await;
    let held = acquire(&mut locks, ask("key", 10_000, None)).await.unwrap();
    let refused = admin.force_release(force("key", "")).await.unwrap_err();
    assert_eq!(Error::from_status(&refused).input.unwrap().field, "reason");
    let taken = admin.force_release(force("key", "host is dead")).await;
    let holders = taken.unwrap().into_inner().holders;
    let tokens: Vec<_> = holders.iter().map(|holder| holder.first_token).collect();
    assert_eq!(tokens, [held.token]);
    eventually("its holder learns of it", || {
        let mut locks = locks.clone();
        let handle = held.handle.clone();
        async move {
            let renewed = renew(&mut locks, &handle).await;
            renewed.is_err_and(|status| Error::from_status(&status).reason == Reason::LockLost)
        }
    })
    .await;
    let next = acquire(&mut locks, ask("key", 1000, Some(0)))
        .await
        .unwrap();
    assert!(next.token > held.token);
    let free = admin.force_release(force("free", "to be sure")).await;
    assert!(free.unwrap().into_inner().holders.is_empty());
}
