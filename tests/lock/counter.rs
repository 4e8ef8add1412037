//! A counter in a plain file, incremented by processes that know nothing of each other, while
//! shards are killed and restarted.

use std::{fs, time::Duration};

use tokio::{
    process::Command,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::Stage;

const PROCESSES: usize = 8;
const INCREMENTS: usize = 200;
const LEASE: Duration = Duration::from_secs(3);

/// Reads, waits, writes: whoever does so at the same time is lost.
const INCREMENT: &str = "n=$(cat counter); sleep 0.01; echo $((n + 1)) > counter";

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

/// Increments while the key's shard and another are killed and restarted, over and over.
async fn exact_through_restarts(mut stage: Stage) {
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
    let increments = timeout(Duration::from_secs(180), increment_all(&stage, locked));
    let nemesis = async {
        loop {
            for index in [1, 2, 1] {
                // Half a grace of it, and then as long without.
                sleep(LEASE * 3 / 2).await;
                servers[index].restart().await.unwrap();
                restarts += 1;
            }
        }
    };
    tokio::select! {
        done = increments => done.expect("all of them in three minutes"),
        () = nemesis => unreachable!("it goes on"),
    }
    assert_eq!(counted(&stage), INCREMENTS);
    assert!(restarts >= 3, "{restarts} restarts");
}

#[tokio::test]
async fn increments_stay_exact_while_shards_restart_empty() {
    exact_through_restarts(Stage::set(3, LEASE).await).await;
}

#[tokio::test]
async fn increments_stay_exact_while_shards_restart_with_an_append_only_file() {
    let aof = |fsync: &'static str| {
        move |builder: ringfence_coordinator::spawn::RedisServerBuilder| {
            builder.set("appendonly", "yes").set("appendfsync", fsync)
        }
    };
    exact_through_restarts(Stage::set_with(3, LEASE, aof("everysec")).await).await;
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
    increment_all(&stage, unlocked).await;
    assert!(counted(&stage) < INCREMENTS, "{}", counted(&stage));
}
