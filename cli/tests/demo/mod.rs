//! `ringfence demo`: it passes, it can fail, it repeats itself, and it leaves nothing behind.

mod honest;
mod hot;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
};

use crate::binary::{Output, command, ringfence, ringfence_with};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use ringfence_test_support::Servers;
use serde_json::Value;
use tokio::time::Instant;

fn demo(args: &[&str]) -> Output {
    ringfence(&[&["demo"], args].concat())
}

/// The report of a run with a clean audit.
fn passed(output: &Output) -> Value {
    assert_eq!((output.code, &*output.stderr), (0, ""), "{output:?}");
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report["audit"]["ok"], true, "{report}");
    assert!(report["deductions"].as_u64().unwrap() > 0, "{report}");
    report
}

fn sum(report: &Value, part: &str) -> f64 {
    let shards = report["shards"].as_array().unwrap();
    shards
        .iter()
        .map(|shard| shard[part].as_f64().unwrap())
        .sum()
}

#[test]
fn a_simulated_run_repeats_itself_to_the_byte() {
    let run = |seed: &str| demo(&["--seed", seed, "--for", "2s", "--json"]);
    let (once, again, other) = (run("7"), run("7"), run("8"));
    assert_eq!(passed(&once)["time"], "simulated");
    assert_eq!(once.stdout, again.stdout);
    assert_ne!(once.stdout, other.stdout);
}

#[test]
fn a_simulated_hold_is_as_long_as_its_three_round_trips() {
    let report = passed(&demo(&["--seed", "7", "--for", "2s", "--json"]));
    let hold_us = report["hold_us"]["p50"].as_u64().unwrap();
    // Each way takes 1 to 3 ms; a release may wait for a batch that is out.
    assert!((6_000..=24_000).contains(&hold_us), "{hold_us}");
}

#[test]
fn a_simulated_run_of_a_minute_passes() {
    passed(&demo(&[
        "--seed",
        "7",
        "--for",
        "1m",
        "--workers",
        "8",
        "--json",
    ]));
}

#[test]
fn a_run_in_real_time_passes() {
    let report = passed(&demo(&["--for", "500ms", "--json"]));
    assert_eq!(report["time"], "real");
    assert!(report["seconds"].as_f64().unwrap() >= 0.5, "{report}");
    assert!(
        report["wait_us"]["p50"].as_u64() <= report["wait_us"]["p99"].as_u64(),
        "{report}"
    );
    assert!(
        report["hold_us"]["p99"].as_u64() <= report["hold_us"]["p999"].as_u64(),
        "{report}"
    );
    assert!((sum(&report, "share") - 1.0).abs() < 1e-9, "{report}");
    assert!((sum(&report, "fair_share") - 1.0).abs() < 1e-9, "{report}");
    assert_eq!(
        sum(&report, "deductions"),
        report["deductions"].as_f64().unwrap()
    );
}

/// What was told of the resizes: a fourth shard joined and left again, as few slots as had to moved, and the
/// locks in them came along.
fn there_and_back(report: &Value) -> &Value {
    let resizing = &report["resizing"];
    assert_eq!(resizing["ok"], true, "{report}");
    let phases = resizing["phases"].as_array().unwrap();
    let names: Vec<_> = phases.iter().map(|phase| &phase["name"]).collect();
    let expected = ["before", "growing", "between", "shrinking", "after"];
    assert_eq!(names, expected, "{report}");
    for phase in phases {
        assert!(phase["deductions"].as_u64().unwrap() > 0, "{report}");
        assert!(phase["wait_us"]["p99"].as_u64().unwrap() > 0, "{report}");
    }
    assert!(
        phases[2]["newcomers_share"].as_f64().unwrap() > 0.1,
        "{report}"
    );
    for (resize, (before, after)) in [(3, 4), (4, 3)].into_iter().enumerate() {
        let resize = &resizing["resizes"][resize];
        assert_eq!(resize["finished"], true, "{report}");
        assert_eq!(resize["shards_before"], before, "{report}");
        assert_eq!(resize["shards_after"], after, "{report}");
        assert_eq!(resize["slots_moved"], 16_384 / 4, "{report}");
        assert_eq!(resize["optimum"], 16_384 / 4, "{report}");
        assert!(resize["locks_carried"].as_u64().unwrap() > 0, "{report}");
    }
    assert_eq!(resizing["locks_held"], 1_000, "{report}");
    assert_eq!(resizing["locks_lost"], 0, "{report}");
    assert_eq!(resizing["tokens_fell"], 0, "{report}");
    resizing
}

#[test]
#[ignore = "long: two resizes"]
fn a_shard_joins_and_leaves_while_coins_are_deducted() {
    let report = passed(&demo(&["--resize", "--for", "5s", "--json"]));
    there_and_back(&report);
    assert!(report["seconds"].as_f64().unwrap() >= 5.0, "{report}");
    assert_eq!(report["shards"].as_array().unwrap().len(), 4, "{report}");
}

#[test]
#[ignore = "long: two resizes"]
fn a_server_joins_and_leaves_while_coins_are_deducted() {
    let dir = tempfile::tempdir().unwrap();
    let environment = [("TMPDIR", dir.path().to_str().unwrap())];
    let args = [
        "demo",
        "--spawn-redis",
        "3",
        "--resize",
        "--for",
        "5s",
        "--json",
    ];
    let report = passed(&ringfence_with(&args, &environment));
    assert_eq!(there_and_back(&report)["granted_twice"], 0, "{report}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(processes_in(dir.path()), Vec::<String>::new());
}

#[test]
fn a_simulated_resize_repeats_itself_to_the_byte() {
    let run = |seed: &str| demo(&["--resize", "--seed", seed, "--workers", "8", "--json"]);
    let (once, again, other) = (run("7"), run("7"), run("8"));
    there_and_back(&passed(&once));
    assert_eq!(once.stdout, again.stdout);
    assert_ne!(once.stdout, other.stdout);
}

#[test]
#[ignore = "long: two resizes"]
fn a_run_goes_on_until_both_resizes_are_over_and_says_so() {
    let few = ["--resize", "--seed", "7", "--workers", "8"];
    let args = [&few[..], &["--for", "1s"]].concat();
    let report = passed(&demo(&[&args[..], &["--json"]].concat()));
    let overtime = there_and_back(&report)["overtime_seconds"]
        .as_f64()
        .unwrap();
    assert!(overtime > 0.0, "{report}");
    assert!(
        (report["seconds"].as_f64().unwrap() - 1.0 - overtime).abs() < 0.5,
        "{report}"
    );

    let shown = demo(&args);
    for words in ["s longer than --for", "512 slots at a time", "every 1 s"] {
        assert!(shown.stdout.contains(words), "{words}: {shown:?}");
    }
    let long = demo(&[&few[..], &["--for", "40s"]].concat());
    assert!(!long.stdout.contains("longer than --for"), "{long:?}");
}

/// What a run reports that is interrupted once it has begun, and ends with `code`.
fn interrupted(args: &[&str], code: i32) -> Value {
    let mut run = command(args)
        .env("RUST_LOG", "ringfence=info")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&mut run, "the run has begun");
    kill(Pid::from_raw(run.id() as i32), Signal::SIGINT).unwrap();

    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(code));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn an_interrupted_resize_has_failed() {
    let report = interrupted(&["demo", "--resize", "--for", "1m", "--json"], 1);
    assert_eq!(report["audit"]["ok"], true);
    assert_eq!(report["resizing"]["ok"], false);
}

#[test]
fn an_empty_account_is_left_alone() {
    let report = passed(&demo(&[
        "--seed",
        "7",
        "--accounts",
        "1",
        "--coins",
        "10",
        "--json",
    ]));
    assert!(report["refused_empty"].as_u64().unwrap() > 0, "{report}");
    assert!(report["deductions"].as_u64().unwrap() <= 10, "{report}");
}

#[test]
fn its_own_servers_end_with_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let environment = [("TMPDIR", dir.path().to_str().unwrap())];
    let args = ["demo", "--spawn-redis", "3", "--for", "1s", "--json"];
    let report = passed(&ringfence_with(&args, &environment));
    assert_eq!(report["shards"].as_array().unwrap().len(), 3);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(processes_in(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_on_given_servers_leaves_no_key_of_its_own() {
    let servers = Servers::spawn(3).await;
    // It is founded, so that the run need not wait for grace.
    servers.client().await.close().await;
    let urls = servers.urls();
    let report = demo(&["--redis", &urls.join(","), "--for", "500ms", "--json"]);
    assert_eq!(report.code, 0, "{report:?}");
    for index in 0..3 {
        let left: Vec<String> = servers.ask(index, &["KEYS", "ringfence-demo:*"]).await;
        assert_eq!(left, [""; 0]);
        let locks: Vec<String> = servers.ask(index, &["KEYS", "ringfence:{*"]).await;
        assert_eq!(locks, [""; 0]);
    }
}

#[tokio::test]
async fn grace_is_waited_for_and_said() {
    let servers = Servers::spawn(1).await;
    let url = &servers.urls()[0];
    let init = ringfence(&["ring", "init", "--max-lease", "6s", "--redis", url]);
    assert_eq!(init.code, 0, "{init:?}");
    let begun = Instant::now();
    let shown = demo(&["--redis", url, "--for", "200ms", "--json"]);

    let waited = begun.elapsed().as_secs_f64();
    assert_eq!(shown.code, 0, "{shown:?}");
    let said = "shard a is recovering or new: new locks in ";
    assert_eq!(shown.stderr.matches(said).count(), 1, "{shown:?}");
    let report: Value = serde_json::from_str(&shown.stdout).unwrap();
    let ran = report["seconds"].as_f64().unwrap();
    assert!(
        ran + 1.0 < waited,
        "the wait is no part of the run: {ran} of {waited} s"
    );
}

#[tokio::test]
async fn a_silent_server_is_named() {
    let mut servers = Servers::spawn(2).await;
    servers.client().await.close().await;
    servers.servers[1].kill();
    let (up, down) = (&servers.urls()[0], &servers.urls()[1]);
    let failed = demo(&["--redis", up, "--redis", down, "--for", "200ms"]);
    assert_eq!((failed.code, &*failed.stdout), (1, ""), "{failed:?}");
    assert!(failed.stderr.contains(&format!("{down}/0")), "{failed:?}");
}

#[test]
fn an_interrupted_run_is_audited() {
    let report = interrupted(&["demo", "--spawn-redis", "1", "--for", "1m", "--json"], 0);
    assert_eq!(report["audit"]["ok"], true);
    assert!(report["seconds"].as_f64().unwrap() < 50.0);
}

#[test]
fn an_interrupted_wait_for_grace_is_no_run() {
    // Servers that are not said to be new have a grace.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let servers = runtime.block_on(Servers::spawn(1));
    let url = &servers.urls()[0];
    let init = ringfence(&["ring", "init", "--redis", url]);
    assert_eq!(init.code, 0, "{init:?}");
    let args = ["demo", "--redis", url];
    let mut run = command(&args)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&mut run, "new locks in");
    kill(Pid::from_raw(run.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(run.wait_with_output().unwrap().status.code(), Some(1));
    let left: Vec<String> = runtime.block_on(servers.ask(0, &["KEYS", "ringfence-demo:*"]));
    assert_eq!(left, [""; 0]);
}

/// Reads what `run` logs until it says `words`.
fn wait_for(run: &mut Child, words: &str) {
    let mut lines = BufReader::new(run.stderr.as_mut().unwrap()).lines();
    let said = lines.any(|line| line.unwrap().contains(words));
    assert!(said, "it ended without saying {words:?}");
}

/// Command lines of processes that have to do with `dir`.
fn processes_in(dir: &Path) -> Vec<String> {
    let dir = dir.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(dir)).collect()
}
