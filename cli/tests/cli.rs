//! The binary's commands, against real servers.

use std::fs;

use crate::binary::{self, Output, ringfence};
use ringfence_test_support::Servers;
use serde_json::Value;

fn ring(verb: &str, urls: &[String], more: &[&str]) -> Output {
    let urls = urls.join(",");
    let mut args = vec!["ring", verb, "--redis", &urls];
    args.extend(more);
    ringfence(&args)
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn sum(status: &Value, part: &str) -> f64 {
    let shards = status["shards"].as_array().unwrap();
    shards
        .iter()
        .map(|shard| shard[part].as_f64().unwrap())
        .sum()
}

#[tokio::test]
async fn a_second_init_changes_nothing() {
    let servers = Servers::spawn(3).await;
    let first = ring("init", &servers.urls(), &["--json", "--servers-are-new"]);
    let second = ring("init", &servers.urls(), &["--json", "--servers-are-new"]);

    assert_eq!((first.code, second.code), (0, 0), "{first:?} {second:?}");
    let (mut first, mut second) = (json(&first), json(&second));
    assert_eq!(
        (first["done"].take(), second["done"].take()),
        ("founded".into(), "there_already".into())
    );
    assert_eq!(first, second);
}

#[tokio::test]
async fn a_topology_whose_home_is_gone_is_recovered_once_a_person_attests_it() {
    let mut servers = Servers::spawn(3).await;
    let urls = servers.urls();
    let founded = json(&ring("init", &urls, &["--json", "--servers-are-new"]));
    let home = founded["home"].as_str().unwrap();
    let place = urls.iter().position(|url| home.starts_with(url)).unwrap();
    let id = founded["shards"][place]["id"].as_str().unwrap();
    let unchanged = json(&ring("recover", &urls, &["--json"]));
    assert_eq!(unchanged["done"], "in_force");
    assert_eq!(unchanged["incarnation"], founded["incarnation"]);

    servers.servers[place].kill();
    let seeds: Vec<_> = urls
        .iter()
        .filter(|url| !home.starts_with(*url))
        .cloned()
        .collect();
    let shown = ring("show", &seeds, &[]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(
        shown
            .stdout
            .contains(&format!("ring recover --attest-dead {id}")),
        "{shown:?}"
    );
    let refused = ring("recover", &seeds, &[]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(
        refused.stderr.contains(&format!("--attest-dead {id}")),
        "{refused:?}"
    );
    let unknown = ring("recover", &seeds, &["--attest-dead", "z"]);
    assert!(
        unknown.stderr.contains("no such shard; it has a, b, c"),
        "{unknown:?}"
    );

    let recovered = json(&ring("recover", &seeds, &["--attest-dead", id, "--json"]));
    assert_eq!(recovered["done"], "recovered");
    assert_eq!(recovered["topology"], founded["topology"]);
    assert_ne!(recovered["home"], founded["home"]);
    let shown = json(&ring("show", &seeds, &["--json"]));
    assert_eq!(shown["home"], recovered["home"]);
}

#[tokio::test]
async fn show_shows_every_shard_and_its_share() {
    let servers = Servers::spawn(3).await;
    ring(
        "init",
        &servers.urls(),
        &["--servers-are-new", "--max-lease", "10s"],
    );
    // One server is enough to find the others.
    let status = json(&ring("show", &servers.urls()[..1], &["--json"]));

    let ids: Vec<_> = status["shards"]
        .as_array()
        .unwrap()
        .iter()
        .map(|shard| &shard["id"])
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
    for shard in status["shards"].as_array().unwrap() {
        assert_eq!(
            (&shard["reachable"], &shard["grace_left_ms"]),
            (&true.into(), &0.into()),
            "{shard}"
        );
    }
    assert!((sum(&status, "share") - 1.0).abs() < 1e-9, "{status}");
    assert!((sum(&status, "fair_share") - 1.0).abs() < 1e-9, "{status}");
    assert_eq!(sum(&status, "slots"), 16_384.0);
    assert_eq!(status["max_lease_ms"], 10_000);
    assert!(
        !status["warnings"].to_string().contains("max_lease"),
        "nobody asked for another: {status}"
    );
}

#[tokio::test]
async fn the_record_may_have_a_server_of_its_own() {
    let servers = Servers::spawn(3).await;
    let (shards, home) = (&servers.urls()[..2], &servers.urls()[2]);
    ring("init", shards, &["--servers-are-new", "--topology", home]);
    let status = json(&ring("show", shards, &["--json"]));
    assert_eq!(status["home"], format!("{home}/0"));
    assert_eq!(status["shards"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn how_shards_are_removed_is_said_at_the_founding() {
    let servers = Servers::spawn(1).await;
    let urls = servers.urls();
    for (how, why) in [
        (&["--removal", "at-once"][..], "supervised or leased"),
        (&["--view-lease", "2s"][..], "view_lease is 2s"),
    ] {
        let refused = ring("init", &urls, how);
        assert_ne!(refused.code, 0, "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
    let leased = ["--removal", "leased", "--view-lease", "2s", "--json"];
    let founded = json(&ring("init", &urls, &leased));
    let warnings = founded["warnings"].to_string();
    assert!(!warnings.contains("removal"));
    assert!(
        warnings.contains("those on other hosts do not reach it"),
        "{warnings}"
    );
    let other = json(&ring("init", &urls, &["--removal", "leased", "--json"]));
    let told = other["warnings"].to_string();
    assert!(told.contains("leased by a view_lease of 2s"), "{told}");
}

#[tokio::test]
async fn show_says_which_shard_is_gone_and_why() {
    let mut servers = Servers::spawn(3).await;
    let urls = servers.urls();
    ring(
        "init",
        &urls,
        &["--servers-are-new", "--topology", &urls[0]],
    );
    servers.servers[1].kill();
    let status = json(&ring("show", &urls, &["--json"]));

    let shards = status["shards"].as_array().unwrap();
    let reachable = shards.iter().map(|shard| &shard["reachable"]);
    assert_eq!(reachable.collect::<Vec<_>>(), [true, false, true]);
    let why = shards[1]["error"].as_str().unwrap();
    assert!(why.contains("Connection refused"), "{why}");
    // Nothing is logged beside it.
    let shown = ring("show", &urls, &[]);
    assert_eq!((shown.code, &*shown.stderr), (0, ""), "{shown:?}");
}

#[tokio::test]
async fn show_shows_grace_to_people() {
    let servers = Servers::spawn(1).await;
    let shown = ring("init", &servers.urls(), &[]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(
        shown.stdout.contains("recovering or new: new locks in "),
        "{shown:?}"
    );
}

#[tokio::test]
async fn show_founds_nothing() {
    let servers = Servers::spawn(2).await;
    let shown = ring("show", &servers.urls(), &[]);

    assert_eq!((shown.code, &*shown.stdout), (1, ""));
    assert!(
        shown
            .stderr
            .contains("these servers have no topology: they are new, or were emptied"),
        "{shown:?}"
    );
    for index in 0..2 {
        assert_eq!(servers.ask::<u64>(index, &["DBSIZE"]).await, 0);
    }
}

#[tokio::test]
async fn tokens_after_a_total_loss_are_greater_than_the_one_given() {
    let servers = Servers::spawn(1).await;
    // An epoch in the year 2050.
    let token = (79_000_000_u64 << 35) + 5;
    let founded = ring(
        "init",
        &servers.urls(),
        &["--servers-are-new", "--after", &token.to_string()],
    );
    assert_eq!(founded.code, 0, "{founded:?}");

    let client = servers.client().await;
    let guard = client.lock("key").acquire().await.unwrap();
    assert!(guard.token().get() > token, "{}", guard.token());
    guard.release().await;
    client.close().await;
}

#[tokio::test]
async fn after_is_refused_where_it_comes_too_late() {
    let servers = Servers::spawn(1).await;
    ring("init", &servers.urls(), &["--servers-are-new"]);
    let token = (79_000_000_u64 << 35).to_string();
    let refused = ring("init", &servers.urls(), &["--after", &token]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("exists already"), "{refused:?}");
}

#[tokio::test]
async fn servers_may_come_from_a_file_or_the_environment() {
    let servers = Servers::spawn(2).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("servers");
    fs::write(&file, format!("# ours\n\n{}\n", servers.urls().join("\n"))).unwrap();
    let file = file.to_str().unwrap();

    let founded = ringfence(&["ring", "init", "--redis-file", file, "--servers-are-new"]);
    assert_eq!(founded.code, 0, "{founded:?}");
    let env = [("RINGFENCE_REDIS", &*servers.urls().join(","))];
    let shown = binary::ringfence_with(&["ring", "show", "--json"], &env);
    assert_eq!(json(&shown)["shards"].as_array().unwrap().len(), 2);
    // A file is taken instead of the environment.
    let env = [("RINGFENCE_REDIS", "redis://127.0.0.1:1")];
    let shown = binary::ringfence_with(&["ring", "show", "--redis-file", file], &env);
    assert_eq!(shown.code, 0, "{shown:?}");
}

#[tokio::test]
async fn a_password_is_used_and_never_shown() {
    let servers = Servers::spawn_with(2, |builder| builder.password("s3cret")).await;
    let founded = ring("init", &servers.urls(), &["--servers-are-new"]);
    assert_eq!(founded.code, 0, "{founded:?}");
    let shown = ring("show", &servers.urls(), &["--json"]);
    assert_eq!(shown.code, 0, "{shown:?}");

    let wrong = servers.urls()[0].replace("s3cret", "wr0ng");
    let refused = ring("show", &[wrong], &[]);
    assert_eq!(refused.code, 1, "{refused:?}");
    for output in [founded, shown, refused] {
        let all = format!("{output:?}");
        assert!(!all.contains("s3cret") && !all.contains("wr0ng"), "{all}");
    }
}

#[test]
fn unreachable_servers_are_named_without_their_passwords() {
    let failed = ringfence(&["ring", "show", "--redis", "redis://coin:s3cret@127.0.0.1:1"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.starts_with("ringfence: "), "{failed:?}");
    assert!(
        failed.stderr.contains("redis://127.0.0.1:1/0"),
        "{failed:?}"
    );
    assert!(!failed.stderr.contains("s3cret"), "{failed:?}");
}

#[test]
fn an_invalid_address_fails_without_being_repeated() {
    for (command, code) in [
        (&["ring", "init"][..], 2),
        (&["ring", "show"], 2),
        (&["locks", "list"], 2),
        (&["lock", "--until-eof", "key"], 2),
        (&["demo"], 1),
    ] {
        let args = [command, &["--redis", "http://coin:s3cret@127.0.0.1:1"]].concat();
        let failed = ringfence(&args);
        assert_eq!(failed.code, code, "{failed:?}");
        assert!(
            failed.stderr.contains("an address begins with"),
            "{failed:?}"
        );
        assert!(!failed.stderr.contains("s3cret"), "{failed:?}");
    }
}

#[test]
fn an_invalid_command_line_exits_2() {
    for args in [
        &[][..],
        &["rung"],
        &["ring"],
        &["ring", "init"],
        &["ring", "init", "--redis"],
        &["ring", "init", "--redis", "redis://x", "--max-lease", "30"],
        &["ring", "init", "--redis", "redis://x", "--after", "-1"],
        &[
            "ring",
            "init",
            "--redis",
            "redis://x",
            "--after",
            "18446744073709551615",
        ],
        &["ring", "show", "redis://coin:s3cret@x"],
        &["demo", "--shards", "0"],
        &["demo", "--for", "1h"],
        &["demo", "--skew", "-1"],
        &["demo", "--shards", "2", "--spawn-redis", "2"],
        &["demo", "--redis", "redis://x", "--spawn-redis", "2"],
    ] {
        let refused = ringfence(args);
        assert_eq!(refused.code, 2, "{args:?} {refused:?}");
        assert_eq!(refused.stdout, "");
        assert!(!refused.stderr.contains("s3cret"), "{refused:?}");
    }
}

#[test]
fn help_and_version_are_no_errors() {
    for args in [
        &["--help"][..],
        &["--version"],
        &["help", "ring", "init"],
        &["demo", "--help"],
    ] {
        let shown = ringfence(args);
        assert_eq!((shown.code, &*shown.stderr), (0, ""), "{args:?}");
        assert!(!shown.stdout.is_empty());
    }
}

#[test]
fn help_names_what_is_printed() {
    for (command, printed) in [
        (
            ["counter", "show"],
            &["to spend", "set aside", "losses", "in doubt"][..],
        ),
        (
            ["locks", "list"],
            &["namespace", "shard", "holder", "token", "left", "waiting"],
        ),
        (
            ["ring", "watch"],
            &["at_rest", "moving", "done", "turned_back"],
        ),
    ] {
        let help = ringfence(&[&command[..], &["--help"]].concat()).stdout;
        for word in printed {
            assert!(help.contains(word), "{command:?}: {word}: {help}");
        }
    }
}

#[tokio::test]
async fn a_reader_that_closes_its_pipe_breaks_nothing() {
    let servers = Servers::spawn(1).await;
    ring("init", &servers.urls(), &["--servers-are-new"]);
    let mut shown = std::process::Command::new(env!("CARGO_BIN_EXE_ringfence"))
        .args(["ring", "show", "--redis", &servers.urls()[0]])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(shown.stdout.take());
    let ended = shown.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.success() && !told.contains("panicked"),
        "{told}"
    );
}
