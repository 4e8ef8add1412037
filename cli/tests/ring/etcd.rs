//! Locks on Redis, the topology on etcd.

use ringfence_client::{Client, limits::LEASE_MIN};
use ringfence_test_support::{Servers, database::etcd::Etcd, eventually};
use serde_json::Value;

use super::told;
use crate::binary::ringfence;

/// One node of three is killed, then two: what a process holds, and what it asks the shards for, does not depend on it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: elections of a cluster"]
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
