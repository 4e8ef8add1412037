//! Redis servers that are killed while counters move, and come back with what they have on their disks.

use ringfence_coordinator::{
    mover::Phase,
    spawn::{RedisServer, RedisServerBuilder},
    topology::{TopologyStore, shard_id},
};
use ringfence_segment_lock::Durability;
use tokio::sync::watch;

use super::{
    bank::Bank,
    lockers::engine,
    servers::{Stage, ring},
    stage::{at, moved},
};

/// Every write is on its disk before it is answered.
fn synced() -> RedisServerBuilder {
    RedisServer::builder()
        .set("appendonly", "yes")
        .set("appendfsync", "always")
}

/// In turn it is the one that slots go to, and the one that they come from.
#[tokio::test]
#[ignore = "long: every phase of a move"]
async fn data_on_disk_outlasts_a_server_that_is_killed_in_any_phase() {
    let mut stage = Stage::of(synced).await;
    // It arms the shards.
    let _engine = engine(&ring(&stage.store), 1).await;
    let bank = Bank::with(&ring(&stage.store), Durability::Disk).await;
    for (phase, grow) in [
        (Phase::Copied, true),
        (Phase::Copied, false),
        (Phase::Arrived, true),
        (Phase::Dropped, false),
        (Phase::Dropped, true),
        (Phase::Admitted, false),
    ] {
        let before = stage.begin(grow).await;
        let (reach, mut reached) = watch::channel(());
        let (observer, _) = at(phase, 2, move || reach.send_replace(()));
        let store = stage.store.clone();
        let mut server = stage.servers.pop().unwrap();
        let crash = async {
            reached.changed().await.unwrap();
            server.kill();
            server.restart().await.unwrap();
        };
        tokio::join!(stage.resize_with(observer), crash);
        stage.servers.push(server);
        let after = store.load().await.unwrap();
        assert_eq!(moved(&before, &after), 64, "{phase:?}");
    }
    bank.close().await;
}

/// A server that lost its last writes. Its counters move before their next request.
#[tokio::test]
#[ignore = "long: a server crashes again and again"]
async fn a_segment_in_doubt_stays_in_doubt_where_it_goes() {
    let mut stage = Stage::new().await;
    stage.begin(true).await;
    stage.resize().await;
    let bank = Bank::open(&ring(&stage.store)).await;
    let accounts = bank.rest().await;
    let before = accounts.losses().await;
    assert!(before.iter().all(|losses| *losses == 0));
    let client = redis::Client::open(stage.servers[3].url()).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    redis::cmd("SAVE").exec_async(&mut raw).await.unwrap();
    let there = accounts.at(&shard_id(3)).await;
    assert!(there.contains(&true) && there.contains(&false));
    stage.servers[3].kill();
    stage.servers[3].restart().await.unwrap();
    stage.begin(false).await;
    stage.resize().await;
    let after = accounts.losses().await;
    let expected: Vec<_> = there.into_iter().map(u64::from).collect();
    assert_eq!(after, expected);
}
