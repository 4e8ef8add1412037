//! A counter in a plain file, incremented by processes that know nothing of each other, while
//! shards are killed and restarted.

use std::{cell::Cell, fs, time::Duration};

use futures_util::future::join_all;
use ringfence_coordinator::spawn::RedisServerBuilder;
use tokio::{
    process::Command,
    time::{sleep, timeout},
};

use super::Stage;

const PROCESSES: usize = 8;
const INCREMENTS: usize = 200;
const LEASE: Duration = Duration::from_secs(4);

/// Reads, waits, writes: an increment at the same time is lost.
const INCREMENT: &str = "n=$(cat counter); sleep 0.03; echo $((n + 1)) > counter";

/// Has `INCREMENTS` made, and more until `is_over`, by `PROCESSES` at a time, each by what `command` makes. All must
/// succeed. Returns how many there were.
async fn increment_all(
    stage: &Stage,
    command: impl Fn() -> std::process::Command,
    is_over: impl Fn() -> bool,
) -> usize {
    fs::write(stage.path("counter"), "0\n").unwrap();
    let increment_often = async || {
        let mut made = 0;
        while made < INCREMENTS / PROCESSES || !is_over() {
            let mut command = Command::from(command());
            let ran = command.kill_on_drop(true).output().await.unwrap();
            assert!(ran.status.success(), "{ran:?}");
            made += 1;
        }
        made
    };
    let made = join_all((0..PROCESSES).map(|_| increment_often())).await;
    made.into_iter().sum()
}

fn counted(stage: &Stage) -> usize {
    stage.written("counter").trim().parse().unwrap()
}

/// Increments while the servers of `indexes` are killed and restarted, over and over. The key is on
/// server 1; the topology's record is on server 0.
async fn exact_through_restarts(mut stage: Stage, indexes: &[usize]) {
    let key = stage.key_on(1).await;
    let (dir, file) = (stage.dir.path().to_owned(), stage.file());
    let locked = || {
        let args = ["lock", &key, "--wait", "100s", "--redis-file", &file];
        let run = ["--", "sh", "-c", INCREMENT];
        let mut command = crate::binary::command(&[&args[..], &run].concat());
        command.current_dir(&dir);
        command
    };
    let mut servers = std::mem::take(&mut stage.servers.servers);
    let restarts = Cell::new(0);
    let each_was_restarted = || restarts.get() >= indexes.len();
    let increments = increment_all(&stage, locked, each_was_restarted);
    let increments = timeout(Duration::from_secs(240), increments);
    let nemesis = async {
        sleep(LEASE / 3).await;
        loop {
            for &index in indexes {
                servers[index].restart().await.unwrap();
                restarts.set(restarts.get() + 1);
                // The grace, and half as long without.
                sleep(LEASE * 3 / 2).await;
            }
        }
    };
    let made = tokio::select! {
        made = increments => made.expect("all of them in four minutes"),
        () = nemesis => unreachable!("it goes on"),
    };
    assert_eq!(counted(&stage), made);
}

#[tokio::test]
#[ignore = "long: many restarts"]
async fn increments_stay_exact_while_shards_restart_empty() {
    exact_through_restarts(Stage::set(3, LEASE).await, &[1, 2, 1]).await;
}

/// The record's home, too.
#[tokio::test]
async fn increments_stay_exact_while_servers_restart_with_an_append_only_file() {
    let aof = |builder: RedisServerBuilder| {
        let builder = builder.set("appendonly", "yes");
        builder.set("appendfsync", "always")
    };
    let stage = Stage::set_with(3, LEASE, aof).await;
    exact_through_restarts(stage, &[1, 0, 2]).await;
}

/// What the others would come to without locks.
#[tokio::test]
#[ignore = "long: a control"]
async fn increments_without_a_lock_are_lost() {
    let stage = Stage::set(1, LEASE).await;
    let dir = stage.dir.path().to_owned();
    let unlocked = || {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", INCREMENT]).current_dir(&dir);
        command
    };
    let lost = async {
        let mut all = true;
        while all {
            all = increment_all(&stage, unlocked, || true).await == counted(&stage);
        }
    };
    timeout(Duration::from_secs(120), lost).await.unwrap();
}
