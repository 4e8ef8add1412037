//! A shard that is gone for good: its slots are the others', its locks are put back, and it is not used again.

use ringfence_client::{Client, Guard, Namespace};
use ringfence_test_support::{Servers, eventually};
use serde_json::{Value, json};

use super::{LEASED, each, founded_with, ring, told};

/// The shard that goes, and its server.
const C: (&str, usize) = ("c", 2);

/// The heirs of the shard wait for the end of a lease.
const SHORT: [&str; 2] = ["--max-lease", "12s"];

async fn client(servers: &Servers) -> Client {
    let client = Client::builder().redis([servers.urls()[0].clone()]);
    client.build().await.unwrap()
}

/// Locks of that shard.
async fn held_there(client: &Client) -> Vec<(String, Guard)> {
    let mut guards = Vec::new();
    for index in 0..60 {
        let key = format!("key/{index}");
        let shard = client.shard_of(&Namespace::default(), &key).unwrap();
        if shard.as_str() == C.0 {
            let guard = client.lock(&key).acquire().await.unwrap();
            guards.push((key, guard));
        }
    }
    guards
}

/// Each is held still, `other` cannot have it, and gets it with a greater token once it is given back.
async fn pass_on(guards: Vec<(String, Guard)>, other: &Client) {
    for (key, guard) in guards {
        assert!(guard.is_held(), "{key} is put back");
        assert!(other.lock(&key).try_acquire().await.is_err());
        let token = guard.token();
        guard.release().await;
        let next = other.lock(&key).acquire().await.unwrap();
        assert!(next.token() > token);
    }
}

fn members(servers: &Servers) -> Vec<Value> {
    let shown = told(&ring(servers, &["show", "--json"]));
    each(&shown["shards"], "id")
}

const STEP_ONE: [&str; 3] = ["remove", "--gone", C.0];
const STEP_TWO: [&str; 5] = ["remove", "--gone", C.0, "--attest-dead", C.0];

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_is_killed_for_good_costs_no_lock() {
    let mut servers = founded_with(3, 0, &SHORT).await;
    let (holds, other) = (client(&servers).await, client(&servers).await);
    let guards = held_there(&holds).await;
    assert!(guards.len() > 5);

    for args in [&STEP_ONE[..], &STEP_TWO] {
        let refused = ring(&servers, args);
        assert_eq!(refused.code, 1, "it answers: {refused:?}");
        assert!(
            refused.stderr.contains("ringfence ring remove c"),
            "{refused:?}"
        );
    }
    servers.servers[C.1].kill();
    let shown = told(&ring(&servers, &[&STEP_ONE[..], &["--json"]].concat()));
    assert_eq!(
        (&shown["shard"], &shown["removal"]),
        (&json!("c"), &json!("supervised"))
    );
    assert_eq!(each(&shown["heirs"], "id"), ["a", "b"]);
    assert_eq!(
        (&shown["views_ms"], &shown["grace_ms"]),
        (&json!(0), &json!(12_120))
    );
    let for_people = ring(&servers, &STEP_ONE);
    assert!(
        for_people.stdout.contains(&STEP_TWO.join(" ")),
        "{for_people:?}"
    );
    assert_eq!(members(&servers), ["a", "b", "c"], "nothing is done");

    let done = ring(&servers, &STEP_TWO);
    assert_eq!(done.code, 0, "{done:?}");
    let shown = told(&ring(&servers, &["show", "--json"]));
    assert_eq!(each(&shown["shards"], "id"), ["a", "b"]);
    assert_eq!(each(&shown["failed"], "id"), ["c"]);
    assert_eq!(each(&shown["failed"], "to_open"), [0]);
    let for_people = ring(&servers, &["show"]).stdout;
    assert!(
        for_people.contains("declared dead: c, redis://"),
        "{for_people}"
    );
    pass_on(guards, &other).await;
    let again = ring(&servers, &STEP_ONE);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.contains("already declared dead"), "{again:?}");

    servers.servers[C.1].restart().await.unwrap();
    assert!(held_there(&client(&servers).await).await.is_empty());
    assert_eq!(
        ring(&servers, &STEP_TWO).code,
        0,
        "there is nothing left to do"
    );
    assert_eq!(
        servers.ask::<u64>(C.1, &["DBSIZE"]).await,
        0,
        "nobody uses it"
    );
    holds.close().await;
    other.close().await;
}

/// With leased removal, its heirs wait for engines that may still believe in it.
#[tokio::test(flavor = "multi_thread")]
async fn where_removal_is_leased_a_killed_shard_costs_no_lock_either() {
    let mut servers = founded_with(3, 0, &[SHORT.as_slice(), &LEASED].concat()).await;
    let (holds, other) = (client(&servers).await, client(&servers).await);
    let guards = held_there(&holds).await;
    assert!(guards.len() > 5);
    servers.servers[C.1].kill();
    let shown = told(&ring(&servers, &[&STEP_ONE[..], &["--json"]].concat()));
    assert_eq!(shown["removal"], json!("leased"));
    assert_eq!(
        (&shown["views_ms"], &shown["grace_ms"]),
        (&json!(4_040), &json!(12_120))
    );
    let done = ring(&servers, &STEP_TWO);
    assert_eq!(done.code, 0, "{done:?}");
    pass_on(guards, &other).await;
    holds.close().await;
    other.close().await;
}

/// What was attested was wrong: nobody reached it until now, and it was not restarted.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_declared_dead_that_returns_is_told() {
    let servers = founded_with(3, 0, &SHORT).await;
    let server = &servers.servers[C.1];
    let holds = client(&servers).await;
    assert!(!held_there(&holds).await.is_empty(), "it is armed");
    holds.close().await;
    server.stop();
    let done = ring(&servers, &STEP_TWO);
    server.cont();
    assert_eq!(done.code, 0, "{done:?}");
    let copies = async || -> Vec<String> {
        let keys: Vec<String> = servers.ask(C.1, &["KEYS", "ringfence:life:*:copy"]).await;
        let mut copies = Vec::new();
        for key in keys {
            let copy: String = servers.ask(C.1, &["GET", &key]).await;
            copies.push(copy);
        }
        copies
    };
    eventually("it is told", async || {
        let resumed = ring(&servers, &["resume"]);
        assert_eq!(resumed.code, 0, "{resumed:?}");
        copies()
            .await
            .iter()
            .any(|copy| copy.contains("\"failed\":[{\"shard\":\"c\""))
    })
    .await;
}
