//! Moves: to the end, in the middle, and back.

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use ringfence_client::{Client, Guard};
use ringfence_test_support::Servers;
use serde_json::{Value, json};

use super::{LEASED, each, everything, founded, founded_with, ring, told};
use crate::binary::{Output, command};

/// The last of the lines of JSON that a mover wrote.
fn last(output: &Output) -> Value {
    assert_eq!(output.code, 0, "{output:?}");
    let line = output.stdout.lines().last().expect("a line");
    serde_json::from_str(line).unwrap()
}

/// How many slots each shard has.
fn slots(servers: &Servers) -> Vec<(String, u64)> {
    let shown = told(&ring(servers, &["show", "--json"]));
    assert_eq!(shown["resize"], Value::Null, "{shown}");
    let shards = shown["shards"].as_array().unwrap().iter();
    let part = |shard: &Value| {
        (
            shard["id"].as_str().unwrap().into(),
            shard["slots"].as_u64().unwrap(),
        )
    };
    shards.map(part).collect()
}

fn shares(shares: &[(&str, u64)]) -> Vec<(String, u64)> {
    shares
        .iter()
        .map(|&(id, slots)| (id.to_owned(), slots))
        .collect()
}

async fn hold(client: &Client, count: usize) -> Vec<Guard> {
    let mut guards = Vec::new();
    for index in 0..count {
        guards.push(client.lock(format!("key/{index}")).acquire().await.unwrap());
    }
    guards
}

/// A process that tells how a resize goes on.
struct Telling {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Telling {
    fn start(servers: &Servers, args: &[&str]) -> Self {
        let seed = ["--json", "--redis", &servers.urls()[0]];
        let mut command = command(&[&["ring"], args, &seed].concat());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Self { process, lines }
    }

    /// Adds `url`, so slowly that there is time to look, and is in the midst of it.
    fn adding(servers: &Servers, url: &str, more: &[&str]) -> Self {
        let slowly = ["add", url, "--servers-are-new", "--slots-in-flight", "64"];
        let mut adding = Self::start(servers, &[&slowly[..], more].concat());
        let moved = |told: &Value| told["slots_moved"].as_u64().unwrap() > 0;
        while !moved(&adding.next("moving")) {}
        adding
    }

    /// What it tells next, which is about that `state`.
    fn next(&mut self, state: &str) -> Value {
        let told = self.any().expect("it ended");
        assert_eq!(told["state"], state, "{told}");
        told
    }

    /// What it tells next; none: it ended.
    fn any(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// How many slots have moved, each time it tells, to the end of the resize.
    fn until_the_end(&mut self) -> Vec<u64> {
        let mut moved = Vec::new();
        loop {
            let told = self.any().expect("it ended early");
            moved.push(told["slots_moved"].as_u64().unwrap());
            if told["state"] == "done" {
                return moved;
            }
        }
    }

    /// Sends `signal`; answers what came of it.
    fn end(self, signal: Signal) -> (Option<i32>, String) {
        let pid = i32::try_from(self.process.id()).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
        drop(self.lines);
        let ended = self.process.wait_with_output().unwrap();
        (
            ended.status.code(),
            String::from_utf8(ended.stderr).unwrap(),
        )
    }
}

/// The client renews while the commands run.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: three resizes"]
async fn shards_come_weigh_and_go_and_no_lock_is_lost() {
    let servers = founded(3, 1).await;
    let url = &servers.urls()[3];
    let client = Client::builder()
        .redis([servers.urls()[0].clone()])
        .build()
        .await
        .unwrap();
    let guards = hold(&client, 100).await;

    let rehearsed = told(&ring(&servers, &["add", url, "--dry-run", "--json"]));
    assert_eq!(rehearsed["slots_to_move"], 4_096);
    assert_eq!(slots(&servers).len(), 3, "nothing is done");
    let added = last(&ring(
        &servers,
        &["add", url, "--servers-are-new", "--json"],
    ));
    assert_eq!(
        (&added["state"], &added["slots_moved"]),
        (&json!("done"), &json!(4_096))
    );
    assert!(added["locks_carried"].as_u64().unwrap() > 0, "{added}");
    let alike = ["a", "b", "c", "d"].map(|id| (id, 4_096));
    assert_eq!(slots(&servers), shares(&alike));

    let weighed = ring(&servers, &["weigh", "d=2", "b=2"]);
    assert_eq!(weighed.code, 0, "{weighed:?}");
    assert!(weighed.stdout.starts_with("done: "), "{weighed:?}");
    assert!(weighed.stderr.contains(" slots moved, "), "{weighed:?}");
    let shown = told(&ring(&servers, &["show", "--json"]));
    assert_eq!(each(&shown["shards"], "weight"), [1, 2, 1, 2]);
    assert_eq!(
        each(&shown["shards"], "slots"),
        [2_731, 5_461, 2_731, 5_461]
    );

    let removed = ring(&servers, &["remove", "d", "b"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    assert_eq!(slots(&servers), shares(&[("a", 8_192), ("c", 8_192)]));

    for guard in guards {
        assert!(guard.is_held());
        guard.release().await;
    }
    client.close().await;
}

/// The view of the topology is confirmed all the while, though its record changes.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: a resize under leases"]
async fn a_shard_comes_and_no_lock_is_lost_where_removal_is_leased() {
    let servers = founded_with(2, 1, &LEASED).await;
    let client = Client::builder().redis([servers.urls()[0].clone()]);
    let client = client.build().await.unwrap();
    let guards = hold(&client, 20).await;
    let added = ring(&servers, &["add", &servers.urls()[2], "--servers-are-new"]);
    assert_eq!(added.code, 0, "{added:?}");
    for guard in guards {
        assert!(guard.is_held());
        guard.release().await;
    }
    client.close().await;
}

#[tokio::test]
#[ignore = "long: a resize in pieces"]
async fn a_mover_that_is_killed_is_followed_by_another() {
    let servers = founded(2, 2).await;
    let (url, other) = (&servers.urls()[2], &servers.urls()[3]);
    Telling::adding(&servers, url, &["--id", "new"]).end(Signal::SIGKILL);

    let shown = told(&ring(&servers, &["show", "--json"]));
    assert_eq!(
        each(&shown["shards"], "membership"),
        ["member", "member", "joining"]
    );
    assert_eq!(shown["resize"]["after"], json!({"a": 1, "b": 1, "new": 1}));
    assert_eq!(shown["resize"]["before"], json!({"a": 1, "b": 1}));
    assert!(
        shown["resize"]["slots_to_move"].as_u64().unwrap() > 0,
        "{shown}"
    );
    for begun in [&["add", other][..], &["plan", "--weigh", "a=2"]] {
        let refused = ring(&servers, begun);
        assert_eq!(refused.code, 1, "one at a time: {refused:?}");
        assert!(refused.stderr.contains("under way already"), "{refused:?}");
    }
    assert_eq!(
        servers.ask::<u64>(3, &["DBSIZE"]).await,
        0,
        "it was not touched"
    );
    let plain = ring(&servers, &["show"]).stdout;
    assert!(
        plain.contains("resize under way: a 1, b 1 → a 1, b 1, new 1"),
        "{plain}"
    );

    let resumed = last(&ring(&servers, &["resume", "--json"]));
    assert_eq!(
        resumed["slots_moved"], 5_461,
        "those before among them: {resumed}"
    );
    assert_eq!(
        slots(&servers),
        shares(&[("a", 5_462), ("b", 5_461), ("new", 5_461)])
    );
    let again = last(&ring(&servers, &["resume", "--json"]));
    assert_eq!(again["slots_moved"], 0, "there is nothing left: {again}");
}

#[tokio::test]
async fn a_resize_that_is_interrupted_says_how_to_go_on_and_is_turned_back() {
    let servers = founded(2, 1).await;
    let before = slots(&servers);
    let none = ring(&servers, &["abort"]);
    assert_eq!(none.code, 1, "{none:?}");
    assert!(none.stderr.contains("no resize is under way"), "{none:?}");

    let url = &servers.urls()[2];
    let (code, told) = Telling::adding(&servers, url, &[]).end(Signal::SIGINT);
    assert_eq!(code, Some(130), "{told}");
    for way in ["ringfence ring resume", "ringfence ring abort"] {
        assert!(told.contains(way), "{told}");
    }

    let aborted = ring(&servers, &["abort"]);
    assert_eq!(aborted.code, 0, "{aborted:?}");
    assert_eq!(slots(&servers), before);
}

#[tokio::test]
async fn a_resize_that_waits_for_a_server_that_is_gone_says_how_to_go_on_without_it() {
    let mut servers = founded(2, 1).await;
    Telling::adding(&servers, &servers.urls()[2], &[]).end(Signal::SIGKILL);
    servers.servers[2].kill();
    let mut abort = command(&["ring", "abort", "--redis", &servers.urls()[0]]);
    let mut aborting = abort.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(aborting.stderr.take().unwrap()).lines();
    let advice = "(if it never comes back: ringfence ring remove --gone c)";
    let told = lines.map(Result::unwrap).find(|line| line.contains(advice));
    aborting.kill().unwrap();
    aborting.wait().unwrap();
    assert!(told.is_some());
}

#[tokio::test]
async fn add_and_watch_report_that_another_process_turned_the_resize_back() {
    let servers = founded(2, 1).await;
    let before = slots(&servers);
    let mut adding = Telling::adding(&servers, &servers.urls()[2], &[]);
    let mut watching = Telling::start(&servers, &["watch"]);
    watching.next("moving");
    let aborted = ring(&servers, &["abort"]);
    assert_eq!(aborted.code, 0, "{aborted:?}");
    assert_eq!(slots(&servers), before);

    for telling in [&mut adding, &mut watching] {
        let told = std::iter::from_fn(|| telling.any()).last().expect("a line");
        assert_eq!(told["state"], "turned_back", "{told}");
    }
    let ended = adding.process.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(told.contains("turned this resize back"), "{told}");
    assert!(watching.process.wait().unwrap().success());
}

#[tokio::test]
#[ignore = "long: two resizes"]
async fn watch_shows_each_resize_from_its_beginning() {
    let servers = founded(2, 0).await;
    let mut watching = Telling::start(&servers, &["watch"]);
    watching.next("at_rest");
    for (weights, slots) in [("a=2", 2_731), ("a=1", 2_731)] {
        let weighed = ring(&servers, &["weigh", weights]);
        assert_eq!(weighed.code, 0, "{weighed:?}");
        let moved = watching.until_the_end();
        assert!(moved.is_sorted() && moved.len() > 1, "{moved:?}");
        assert_eq!((moved[0], *moved.last().unwrap()), (0, slots), "{moved:?}");
    }
    watching.end(Signal::SIGINT);
}

#[tokio::test]
async fn watch_shows_a_resize_under_way_to_its_end() {
    let servers = founded(2, 1).await;
    Telling::adding(&servers, &servers.urls()[2], &[]).end(Signal::SIGKILL);
    let mut watching = Telling::start(&servers, &["watch"]);
    watching.next("moving");
    let resumed = ring(&servers, &["resume"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(watching.until_the_end().last(), Some(&5_461));
    assert_eq!(watching.any(), None);
    assert!(watching.process.wait().unwrap().success());
}

#[tokio::test]
async fn a_server_that_cannot_come_is_refused_and_left_as_it_is() {
    let (servers, others) = (founded(2, 1).await, founded(1, 0).await);
    let (url, theirs) = (&servers.urls()[2], &others.urls()[0]);
    let before = everything(&servers).await;
    let silent = "redis://coin:s3cret@127.0.0.1:1";
    for (args, code, told) in [
        (&["add", theirs][..], 2, "belongs to topology"),
        (&["add", silent], 1, "redis://127.0.0.1:1/0"),
        (&["add", url, "--id", "a"], 2, "shard id a is taken"),
        (&["add", url, "--id", "A"], 2, "shard id \"A\" must be"),
        (&["add", url, "--id", "x,y"], 2, "--id names 2 shards"),
        (&["add", &servers.urls()[1]], 2, "is taken, by shard b"),
        (&["add"], 2, "required"),
        (&["remove", "z"], 2, "shard z is not a member"),
        (&["weigh", "a=0"], 2, "weight is 0, must be 1 to 10000"),
        (
            &["weigh", "a=2", "--slots-in-flight", "0"],
            2,
            "must be 1 to 65536",
        ),
        (&["weigh", "a=2", "--pause", "2s"], 2, "must be at most 1s"),
    ] {
        let refused = ring(&servers, args);
        assert_eq!(
            (refused.code, &*refused.stdout),
            (code, ""),
            "{args:?} {refused:?}"
        );
        assert!(refused.stderr.contains(told), "{args:?} {refused:?}");
        assert!(!refused.stderr.contains("s3cret"), "{refused:?}");
    }
    assert_eq!(everything(&servers).await, before);
}
