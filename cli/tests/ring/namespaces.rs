//! `ringfence ring init --namespace`, `ring namespace add | list`, and zones.

use std::time::Duration;

use ringfence_client::{Client, ReleaseAnswer};
use serde_json::json;

use super::{each, founded, founded_with, ring, told};
use crate::binary::ringfence;

#[tokio::test]
async fn a_founded_namespace_is_listed_and_its_locks_are_granted() {
    let more = [
        "--namespace",
        "ledger=3",
        "--namespace",
        "coins=1",
        "--zone",
        "north,south,east",
    ];
    let servers = founded_with(3, 0, &more).await;
    let listed = told(&ring(&servers, &["namespace", "list", "--json"]));
    assert_eq!(listed["namespaces"], json!({"coins": 1, "ledger": 3}));
    assert_eq!(listed["declaring"], json!({}));
    let shown = told(&ring(&servers, &["show", "--json"]));
    assert_eq!(shown["namespaces"], json!({"coins": 1, "ledger": 3}));
    assert_eq!(each(&shown["shards"], "zone"), ["north", "south", "east"]);
    assert_eq!(each(&shown["shards"], "slots"), [16_384; 3]);

    let urls = servers.urls();
    let lock = |namespace| {
        ringfence(&[
            "lock",
            "--redis",
            &urls[0],
            "--namespace",
            namespace,
            "key",
            "--",
            "true",
        ])
    };
    for namespace in ["ledger", "coins"] {
        let granted = lock(namespace);
        assert_eq!(granted.code, 0, "{granted:?}");
    }
}

#[tokio::test]
async fn each_replica_is_shown_and_whether_a_majority_is_ready() {
    let mut servers = founded_with(3, 0, &["--namespace", "ledger=3"]).await;
    let urls = servers.urls();
    let client = Client::builder().redis(&urls).build().await.unwrap();
    let lock = client.lock("key").namespace("ledger");
    let guard = lock.acquire().await.unwrap();
    let show = |more: &[&str]| {
        let command = [
            "locks",
            "show",
            "--redis",
            &urls.join(","),
            "--namespace",
            "ledger",
            "key",
        ];
        ringfence(&[&command, more].concat())
    };
    let shown = told(&show(&["--json"]));
    let holders = each(&shown["replicas"], "holder");
    assert_eq!(holders.len(), 3);
    assert!(
        holders.iter().all(|holder| holder["label"] != json!(null)),
        "{shown}"
    );
    let ready = |ready, stuck| json!([{"namespace": "ledger", "replicas": 3, "ready": ready, "stuck": stuck}]);
    assert_eq!(
        told(&ring(&servers, &["show", "--json"]))["replicas"],
        ready(3, 0)
    );

    servers.servers[2].kill();
    assert_eq!(
        told(&ring(&servers, &["show", "--json"]))["replicas"],
        ready(2, 0)
    );
    let text = ring(&servers, &["show"]).stdout;
    assert!(
        text.contains("namespace ledger: 2 of 3 replicas are ready"),
        "{text}"
    );
    let text = show(&[]).stdout;
    assert!(text.contains("at shard c: not known: "), "{text}");
    assert!(text.contains("at shard a: held by "), "{text}");
    assert_eq!(guard.release().await, ReleaseAnswer::Held);
    assert!(show(&[]).stdout.contains("at shard a: free"));

    servers.servers[1].kill();
    assert_eq!(
        told(&ring(&servers, &["show", "--json"]))["replicas"],
        ready(1, 16_384)
    );
    let text = ring(&servers, &["show"]).stdout;
    let stuck = "namespace ledger: no majority of the 3 replicas is ready in 16,384 slots: their locks are not granted";
    assert!(text.contains(stuck), "{text}");
}

/// The client renews while the command runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: a resize of all slots three times over"]
async fn a_namespace_is_declared_on_a_ring_in_use_and_its_locks_have_replicas() {
    let servers = founded(3, 1).await;
    let client = Client::builder().redis(servers.urls()[..1].to_vec());
    let client = client.build().await.unwrap();
    let guard = client
        .lock("key")
        .namespace("ledger")
        .acquire()
        .await
        .unwrap();
    let nothing = told(&ring(&servers, &["namespace", "list", "--json"]));
    let refused = ring(&servers, &["namespace", "add", "ledger=3"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("namespace ledger is in use"),
        "{refused:?}"
    );
    assert_eq!(
        told(&ring(&servers, &["namespace", "list", "--json"])),
        nothing
    );
    assert!(guard.is_held());
    guard.release().await;

    let added = ring(&servers, &["namespace", "add", "ledger=3"]);
    assert_eq!(added.code, 0, "{added:?}");
    let shown = told(&ring(&servers, &["show", "--json"]));
    assert_eq!(each(&shown["shards"], "slots"), [16_384; 3]);
    assert_eq!(shown["resize"], json!(null));
    let listed = told(&ring(&servers, &["namespace", "list", "--json"]));
    assert_eq!(
        listed,
        json!({"namespaces": {"ledger": 3}, "declaring": {}})
    );
    let again = ring(&servers, &["namespace", "add", "ledger=3"]).code;
    assert_eq!(again, 0);
    let other = ring(&servers, &["namespace", "add", "ledger=1"]);
    assert_eq!(other.code, 2, "{other:?}");
    assert!(
        other.stderr.contains("has 3 replicas, for good"),
        "{other:?}"
    );
    let many = ring(&servers, &["namespace", "add", "coins=5"]);
    assert_eq!(many.code, 2, "{many:?}");
    let reason = "shards is 3, must be at least the number of replicas, 5";
    assert!(many.stderr.contains(reason), "{many:?}");

    let lock = client.lock("key").namespace("ledger");
    let guard = lock.wait(Duration::from_secs(120)).acquire().await.unwrap();
    let mut locks = client.locks(Some("ledger")).unwrap();
    let mut found = 0;
    while let Some(page) = locks.next().await {
        found += page.locks.unwrap().len();
    }
    assert_eq!(found, 3);
    guard.release().await;
    client.close().await;

    let added = ring(
        &servers,
        &[
            "add",
            &servers.urls()[3],
            "--zone",
            "west",
            "--servers-are-new",
        ],
    );
    assert_eq!(added.code, 0, "{added:?}");
    let shown = told(&ring(&servers, &["show", "--json"]));
    assert_eq!(each(&shown["shards"], "slots"), [12_288; 4]);
    assert_eq!(shown["shards"][3]["zone"], "west");
}

#[tokio::test]
async fn invalid_namespaces_and_zones_are_refused_before_anything_is_founded() {
    let servers = ringfence_test_support::Servers::spawn(2).await;
    let named = servers.urls().join(",");
    for (more, reason) in [
        (
            ["--namespace", "ledger=2"],
            "replicas is 2, must be 1, 3 or 5",
        ),
        (
            ["--namespace", "Ledger=3"],
            "namespace \"Ledger\": 1 to 64 of a-z",
        ),
        (
            ["--namespace", "ledger=3"],
            "shards is 2, must be at least the number of replicas, 3",
        ),
        (
            ["--zone", "north"],
            "--zone names 1 zones, must be none, or as many as servers, 2",
        ),
        (
            ["--zone", "North,south"],
            "zone \"North\" must be 1 to 32 of a-z",
        ),
    ] {
        let refused = ringfence(&[&["ring", "init", "--redis", &named], &more[..]].concat());
        assert_ne!(refused.code, 0, "{refused:?}");
        assert!(refused.stderr.contains(reason), "{refused:?}");
        assert_eq!(servers.ask::<u64>(0, &["DBSIZE"]).await, 0, "{more:?}");
    }
}
