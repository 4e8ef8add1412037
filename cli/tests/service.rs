//! `--coordinator`: the same commands over `ringfence serve`.

mod secured;
mod stopped;

use std::{fs, process::Stdio, time::Duration};

use ringfence_client::counter::Terms;
use ringfence_server::token_digest;
use ringfence_test_support::eventually;
use tokio::time::{sleep, timeout};

use crate::{
    binary::{Output, command, output, ringfence},
    counter::counter_by,
    lock::runs,
    serve::{Coordinator, founded},
};

const SECRET: &str = "handle_secret = \"0123456789abcdef0123456789abcdef\"";
const LEASE: Duration = Duration::from_secs(6);

/// `ringfence lock KEY` over `coordinators`, for a lease of 2 s.
fn lock(coordinators: &[&Coordinator], key: &str, more: &[&str]) -> Output {
    output(&mut lock_command(coordinators, key, more))
}

fn lock_command(coordinators: &[&Coordinator], key: &str, more: &[&str]) -> std::process::Command {
    let urls: Vec<_> = coordinators.iter().map(|one| &*one.url).collect();
    let args = ["lock", key, "--ttl", "6s", "--coordinator"];
    command(&[&args[..], &[&urls.join(",")], more].concat())
}

const ONCE: [&str; 4] = ["--wait", "0s", "--", "true"];

#[tokio::test]
async fn a_command_runs_under_a_lock_by_way_of_a_coordinator() {
    let servers = founded().await;
    let coordinator = Coordinator::start(&servers, "");
    let at = [&coordinator];
    let ran = lock(
        &at,
        "key",
        &["--", "sh", "-c", "echo $RINGFENCE_TOKEN; exit 7"],
    );
    assert_eq!(ran.code, 7, "{ran:?}");
    let token: u64 = ran.stdout.trim().parse().unwrap();

    let client = servers.client().await;
    let held = client
        .lock("key")
        .label("somebody")
        .acquire()
        .await
        .unwrap();
    assert!(held.token().get() > token);
    let refused = lock(&at, "key", &ONCE);
    assert_eq!(refused.code, 75, "{refused:?}");
    assert!(refused.stderr.contains("held by somebody"), "{refused:?}");
    let chosen = lock(&at, "key", &[&["-E", "3"], &ONCE[..]].concat());
    assert_eq!(chosen.code, 3, "{chosen:?}");
    let permits = lock(&at, "key", &[&["--of", "3"], &ONCE[..]].concat());
    assert_eq!(permits.code, 75, "{permits:?}");
    held.release().await;
    let several = lock(&at, "a", &["--mode", "shared", "--", "true"]);
    assert_eq!(several.code, 0, "{several:?}");

    let gone = [
        "lock",
        "key",
        "--wait",
        "300ms",
        "--coordinator",
        "http://127.0.0.1:1",
        "true",
    ];
    let unreachable = ringfence(&gone);
    assert_eq!(unreachable.code, 69, "{unreachable:?}");
    assert!(
        unreachable.stderr.contains("http://127.0.0.1:1"),
        "{unreachable:?}"
    );
    for usage in [
        &["--found", "--", "true"][..],
        &["--redis", "redis://127.0.0.1", "--", "true"],
        &["--ttl", "1h", "--", "true"],
    ] {
        assert_eq!(lock(&at, "key", usage).code, 2, "{usage:?}");
    }
}

#[tokio::test]
async fn a_command_goes_on_when_one_of_two_coordinators_is_killed_and_ends_when_both_are() {
    let servers = founded().await;
    let start = || Coordinator::start(&servers, SECRET);
    let mut coordinators = [start(), start()];
    let directory = tempfile::tempdir().unwrap();
    let ready = directory.path().join("ready");
    let script = format!("echo $$ > {}; exec sleep 600", ready.display());
    let [one, two] = &coordinators;
    let mut running = lock_command(&[one, two], "key", &["--", "sh", "-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let is_ready = || async { fs::read_to_string(&ready).is_ok_and(|text| text.ends_with('\n')) };
    eventually("the command runs", is_ready).await;
    let other = servers.client().await;
    for (count, coordinator) in (1..).zip(&mut coordinators) {
        coordinator.kill();
        if count == 1 {
            sleep(LEASE * 5 / 4).await;
            assert!(running.try_wait().unwrap().is_none());
            assert!(other.lock("key").try_acquire().await.is_err());
        }
    }
    let next = timeout(Duration::from_secs(120), other.lock("key").acquire())
        .await
        .unwrap()
        .unwrap();
    let pid = fs::read_to_string(&ready).unwrap();
    assert!(!runs(pid.trim()), "it has ended before");
    let status = tokio::task::spawn_blocking(move || running.wait());
    assert_eq!(status.await.unwrap().unwrap().code(), Some(80));
    drop(next);
}

/// A lock that is shown, without what differs: over a coordinator, the nonces and the shard are not known.
fn without_differences(mut shown: serde_json::Value) -> serde_json::Value {
    shown["shard"].take();
    let others = shown.get("others").cloned().unwrap_or_default();
    let count = others.as_array().map_or(0, Vec::len);
    let other = (0..count).map(|at| format!("/others/{at}"));
    for holder in other.chain(["/holder".into()]) {
        for field in ["remaining_ms", "held_for_ms", "nonce"] {
            let field = shown.pointer_mut(&format!("{holder}/{field}"));
            field.map(serde_json::Value::take);
        }
    }
    shown
}

#[tokio::test]
async fn locks_are_shown_and_released_by_way_of_a_coordinator() {
    let servers = founded().await;
    let coordinator = Coordinator::start(&servers, "");
    let client = servers.client().await;
    let _writer = client
        .lock("key")
        .label("somebody")
        .acquire()
        .await
        .unwrap();
    let jobs = client.semaphore("jobs", 3);
    let _permits = (
        jobs.permits(2).acquire().await,
        jobs.permit().acquire().await,
    );
    let both_ways = |args: &[&str]| {
        let urls = servers.urls().join(",");
        let ways = [["--redis", &urls], ["--coordinator", &coordinator.url]];
        ways.map(|way| {
            let ran = ringfence(&[&["locks"], args, &["--json"], &way[..]].concat());
            assert_eq!(ran.code, 0, "{ran:?}");
            serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap()
        })
    };
    for key in ["key", "jobs", "free"] {
        let [direct, over] = both_ways(&["show", key]).map(without_differences);
        assert_eq!(direct, over, "{key}");
    }
    let [direct, over] = both_ways(&["list"]);
    let keys = |listed: &serde_json::Value| {
        let locks = listed["locks"].as_array().unwrap().iter();
        locks
            .map(|lock| {
                (
                    lock["key"].clone(),
                    lock["shard"].clone(),
                    lock["others"].clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&direct), keys(&over));
    assert_eq!(keys(&over).len(), 2);
    let release = [
        "locks",
        "release",
        "key",
        "--reason",
        "test",
        "--coordinator",
        &coordinator.url,
    ];
    let released = ringfence(&release);
    assert!(
        released.code == 0 && released.stdout.contains("somebody"),
        "{released:?}"
    );
    let other = servers.client().await;
    drop(other.lock("key").try_acquire().await.unwrap());
}

#[tokio::test]
async fn counters_are_the_same_by_way_of_a_coordinator() {
    let servers = founded().await;
    let coordinator = Coordinator::start(&servers, "");
    let urls = servers.urls().join(",");
    let (direct, over) = (["--redis", &*urls], ["--coordinator", &*coordinator.url]);
    let done = |way: [&str; 2], args: &[&str]| {
        let ran = counter_by(way, &[args, &["--json"]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap()
    };
    done(over, &["create", "coins", "--segments", "3"]);
    done(over, &["create", "other", "--segments", "1"]);
    done(over, &["deposit", "coins", "100"]);
    let taken = done(over, &["deduct", "coins", "30"]);
    let id = taken["request"].as_str().unwrap();
    for way in [direct, over] {
        assert_eq!(done(way, &["deduct", "coins", "30", "--id", id]), taken);
    }
    let held = done(over, &["reserve", "coins", "10"]);
    let held = held["request"].as_str().unwrap();
    let seen = |args: &[&str]| {
        let [there, here] = [direct, over].map(|way| done(way, args));
        assert_eq!(there, here);
        here
    };
    let balance = seen(&["balance", "coins", "--exact"]);
    assert_eq!(
        (&balance["available"], &balance["held"]),
        (&"60".into(), &"10".into())
    );
    assert_eq!(
        seen(&["show", "coins"])["segments"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    done(over, &["confirm", "coins", "--id", held]);
    assert_eq!(counter_by(over, &["cancel", "coins", "--id", held]).code, 1);
    done(over, &["transfer", "coins", "other", "60"]);
    done(over, &["resegment", "coins", "3"]);
    done(over, &["sweep", "coins"]);
    done(over, &["accept", "coins"]);
    done(over, &["close", "coins"]);
    for (args, code) in [
        (&["deduct", "other", "61"][..], 1),
        (&["deposit", "coins", "1"], 1),
        (&["create", "other", "--segments", "2"], 1),
        (&["deduct", "coins", "31", "--id", id], 1),
        (&["balance", "nobody"], 1),
        (&["delete", "other"], 1),
        (&["show", ""], 2),
    ] {
        let [there, here] = [direct, over].map(|way| counter_by(way, args));
        assert_eq!((there.code, here.code), (code, code), "{there:?} {here:?}");
        assert_eq!(there.stderr.is_empty(), here.stderr.is_empty());
    }
    let gone = counter_by(
        ["--coordinator", "http://127.0.0.1:1"],
        &["balance", "coins"],
    );
    assert_eq!(gone.code, 69, "{gone:?}");
}

#[tokio::test]
async fn a_counter_needs_the_role_of_its_callers_token() {
    let servers = founded().await;
    let digest = token_digest("reader-token");
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let reader = format!("[principals.reader]\nsha256 = \"{digest}\"\nread = [\"default/\"]");
    let coordinator = Coordinator::start(&servers, &reader);
    let client = servers.client().await;
    let counters = client.counters();
    let made = counters.create("coins", Terms::in_memory(), 1);
    made.await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    fs::write(&token, "reader-token\n").unwrap();
    let token = token.to_str().unwrap();
    let over = ["--coordinator", &*coordinator.url, "--token-file", token];
    let counter = |args: &[&str]| ringfence(&[&["counter"], args, &over[..]].concat());
    assert_eq!(counter(&["balance", "coins"]).code, 0);
    let refused = counter(&["deposit", "coins", "1"]);
    assert_eq!(refused.code, 69, "{refused:?}");
    assert!(
        refused.stderr.contains("principals.reader.change"),
        "{refused:?}"
    );
    let unknown = [
        "counter",
        "balance",
        "coins",
        "--coordinator",
        &*coordinator.url,
    ];
    assert_eq!(ringfence(&unknown).code, 69);
}
