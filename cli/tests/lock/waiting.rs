//! Why it waits, on stderr.

use std::{fs::File, process::Stdio, time::Duration};

use ringfence_test_support::{end_recovery, eventually};
use tokio::{process::Command, task::JoinSet, time::sleep};

use super::{Running, Stage, our_lines};
use crate::binary::Output;

const LEASE: Duration = Duration::from_secs(30);

/// Starts it; what it says on stderr is in the file `said`.
fn start(stage: &Stage, key: &str, options: &[&str]) -> Running {
    let mut command = Command::from(stage.lock(key, options, &["true"]));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(File::create(stage.path("said")).unwrap());
    Running(command.kill_on_drop(true).spawn().unwrap())
}

/// Waits until it has said that it waits for a reason that begins so.
async fn says(stage: &Stage, beginning: &str) {
    let line = format!("ringfence: waiting: {beginning}");
    let said = async || stage.written("said").contains(&line);
    eventually(&format!("it says {line}"), said).await;
}

async fn output(stage: &Stage, running: Running) -> Output {
    let ran = running.output().await;
    let stderr = stage.written("said");
    Output { stderr, ..ran }
}

fn reasons(output: &Output) -> Vec<&str> {
    let lines = our_lines(output).into_iter();
    lines
        .filter_map(|line| line.strip_prefix("waiting: "))
        .collect()
}

#[tokio::test]
async fn a_lock_that_waits_for_the_one_around_it_says_so() {
    let stage = Stage::set(1, LEASE).await;
    let mut command = stage.lock("größe", &[], &["true"]);
    command.env("RINGFENCE_KEY", "other");
    command.env("RINGFENCE_KEY_2", "größe");
    let client = stage.servers.client().await;
    let guard = client.lock("größe").acquire().await.unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(File::create(stage.path("said")).unwrap());
    let running = Running(Command::from(command).kill_on_drop(true).spawn().unwrap());
    says(&stage, "held by").await;
    guard.release().await;
    client.close().await;
    let ran = output(&stage, running).await;
    let [reason] = reasons(&ran)[..] else {
        panic!("{ran:?}")
    };
    let nested = "; a ringfence lock that this one runs under has größe: it may wait for itself";
    assert!(reason.ends_with(nested), "{reason}");
}

#[tokio::test]
async fn the_holder_is_named_once() {
    let stage = Stage::set(1, LEASE).await;
    let client = stage.servers.client().await;
    let lock = client.lock("key").label("payroll").lease(LEASE / 5);
    let guard = lock.acquire().await.unwrap();
    let running = start(&stage, "key", &[]);
    says(&stage, "held by").await;
    // It learns of renewals, too.
    let told = guard.deadline();
    eventually("renewed", async || guard.deadline() > told).await;
    guard.release().await;
    client.close().await;
    let ran = output(&stage, running).await;
    assert_eq!(ran.code, 0, "without --wait it waits for ever: {ran:?}");
    let [reason] = reasons(&ran)[..] else {
        panic!("{ran:?}")
    };
    let left = reason.strip_prefix("held by payroll (").unwrap();
    let left: u64 = left.strip_suffix(" s left)").unwrap().parse().unwrap();
    assert!(left <= LEASE.as_secs() / 5, "{ran:?}");
}

/// There is room for it, and one that needs more came before it.
#[tokio::test]
async fn a_waiter_behind_one_that_asks_for_more_is_told_so() {
    let stage = Stage::set(1, LEASE).await;
    let called = async |label: &str| stage.servers.builder().label(label).build().await.unwrap();
    let (client, other) = (called("payroll").await, called("yearly").await);
    let held = client
        .semaphore("key", 2)
        .permits(1)
        .acquire()
        .await
        .unwrap();
    let mut waits = JoinSet::new();
    waits.spawn(async move { other.semaphore("key", 2).permits(2).acquire().await });
    let queued = async || {
        let found = client.lock("key").inspect().await.unwrap();
        !found.waiters.is_empty()
    };
    eventually("it waits", queued).await;
    let running = start(&stage, "key", &["--of", "2"]);
    says(
        &stage,
        "held by payroll (1 permit); first in the queue: yearly (2 of 2 permits)",
    )
    .await;
    held.release().await;
    let yearly = waits.join_next().await.unwrap();
    yearly.unwrap().unwrap().release().await;
    let ran = output(&stage, running).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    client.close().await;
}

#[tokio::test]
async fn a_short_wait_is_not_worth_a_line() {
    let stage = Stage::set(1, LEASE).await;
    let client = stage.servers.client().await;
    let guard = client.lock("key").acquire().await.unwrap();
    let refused = stage.run("key", &["--wait", "200ms"], &["true"]);
    assert_eq!(
        (refused.code, reasons(&refused).len()),
        (75, 0),
        "{refused:?}"
    );
    guard.release().await;
    client.close().await;
}

#[tokio::test]
async fn grace_is_said_with_its_shard_and_its_end() {
    let mut stage = Stage::set(2, LEASE).await;
    let key = stage.key_on(1).await;
    stage.servers.servers[1].restart().await.unwrap();
    let running = start(&stage, &key, &[]);
    says(&stage, "shard b came back ").await;
    end_recovery(&stage.servers.servers[1].url()).await;
    let ran = output(&stage, running).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let reasons = reasons(&ran);
    let grace = reasons
        .iter()
        .find(|reason| reason.starts_with("shard b came back "));
    let grace = grace.unwrap_or_else(|| panic!("{ran:?}"));
    let rest = grace.strip_prefix("shard b came back ").unwrap();
    let (since, left) = rest.split_once(" s ago: new locks in ").unwrap();
    let left = left.strip_suffix(" s").unwrap();
    let (since, left): (u64, u64) = (since.parse().unwrap(), left.parse().unwrap());
    let all = LEASE.as_secs();
    assert!((all..=all + 2).contains(&(since + left)), "{ran:?}");
}

#[tokio::test]
async fn a_shard_that_is_not_there_is_named() {
    let mut stage = Stage::set(2, LEASE).await;
    let key = stage.key_on(1).await;
    stage.servers.servers[1].kill();
    let running = start(&stage, &key, &["--wait", "120s"]);
    says(&stage, "shard b: ").await;
    stage.servers.servers[1].restart().await.unwrap();
    end_recovery(&stage.servers.servers[1].url()).await;
    let ran = output(&stage, running).await;
    assert_eq!(ran.code, 0, "it was waited for: {ran:?}");
    let reasons = reasons(&ran);
    let shard = format!(
        "shard b: shard unavailable: redis://127.0.0.1:{}/0",
        stage.servers.servers[1].port()
    );
    assert!(reasons[0].starts_with(&shard), "{ran:?}");
    assert!(reasons.len() < 6, "not at every attempt: {ran:?}");
}

#[tokio::test]
async fn a_shard_that_goes_away_while_its_lock_is_waited_for_is_waited_for_too() {
    let stage = Stage::set(2, LEASE).await;
    let key = stage.key_on(1).await;
    let client = stage.servers.client().await;
    let guard = client.lock(&key).acquire().await.unwrap();
    let running = start(&stage, &key, &[]);
    says(&stage, "held by").await;
    stage.servers.servers[1].stop();
    says(&stage, "shard b: ").await;
    // Longer than servers are asked that never answered.
    sleep(Duration::from_secs(12)).await;
    stage.servers.servers[1].cont();
    drop(guard);
    let ran = output(&stage, running).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    client.close().await;
}
