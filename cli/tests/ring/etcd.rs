//! Locks on Redis, the topology on etcd; and locks on etcd.

use ringfence_client::{
    Client,
    counter::{CounterError, Terms},
    limits::LEASE_MIN,
};
use ringfence_test_support::{Servers, database::etcd::Etcd, eventually};
use serde_json::Value;

use super::told;
use crate::{binary::ringfence, serve::Coordinator};

/// One node of three is killed, then two: what a process holds, and what it asks the shards for, does not depend on it.
#[tokio::test(flavor = "multi_thread")]
async fn locks_go_on_without_the_majority_that_changes_of_the_topology_wait_for() {
    let mut etcd = Etcd::spawn(3).await;
    let servers = Servers::spawn(3).await;
    let [urls @ .., spare] = &servers.urls()[..] else {
        unreachable!("there are three")
    };
    let (url, urls) = (etcd.url(), urls.join(","));
    let ring = |args: &[&str]| ringfence(&[&["ring"], args, &["--redis", &urls]].concat());
    let init = ["init", "--servers-are-new", "--topology", &url, "--json"];
    assert_eq!(told(&ring(&init))["home"], *url);

    let client = Client::builder().redis(urls.split(','));
    let client = client.existing_topology(true).build().await.unwrap();
    let lock = client.lock("held").lease(LEASE_MIN * 4);
    let guard = lock.acquire().await.unwrap();
    etcd.kill(0);
    let quickly = ["--slots-in-flight", "4096", "--pause", "1ms", "--json"];
    let add = ring(&[&["add", spare], &quickly[..]].concat());
    assert_eq!(add.code, 0, "{add:?}");
    let added = client.topology().version;
    etcd.kill(1);

    let refused = ring(&[&["weigh", "c=2"], &quickly[..]].concat());
    assert_eq!(refused.code, 1, "{refused:?}");
    let error: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!(error["error"]["retryable"], true, "{error}");
    assert!(error.to_string().contains(&url), "{error}");
    // That took longer than a lease.
    assert!(guard.is_held());
    for key in 0..16 {
        let guard = client.lock(format!("key/{key}")).acquire().await.unwrap();
        guard.release().await;
    }

    etcd.restart(&[0, 1]).await;
    let done = ring(&[&["weigh", "c=2"], &quickly[..]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    eventually("the client sees the change", async || {
        client.topology().version > added
    })
    .await;
    assert!(guard.is_held());
}

/// Every way to a counter is refused at once, with the shard that keeps none.
#[tokio::test(flavor = "multi_thread")]
async fn a_topology_with_a_shard_on_etcd_has_no_counters_and_says_why() {
    let etcd = Etcd::spawn(1).await;
    let servers = Servers::spawn(1).await;
    let urls = [servers.urls()[0].clone(), etcd.url()];
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
    let mut on_etcd = shards.filter(|shard| shard["address"] == *etcd.url());
    let shard = on_etcd.next().unwrap()["id"].as_str().unwrap();
    let reason = format!("shard {shard}, {}, keeps locks", etcd.url());

    for command in [
        &["counter", "create", "coins"][..],
        &["counter", "balance", "coins"],
    ] {
        let refused = ringfence(&[command, &["--redis", &both]].concat());
        assert_eq!(refused.code, 69, "{refused:?}");
        assert!(refused.stderr.contains(&reason), "{refused:?}");
    }
    let direct = Client::builder().servers(both.split(','));
    let direct = direct.existing_topology(true).build().await.unwrap();
    let coordinator = Coordinator::start_at(&urls);
    let by_service = Client::builder().coordinators(&*coordinator.url);
    let by_service = by_service.build().await.unwrap();
    for client in [&direct, &by_service] {
        let created = client.counters().create("coins", Terms::default(), 4).await;
        let refused: CounterError = created.unwrap_err();
        assert!(!refused.is_retryable(), "{refused:?}");
        assert!(refused.to_string().contains(&reason), "{refused}");
    }
    let segmented = direct.segmented_lock("coins").create(4).await.unwrap_err();
    assert!(!segmented.is_retryable(), "{segmented:?}");
    assert!(segmented.to_string().contains(&reason), "{segmented}");
}
