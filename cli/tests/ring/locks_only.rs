//! Shards that keep locks and no counters.

use ringfence_client::{
    Client,
    counter::{CounterError, Terms},
};
use ringfence_test_support::{
    Servers,
    database::{etcd::Etcd, zookeeper::Zookeeper},
};

use super::{each, founded, ring, told};
use crate::{binary::ringfence, counter::counter_by, serve::Coordinator};

#[tokio::test]
async fn a_topology_with_counters_gets_no_shard_that_keeps_none() {
    let redis = founded(1, 0).await;
    let first = &redis.urls()[0];
    let created = counter_by(["--redis", first], &["create", "coins"]);
    assert_eq!(created.code, 0, "{created:?}");
    // Nothing is asked of them for that.
    for newcomer in [
        "postgres://127.0.0.1:1/locks",
        "mysql://127.0.0.1:1/locks",
        "etcd://127.0.0.1:1",
        "zookeeper://127.0.0.1:1",
    ] {
        for command in [&["plan", "--add"][..], &["add", "--dry-run"], &["add"]] {
            let refused = ring(&redis, &[command, &[newcomer]].concat());
            assert_eq!(refused.code, 2, "{refused:?}");
            let reason = format!("{newcomer} keeps locks and no counters, and shard a");
            assert!(refused.stderr.contains(&reason), "{refused:?}");
        }
    }
    let shown = told(&ring(&redis, &["show", "--json"]));
    assert_eq!(each(&shown["shards"], "id"), ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topology_with_a_shard_on_etcd_has_no_counters_and_says_why() {
    let etcd = Etcd::spawn(1).await;
    has_no_counters_beside_redis_and_says_why(&etcd.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topology_with_a_shard_on_zookeeper_has_no_counters_and_says_why() {
    let zookeeper = Zookeeper::spawn(1).await;
    has_no_counters_beside_redis_and_says_why(&zookeeper.url()).await;
}

/// Every way to a counter is refused at once, with the shard that keeps none.
async fn has_no_counters_beside_redis_and_says_why(url: &str) {
    let servers = Servers::spawn(1).await;
    let urls = [servers.urls()[0].clone(), url.to_owned()];
    let both = urls.join(",");
    let init = ringfence(&[
        "ring",
        "init",
        "--servers-are-new",
        "--json",
        "--redis",
        &both,
    ]);
    let shards = ringfence(&["ring", "show", "--json", "--redis", &both]);
    assert_eq!((init.code, shards.code), (0, 0), "{init:?}, {shards:?}");
    let shown = told(&shards)["shards"].clone();
    let shards = shown.as_array().unwrap().iter();
    let mut its = shards.filter(|shard| shard["address"] == *url);
    let shard = its.next().unwrap()["id"].as_str().unwrap();
    let reason = format!("shard {shard}, {url}, keeps locks");

    for command in [&["create", "coins"][..], &["balance", "coins"]] {
        let refused = counter_by(["--redis", &both], command);
        assert_eq!(refused.code, 69, "{refused:?}");
        assert!(refused.stderr.contains(&reason), "{refused:?}");
    }
    let direct = Client::builder().servers(both.split(','));
    let direct = direct.existing_topology(true).build().await.unwrap();
    let coordinator = Coordinator::start_at(&urls);
    let by_service = Client::builder().coordinators(&*coordinator.url);
    let by_service = by_service.build().await.unwrap();
    for client in [&direct, &by_service] {
        let created = client
            .counters()
            .create("coins", Terms::in_memory(), 4)
            .await;
        let refused: CounterError = created.unwrap_err();
        assert!(!refused.is_retryable(), "{refused:?}");
        assert!(refused.to_string().contains(&reason), "{refused}");
    }
    let segmented = direct.segmented_lock("coins").create(4).await.unwrap_err();
    assert!(!segmented.is_retryable(), "{segmented:?}");
    assert!(segmented.to_string().contains(&reason), "{segmented}");
}
