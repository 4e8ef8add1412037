//! Locks with several holders: `--mode`, `--permits` and `--of`.

use std::time::Duration;

use ringfence_test_support::eventually;

use super::{Stage, our_line};
use crate::binary;

const LEASE: Duration = Duration::from_secs(4);
const NOW: [&str; 2] = ["--wait", "0s"];

/// Runs `true` on these terms; its exit code.
fn tried(stage: &Stage, key: &str, terms: &[&str]) -> u8 {
    let ran = stage.run(key, &[terms, &NOW].concat(), &["true"]);
    u8::try_from(ran.code).unwrap()
}

#[tokio::test]
async fn readers_run_together_and_writers_alone() {
    let stage = Stage::set(1, LEASE).await;
    let (shared, exclusive) = (["--mode", "shared"], ["--mode", "exclusive"]);
    let reader = stage.start(
        "key",
        &shared,
        &["sh", "-c", "echo ready > read; sleep 600"],
    );
    stage.line_of("read").await;
    assert_eq!(tried(&stage, "key", &shared), 0);
    assert_eq!(tried(&stage, "key", &exclusive), 75);
    drop(reader);
    let next = ["--mode", "exclusive", "--wait", "120s"];
    let writer = stage.start(
        "key",
        &next,
        &["sh", "-c", "echo ready > written; sleep 600"],
    );
    stage.line_of("written").await;
    assert_eq!(tried(&stage, "key", &shared), 75);
    assert_eq!(tried(&stage, "key", &exclusive), 75);
    drop(writer);
}

#[tokio::test]
async fn a_preferred_side_goes_before_the_other_one() {
    let stage = Stage::set(1, LEASE).await;
    let (shared, exclusive) = (["--mode", "shared"], ["--mode", "exclusive"]);
    let reader = stage.start(
        "key",
        &shared,
        &["sh", "-c", "echo ready > read; sleep 600"],
    );
    stage.line_of("read").await;
    let writer = stage.start("key", &exclusive, &["true"]);
    eventually("the writer waits", async || {
        tried(&stage, "key", &shared) == 75
    })
    .await;
    let preferred = [&shared[..], &["--prefer", "readers"]].concat();
    assert_eq!(tried(&stage, "key", &preferred), 0);
    drop((reader, writer));
}

#[tokio::test]
async fn no_more_permits_are_held_than_there_are() {
    let stage = Stage::set(1, LEASE).await;
    let two = ["--permits", "2", "--of", "3"];
    let held = stage.start("key", &two, &["sh", "-c", "echo ready > held; sleep 600"]);
    stage.line_of("held").await;
    assert_eq!(tried(&stage, "key", &two), 75);
    assert_eq!(tried(&stage, "key", &["--of", "3"]), 0);
    let one = stage.start(
        "key",
        &["--of", "3"],
        &["sh", "-c", "echo ready > one; sleep 600"],
    );
    stage.line_of("one").await;
    let file = stage.file();
    let shown = binary::ringfence(&["locks", "show", "--redis-file", &file, "key"]);
    assert!(
        shown.stdout.contains("(2 permits)") && shown.stdout.contains("(1 permit)"),
        "{shown:?}"
    );
    let listed = binary::ringfence(&["locks", "list", "--redis-file", &file]);
    assert!(listed.stdout.contains(" and 1 more"), "{listed:?}");
    drop(one);
    let other = stage.run("key", &NOW, &["true"]);
    assert_eq!(other.code, 75, "{other:?}");
    let line = our_line(&other);
    assert!(line.contains("the key is held as a semaphore"), "{line}");
    drop(held);
}

#[tokio::test]
async fn terms_that_make_no_sense_are_refused() {
    let stage = Stage::set(1, LEASE).await;
    for terms in [
        &["--permits", "2"][..],
        &["--of", "2", "--mode", "shared"],
        &["--permits", "3", "--of", "2"],
        &["--of", "0"],
        &["--mode", "both"],
        &["--prefer", "readers"],
    ] {
        assert_eq!(tried(&stage, "key", terms), 2, "{terms:?}");
    }
}
