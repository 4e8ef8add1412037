//! A shard's server listens at another port, as one that got another host does.

use ringfence_client::{Client, Namespace};
use ringfence_test_support::{Servers, database::free_port, eventually};
use serde_json::json;

use super::{each, founded, ring, told};
use crate::binary::ringfence;

/// Ends every connection of the server at `index` and has it listen elsewhere. Returns its new URL.
async fn move_away(servers: &Servers, index: usize) -> String {
    let port = free_port().to_string();
    let listen = ["CONFIG", "SET", "port", &port];
    servers.ask::<()>(index, &listen).await;
    let url = format!("redis://127.0.0.1:{port}/0");
    let client = redis::Client::open(&*url).unwrap();
    let mut raw = client.get_multiplexed_async_connection().await.unwrap();
    let mut kill = redis::cmd("CLIENT");
    kill.arg(&["KILL", "SKIPME", "yes"]);
    kill.exec_async(&mut raw).await.unwrap();
    url
}

/// A key of shard `id`.
fn key_of(client: &Client, id: &str) -> String {
    let mut keys = (0..).map(|index| format!("key/{index}"));
    let is_there = |key: &String| {
        let shard = client.shard_of(&Namespace::default(), key).unwrap();
        shard.as_str() == id
    };
    keys.find(is_there).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_gets_another_address_and_its_locks_stay_held() {
    let servers = founded(2, 0).await;
    let home = servers.urls()[0].clone();
    let client = Client::builder().redis([home.clone()]);
    let client = client.build().await.unwrap();
    let (of_a, of_b) = (key_of(&client, "a"), key_of(&client, "b"));
    let guards = [
        client.lock(&of_a).acquire().await.unwrap(),
        client.lock(&of_b).acquire().await.unwrap(),
    ];

    // A shard, then the one that has the record. Each is known by the other.
    let mut known = home;
    for (index, id) in [(1, "b"), (0, "a")] {
        let url = move_away(&servers, index).await;
        if index == 1 {
            let shown = ringfence(&["ring", "show", "--redis", &known]);
            assert!(shown.stdout.contains("readdress b"), "{shown:?}");
        }
        let readdressed = ringfence(&["ring", "readdress", id, &url, "--redis", &known]);
        assert_eq!(readdressed.code, 0, "{readdressed:?}");
        let said = &readdressed.stdout;
        assert!(said.starts_with("readdressed: "), "{readdressed:?}");
        let shown = told(&ringfence(&["ring", "show", "--json", "--redis", &known]));
        assert_eq!(each(&shown["shards"], "address")[index], *url, "{shown}");
        let ready = ["grace_left_ms", "reachable"].map(|part| each(&shown["shards"], part));
        assert_eq!(
            ready,
            [[json!(0), json!(0)], [json!(true), json!(true)]],
            "{shown}"
        );
        known = url;
    }
    for (guard, key) in guards.into_iter().zip([of_a, of_b]) {
        eventually("this process goes by the new addresses", async || {
            let seen = client.shards().await;
            seen.values().all(|status| status.error.is_none())
        })
        .await;
        assert!(guard.is_held());
        let token = guard.token();
        guard.release().await;
        assert!(client.lock(&key).acquire().await.unwrap().token() > token);
    }
}

#[tokio::test]
async fn another_server_is_not_let_in_by_the_way() {
    let servers = founded(2, 1).await;
    let [home, b, stranger] = [0, 1, 2].map(|index| servers.urls()[index].clone());
    let before = told(&ring(&servers, &["show", "--json"]));
    for (args, said) in [
        (["readdress", "c", &stranger], "has no shard c; it has a, b"),
        (
            ["readdress", "b", &stranger],
            "it is another server, or was restarted",
        ),
        (["readdress", "b", &home], "is the address of shard a"),
        (["readdress", "a", &b], "is the address of shard b"),
    ] {
        let refused = ring(&servers, &args);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    let gone = format!("redis://127.0.0.1:{}", free_port());
    let refused = ring(&servers, &["readdress", "b", &gone]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(told(&ring(&servers, &["show", "--json"])), before);
}
