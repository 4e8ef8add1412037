//! A counter in a plain file, incremented by processes that know nothing of each other, while
//! shards are killed and restarted.

use std::{fs, time::Duration};

use ringfence_coordinator::spawn::RedisServerBuilder;
use tokio::{
    process::Command,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::Stage;

const PROCESSES: usize = 8;
const INCREMENTS: usize = 200;
const LEASE: Duration = Duration::from_secs(4);

/// Reads, waits, writes: an increment at the same time is lost.
const INCREMENT: &str = "n=$(cat counter); sleep 0.03; echo $((n + 1)) > counter";

/// Has `INCREMENTS` made by `PROCESSES` at a time, each by what `command` makes. All must succeed.
async fn increment_all(stage: &Stage, command: impl Fn() -> std::process::Command) {
    fs::write(stage.path("counter"), "0\n").unwrap();
    let mut processes = JoinSet::new();
    for _ in 0..PROCESSES {
        let commands: Vec<_> = (0..INCREMENTS / PROCESSES).map(|_| command()).collect();
        processes.spawn(async move {
            for command in commands {
                let mut command = Command::from(command);
                let ran = command.kill_on_drop(true).output().await.unwrap();
                assert!(ran.status.success(), "{ran:?}");
            }
        });
    }
    while let Some(ended) = processes.join_next().await {
        ended.unwrap();
    }
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
    let mut restarts = 0;
    let mut servers = std::mem::take(&mut stage.servers.servers);
    let increments = timeout(Duration::from_secs(240), increment_all(&stage, locked));
    let nemesis = async {
        // Early, and often enough that the increments cannot be done before the third.
        sleep(LEASE / 3).await;
        loop {
            for &index in indexes {
                servers[index].restart().await.unwrap();
                restarts += 1;
                // The grace, and half as long without.
                sleep(LEASE * 3 / 2).await;
            }
        }
    };
    tokio::select! {
        done = increments => done.expect("all of them in four minutes"),
        () = nemesis => unreachable!("it goes on"),
    }
    assert_eq!(counted(&stage), INCREMENTS);
    assert!(restarts >= 3, "{restarts} restarts");
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
            increment_all(&stage, unlocked).await;
            all = counted(&stage) == INCREMENTS;
        }
    };
    timeout(Duration::from_secs(120), lost).await.unwrap();
}
