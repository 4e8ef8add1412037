//! `ringfence uninstall`, on real servers.

use std::{collections::HashMap, time::Duration};

use crate::binary::{Output, ringfence};
use ringfence_test_support::Servers;
use serde_json::Value;

/// Libraries of former releases, one per script, and one of a release with another hash.
const FORMER: [&str; 3] = [
    "ringfence_acquire_0123456789abcdef",
    "ringfence_copy_in_fedcba9876543210",
    "ringfence_00112233445566aa",
];

/// Libraries of other programs.
const OTHERS: [&str; 2] = ["ringfence_dashboard", "orders"];

fn uninstall(servers: &Servers, more: &[&str]) -> Output {
    let urls = servers.urls().join(",");
    ringfence(&[&["uninstall", "--functions", "--redis", &urls], more].concat())
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

async fn load(servers: &Servers, name: &str) {
    let code =
        format!("#!lua name={name}\nredis.register_function('{name}', function() return 1 end)");
    let load = ["FUNCTION", "LOAD", &code];
    assert_eq!(servers.ask::<String>(0, &load).await, name);
}

/// The names of all libraries of the first server.
async fn libraries(servers: &Servers) -> Vec<String> {
    let listed: Vec<HashMap<String, redis::Value>> = servers.ask(0, &["FUNCTION", "LIST"]).await;
    let name = |mut library: HashMap<String, redis::Value>| {
        redis::from_redis_value(library.remove("library_name").unwrap()).unwrap()
    };
    let mut names: Vec<String> = listed.into_iter().map(name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn libraries_of_other_releases_go_and_locks_stay() {
    let servers = Servers::spawn(1).await;
    let client = servers.builder().build().await.unwrap();
    let guard = client.lock("held").acquire().await.unwrap();
    let [current] = &libraries(&servers).await[..] else {
        panic!("one library per release: {:?}", libraries(&servers).await)
    };
    let current = current.as_str();
    for name in FORMER.iter().chain(&OTHERS) {
        load(&servers, name).await;
    }
    let before = libraries(&servers).await;

    let planned = json(&uninstall(&servers, &["--dry-run", "--json"]));
    assert_eq!(libraries(&servers).await, before, "a dry run");
    let done = json(&uninstall(&servers, &["--json"]));
    assert_eq!(planned["libraries"], done["libraries"]);
    for name in FORMER {
        let listed = done["libraries"].as_array().unwrap();
        let found = listed.iter().find(|found| found["library"] == name);
        assert_eq!(found.unwrap()["deleted"], true, "{name}");
    }
    let mut kept = vec![current, OTHERS[0], OTHERS[1]];
    kept.sort_unstable();
    assert_eq!(libraries(&servers).await, kept);

    let lock = client.lock("other").wait(Duration::from_secs(120));
    lock.acquire().await.unwrap().release().await;
    assert!(guard.is_held());

    let done = uninstall(&servers, &["--all"]);
    assert_eq!((done.code, &*done.stderr), (0, ""), "{done:?}");
    kept.retain(|name| *name != current);
    assert_eq!(libraries(&servers).await, kept);
    lock.acquire().await.unwrap().release().await;
    assert_eq!(
        libraries(&servers).await.len(),
        kept.len() + 1,
        "loaded again"
    );
    assert!(guard.is_held());
    guard.release().await;
    client.close().await;
}

#[tokio::test]
async fn the_library_of_this_release_stays_unless_all_is_given() {
    let servers = Servers::spawn(1).await;
    let urls = servers.urls();
    let init = ringfence(&["ring", "init", "--servers-are-new", "--redis", &urls[0]]);
    assert_eq!(init.code, 0, "{init:?}");
    let before = libraries(&servers).await;
    assert_eq!(before.len(), 1, "{before:?}");
    let shown = uninstall(&servers, &[]);
    assert_eq!(shown.code, 0, "{shown:?}");
    for part in [&before[0], "this one", "kept"] {
        assert!(shown.stdout.contains(part), "{shown:?}");
    }
    assert_eq!(libraries(&servers).await, before);
    assert_eq!(uninstall(&servers, &["--all"]).code, 0);
    assert_eq!(libraries(&servers).await, Vec::<String>::new());
    let nothing = uninstall(&servers, &[]);
    assert_eq!(
        (nothing.code, &*nothing.stdout),
        (0, "no library of Ringfence is on these servers\n")
    );
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_1_and_the_others_are_done() {
    let mut servers = Servers::spawn(2).await;
    load(&servers, FORMER[0]).await;
    servers.servers[1].kill();
    let done = uninstall(&servers, &[]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.stdout.contains(FORMER[0]), "{done:?}");
    assert!(done.stderr.contains("Connection refused"), "{done:?}");
    assert_eq!(libraries(&servers).await, Vec::<String>::new());
}

#[test]
fn a_command_line_that_names_nothing_to_delete_is_2() {
    for args in [
        &["uninstall"][..],
        &["uninstall", "--redis", "redis://127.0.0.1:1"],
        &["uninstall", "--functions"],
    ] {
        let refused = ringfence(args);
        assert_eq!((refused.code, &*refused.stdout), (2, ""), "{refused:?}");
    }
}
