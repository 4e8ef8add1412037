//! `ringfence locks`, on real servers.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use crate::binary::{self, Output, ringfence};
use ringfence_client::{Client, Guard, Namespace};
use ringfence_test_support::{Servers, eventually};
use serde_json::Value;
use tokio::task::JoinSet;

/// More than are listed in a page, or in two.
const MANY: usize = 600;

/// `count` new shards with their topology at the first one.
async fn founded(count: usize) -> Servers {
    founded_with(count, &[]).await
}

async fn founded_with(count: usize, more: &[&str]) -> Servers {
    let servers = Servers::spawn(count).await;
    let urls = servers.urls();
    let mut args = vec!["ring", "init", "--servers-are-new", "--topology", &urls[0]];
    let named = urls.join(",");
    args.extend(["--redis", &named]);
    args.extend(more);
    let founded = ringfence(&args);
    assert_eq!(founded.code, 0, "{founded:?}");
    servers
}

/// `ringfence locks`; the first server is enough to find the others.
fn locks(servers: &Servers, args: &[&str]) -> Output {
    let url = &servers.urls()[0];
    ringfence(&[&["locks"], args, &["--redis", url]].concat())
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

async fn called(servers: &Servers, label: &str) -> Client {
    servers.builder().label(label).build().await.unwrap()
}

async fn take(client: &Client, namespace: &str, key: &[u8]) -> Guard {
    let lock = client.lock(key).namespace(namespace);
    lock.acquire().await.unwrap()
}

fn hex(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One part of each of the locks listed.
fn column(listed: &Value, part: &str) -> Vec<String> {
    let locks = listed["locks"].as_array().unwrap();
    let cell = |lock: &Value| lock[part].as_str().unwrap().to_owned();
    locks.iter().map(cell).collect()
}

#[tokio::test]
async fn show_tells_the_holder_and_the_waiters_in_order() {
    let servers = founded(2).await;
    let holder = called(&servers, "holder").await;
    let guard = take(&holder, "coins", b"order/42").await;
    let mut waiting = JoinSet::new();
    // Not in the order of their names.
    for (label, before) in [("second", 0), ("first", 1)] {
        let client = called(&servers, label).await;
        waiting.spawn(async move { take(&client, "coins", b"order/42").await });
        eventually("it waits", || async {
            let lock = holder.lock("order/42").namespace("coins");
            lock.inspect().await.unwrap().waiters.len() == before + 1
        })
        .await;
    }
    let args = ["show", "order/42", "--namespace", "coins"];
    let told = json(&locks(&servers, &[&args[..], &["--json"]].concat()));
    let shown = locks(&servers, &args);

    let token = guard.token().to_string();
    assert_eq!(told["holder"]["label"], "holder");
    assert_eq!(told["holder"]["token"], *token);
    let left_ms = told["holder"]["remaining_ms"].as_u64().unwrap();
    assert!((1..=30_000).contains(&left_ms), "{told}");
    let labels: Vec<_> = told["waiters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|waiter| &waiter["label"])
        .collect();
    assert_eq!(labels, ["second", "first"], "{told}");
    assert_eq!(told["waiters"][0]["callers"], 1, "{told}");
    assert!(
        told["holder"]["held_for_ms"].as_u64().unwrap() > 0,
        "{told}"
    );
    let shard = holder.shard_of(&Namespace::new("coins").unwrap(), "order/42");
    assert_eq!(told["shard"], shard.unwrap().to_string());

    assert_eq!((shown.code, &*shown.stderr), (0, ""), "{shown:?}");
    let places = ["held by holder", &token, "1  second", "2  first"].map(|part| {
        let place = shown.stdout.find(part);
        place.unwrap_or_else(|| panic!("{part}: {shown:?}"))
    });
    assert!(places.is_sorted(), "{shown:?}");

    let elsewhere = json(&locks(&servers, &["show", "order/42", "--json"]));
    assert_eq!(elsewhere["holder"], Value::Null, "another namespace");
    guard.release().await;
    while let Some(guard) = waiting.join_next().await {
        guard.unwrap().release().await;
    }
}

#[tokio::test]
async fn a_free_lock_is_shown_and_no_failure() {
    let servers = founded(1).await;
    let shown = locks(&servers, &["show", "key"]);
    assert_eq!((shown.code, &*shown.stderr), (0, ""), "{shown:?}");
    assert!(shown.stdout.ends_with("free\nnobody waits\n"), "{shown:?}");
    let told = json(&locks(&servers, &["show", "key", "--json"]));
    assert_eq!(told["holder"], Value::Null);
    assert_eq!(told["waiters"], Value::Array(Vec::new()));
    let listed = locks(&servers, &["list"]);
    assert_eq!((listed.code, &*listed.stdout), (0, "no lock is held\n"));
}

#[tokio::test]
async fn keys_are_any_bytes_and_none_is_lost_or_reaches_a_terminal() {
    let servers = founded(1).await;
    let client = called(&servers, "holder").await;
    let keys: [&[u8]; 6] = [
        b"\x1b[2J\r\n\xff'\"\\",
        b"\0",
        b"*",
        b"-x",
        "gr\u{f6}\u{df}e 'it'".as_bytes(),
        "\u{f6}\u{202e}".as_bytes(),
    ];
    let mut guards = Vec::new();
    for key in keys {
        guards.push(take(&client, "default", key).await);
    }
    let mut sorted = keys;
    sorted.sort();
    let listed = json(&locks(&servers, &["list", "--json"]));
    assert_eq!(column(&listed, "key_hex"), sorted.map(hex));
    for (guard, key) in guards.iter().zip(keys) {
        let args = ["show", "--hex", &hex(key), "--json"];
        let told = json(&locks(&servers, &args));
        assert_eq!(told["holder"]["token"], guard.token().to_string());
        assert_eq!(told["key"], String::from_utf8_lossy(key).into_owned());
        let shown = locks(&servers, &args[..3]).stdout;
        let (printed, _) = shown.split_once(", namespace default").unwrap();
        let listed = locks(&servers, &["list"]).stdout;
        assert!(listed.contains(printed), "{printed}: {listed}");
        for shown in [&shown, &listed] {
            let harms = |char: char| (char.is_control() && char != '\n') || char == '\u{202e}';
            assert!(!shown.contains(harms), "{shown:?}");
        }
        // What is printed can be pasted.
        let url = &servers.urls()[0];
        let pasted = format!("\"$RINGFENCE\" locks show --json --redis {url} {printed}");
        let mut shell = std::process::Command::new("sh");
        let program = binary::command(&[]).get_program().to_owned();
        let pasted = binary::output(shell.args(["-c", &pasted]).env("RINGFENCE", program));
        assert_eq!(json(&pasted)["key_hex"], hex(key), "{printed}");
    }
    // As an argument, where it can be one.
    let mut command = binary::command(&["locks", "show", "--json", "--redis", &servers.urls()[0]]);
    let shown = binary::output(command.arg("--").arg(OsStr::from_bytes(keys[0])));
    assert_eq!(json(&shown)["key_hex"], hex(keys[0]));
}

#[tokio::test]
async fn a_list_is_sorted_and_counts_the_rest() {
    let servers = founded(2).await;
    let client = called(&servers, "holder").await;
    let mut taking = JoinSet::new();
    for index in 0..MANY {
        let client = client.clone();
        let key = format!("order/{index:03}");
        taking.spawn(async move { take(&client, "default", key.as_bytes()).await });
    }
    let mut guards = taking.join_all().await;
    for (namespace, key) in [("a", "z"), ("b", "y"), ("b", "x")] {
        guards.push(take(&client, namespace, key.as_bytes()).await);
    }
    let listed = json(&locks(&servers, &["list", "--json"]));
    assert_eq!(listed["left_off"], 0);
    let orders = (0..MANY).map(|index| format!("order/{index:03}"));
    let all: Vec<_> = ["z", "x", "y"]
        .map(String::from)
        .into_iter()
        .chain(orders)
        .collect();
    assert_eq!(column(&listed, "key"), all);
    let mut shards = column(&listed, "shard");
    shards.sort();
    shards.dedup();
    assert_eq!(shards, ["a", "b"]);

    let few = json(&locks(&servers, &["list", "--json", "--limit", "4"]));
    assert_eq!(column(&few, "namespace"), ["a", "b", "b", "default"]);
    assert_eq!(column(&few, "key"), all[..4]);
    assert_eq!(few["left_off"], MANY as u64 - 1);
    let shown = locks(&servers, &["list", "--limit", "4"]);
    assert!(shown.stdout.contains("and 599 more"), "{shown:?}");
    assert_eq!(shown.stdout.lines().count(), 1 + 4 + 2, "{shown:?}");

    let of_one = json(&locks(&servers, &["list", "--json", "--namespace", "b"]));
    assert_eq!(column(&of_one, "key"), ["x", "y"]);
}

#[tokio::test]
async fn a_list_tells_how_many_wait() {
    let servers = founded(1).await;
    let (holder, waiter) = (
        called(&servers, "holder").await,
        called(&servers, "waiter").await,
    );
    let guard = take(&holder, "default", b"key").await;
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { take(&waiter, "default", b"key").await });
    eventually("it waits", || async {
        let listed = json(&locks(&servers, &["list", "--json"]));
        listed["locks"][0]["waiting"] == 1
    })
    .await;
    let shown = locks(&servers, &["list"]).stdout;
    let [headings, row] = shown.lines().collect::<Vec<_>>()[..] else {
        panic!("{shown}")
    };
    assert!(
        headings.ends_with("waiting") && row.ends_with(" 1"),
        "{shown}"
    );
    assert!(
        row.contains("holder") && row.contains(&guard.token().to_string()),
        "{shown}"
    );
    guard.release().await;
    let guard = waiting.join_next().await.unwrap().unwrap();
    guard.release().await;
}

#[tokio::test]
async fn a_shard_that_is_gone_is_said_and_the_others_are_listed() {
    without_a_shard(founded(2).await).await;
}

#[tokio::test]
async fn a_shard_that_is_gone_is_said_where_removal_is_leased() {
    let leased = ["--removal", "leased", "--view-lease", "4s"];
    without_a_shard(founded_with(2, &leased).await).await;
}

async fn without_a_shard(mut servers: Servers) {
    let client = called(&servers, "holder").await;
    let mut held = [Vec::new(), Vec::new()];
    let mut guards = Vec::new();
    for key in (0..20).map(|index| format!("key/{index:02}")) {
        let shard = client.shard_of(&Namespace::default(), &key).unwrap();
        guards.push(take(&client, "default", key.as_bytes()).await);
        held[usize::from(shard.to_string() == "b")].push(key);
    }
    let [here, gone] = &held;
    assert!(!here.is_empty() && !gone.is_empty(), "{held:?}");
    servers.servers[1].kill();

    let output = locks(&servers, &["list", "--json"]);
    assert_eq!(output.code, 1, "{output:?}");
    let listed = json(&output);
    assert_eq!(column(&listed, "key"), *here);
    assert_eq!(listed["unreachable"][0]["shard"], "b");
    let why = listed["unreachable"][0]["error"].as_str().unwrap();
    assert!(why.contains("Connection refused"), "{why}");
    let shown = locks(&servers, &["list"]);
    assert_eq!(shown.code, 1);
    assert!(shown.stdout.contains(&here[0]), "{shown:?}");
    let told: Vec<_> = shown.stderr.lines().collect();
    assert_eq!(told.len(), 1, "{shown:?}");
    assert!(
        told[0].starts_with("ringfence: locks of shard b are missing: "),
        "{told:?}"
    );

    let shown = locks(&servers, &["show", &gone[0]]);
    assert_eq!((shown.code, &*shown.stdout), (1, ""), "{shown:?}");
    assert!(shown.stderr.contains("Connection refused"), "{shown:?}");
    assert_eq!(locks(&servers, &["show", &here[0]]).code, 0);
}

#[tokio::test]
async fn looking_founds_nothing() {
    let servers = Servers::spawn(1).await;
    for args in [&["show", "key"][..], &["list"]] {
        let shown = locks(&servers, args);
        assert_eq!((shown.code, &*shown.stdout), (1, ""), "{shown:?}");
        assert!(
            shown
                .stderr
                .contains("these servers have no topology: they are new, or were emptied"),
            "{shown:?}"
        );
    }
    assert_eq!(servers.ask::<u64>(0, &["DBSIZE"]).await, 0);
}

#[tokio::test]
async fn servers_may_come_from_a_file_or_the_environment() {
    let servers = founded(1).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("servers");
    std::fs::write(&file, servers.urls().join("\n")).unwrap();
    let shown = ringfence(&["locks", "list", "--redis-file", file.to_str().unwrap()]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let env = [("RINGFENCE_REDIS", &*servers.urls()[0])];
    let shown = binary::ringfence_with(&["locks", "show", "key"], &env);
    assert_eq!(shown.code, 0, "{shown:?}");
}

#[test]
fn unreachable_servers_are_1_and_an_invalid_command_line_is_2() {
    let url = "redis://coin:s3cret@127.0.0.1:1";
    let long = "x".repeat(513);
    for (code, args) in [
        (1, &["show", "key", "--redis", url][..]),
        (1, &["list", "--redis", url]),
        (2, &[]),
        (2, &["show", "key"]),
        (2, &["list"]),
        (2, &["show", "--redis", url]),
        (2, &["show", "", "--redis", url]),
        (2, &["show", &long, "--redis", url]),
        (2, &["show", "0g", "--hex", "--redis", url]),
        (2, &["show", "key", "--namespace", "No", "--redis", url]),
        (2, &["list", "--namespace", "No", "--redis", url]),
        (2, &["list", "--limit", "0", "--redis", url]),
        (2, &["list", url]),
    ] {
        let refused = ringfence(&[&["locks"], args].concat());
        assert_eq!(
            (refused.code, &*refused.stdout),
            (code, ""),
            "{args:?} {refused:?}"
        );
        assert!(refused.stderr.starts_with("ringfence: "), "{refused:?}");
        assert!(!refused.stderr.contains("s3cret"), "{refused:?}");
    }
}

#[test]
fn help_tells_exit_codes_and_how_json_encodes_bytes() {
    for verb in ["show", "list"] {
        let shown = ringfence(&["locks", verb, "--help"]);
        assert_eq!((shown.code, &*shown.stderr), (0, ""));
        for part in ["Exit codes:", "key_hex", "--namespace", "--redis-file"] {
            assert!(shown.stdout.contains(part), "{part}: {shown:?}");
        }
    }
}

#[tokio::test]
async fn release_takes_a_lock_from_its_holder_and_names_the_holder() {
    let servers = founded(2).await;
    let holder = called(&servers, "holder").await;
    let guard = take(&holder, "coins", b"order/42").await;
    let args = ["release", "order/42", "--namespace", "coins"];
    for refused in [&args[..], &[&args[..], &["--reason", ""]].concat()] {
        let refused = locks(&servers, refused);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("--reason <TEXT>"), "{refused:?}");
    }
    let free = locks(&servers, &["release", "order/42", "--reason", "dead"]);
    assert_eq!(free.code, 3, "{free:?}");
    assert!(
        free.stdout
            .contains("order/42, namespace default, was free")
    );
    assert!(guard.is_held(), "it is in another namespace");

    let json_args = [&args[..], &["--reason", "host is dead", "--json"]].concat();
    let told = json(&locks(&servers, &json_args));
    assert_eq!(
        (&told["released"], &told["reason"]),
        (&true.into(), &"host is dead".into())
    );
    assert_eq!(told["holders"][0]["label"], "holder");
    assert_eq!(told["holders"][0]["token"], guard.token().to_string());
    let next = called(&servers, "next").await;
    let lock = next.lock("order/42").namespace("coins");
    lock.try_acquire().await.unwrap().release().await;
    eventually("the holder learns of it", async || !guard.is_held()).await;
    let again = json(&locks(&servers, &json_args));
    assert_eq!(
        (&again["released"], &again["holders"]),
        (&false.into(), &Value::Array(Vec::new()))
    );
}

#[tokio::test]
async fn release_names_all_holders_of_a_semaphore() {
    let servers = founded(1).await;
    let mut guards = Vec::new();
    for name in ["one", "other"] {
        let client = called(&servers, name).await;
        guards.push(
            client
                .semaphore("jobs", 2)
                .permit()
                .acquire()
                .await
                .unwrap(),
        );
    }
    let released = locks(&servers, &["release", "jobs", "--reason", "hosts are dead"]);
    let line = |name, guard: &Guard| {
        let token = guard.token();
        format!("jobs, namespace default, released: {name} held it with token {token}\n")
    };
    let told = line("one", &guards[0]) + &line("other", &guards[1]);
    assert_eq!(released.stdout, told);
}
