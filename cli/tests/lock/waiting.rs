//! Why it waits, on stderr.

use std::time::Duration;

use ringfence_test_support::eventually;
use tokio::time::sleep;

use super::{Stage, our_lines};
use crate::binary::Output;

const LEASE: Duration = Duration::from_secs(4);

fn reasons(output: &Output) -> Vec<&str> {
    let lines = our_lines(output).into_iter();
    lines
        .filter_map(|line| line.strip_prefix("waiting: "))
        .collect()
}

#[tokio::test]
async fn the_holder_is_named_once() {
    let stage = Stage::set(1, LEASE).await;
    let client = stage.servers.client().await;
    let guard = client.lock("key").label("payroll").acquire().await.unwrap();
    let running = stage.start("key", &[], &["true"]);
    sleep(LEASE + LEASE / 2).await;
    guard.release().await;
    client.close().await;
    let ran = running.output().await;
    assert_eq!(ran.code, 0, "without --wait it waits for ever: {ran:?}");
    let [reason] = reasons(&ran)[..] else {
        panic!("{ran:?}")
    };
    let left = reason.strip_prefix("held by payroll (").unwrap();
    assert!(["3 s left)", "4 s left)"].contains(&left), "{ran:?}");
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
    let ran = stage.run(&key, &[], &["sh", "-c", "exit 7"]);
    assert_eq!(ran.code, 7, "{ran:?}");
    let reasons = reasons(&ran);
    let grace = reasons
        .iter()
        .find(|reason| reason.starts_with("shard b came back "));
    let grace = grace.unwrap_or_else(|| panic!("{ran:?}"));
    let rest = grace.strip_prefix("shard b came back ").unwrap();
    let (since, left) = rest.split_once(" s ago: new locks in ").unwrap();
    let left = left.strip_suffix(" s").unwrap();
    let (since, left): (u64, u64) = (since.parse().unwrap(), left.parse().unwrap());
    assert!((4..=6).contains(&(since + left)), "{ran:?}");
}

#[tokio::test]
async fn a_shard_that_is_not_there_is_named() {
    let mut stage = Stage::set(2, LEASE).await;
    let key = stage.key_on(1).await;
    stage.servers.servers[1].kill();
    let running = stage.start(&key, &["--wait", "60s"], &["true"]);
    sleep(LEASE / 2).await;
    stage.servers.servers[1].restart().await.unwrap();
    let ran = running.output().await;
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
    let running = stage.start(&key, &[], &["true"]);
    let asks = || async {
        let clients: String = stage.servers.ask(1, &["CLIENT", "LIST"]).await;
        clients
            .lines()
            .filter(|line| line.contains(":work"))
            .count()
            > 2
    };
    eventually("it asks for the lock", asks).await;
    sleep(Duration::from_secs(1)).await;
    stage.servers.servers[1].stop();
    // Longer than servers are asked that never answered.
    sleep(Duration::from_secs(12)).await;
    stage.servers.servers[1].cont();
    drop(guard);
    let ran = running.output().await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let reasons = reasons(&ran);
    assert!(
        reasons.iter().any(|reason| reason.starts_with("held by ")),
        "{ran:?}"
    );
    assert!(
        reasons.iter().any(|reason| reason.starts_with("shard b: ")),
        "{ran:?}"
    );
    client.close().await;
}
