//! Without a command: holds the lock until stdin closes or a signal comes.

use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::io::{AsyncBufReadExt, BufReader};

use super::{Running, Stage, our_line};

const LEASE: Duration = Duration::from_secs(4);

/// Starts it, and waits for the token.
async fn keep(stage: &Stage) -> (Running, u64) {
    let mut running = stage.start("key", &["--until-eof"], &[]);
    let mut stdout = BufReader::new(running.0.stdout.as_mut().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    (running, line.trim_end().parse().unwrap())
}

#[tokio::test]
async fn the_lock_is_held_until_stdin_closes() {
    let stage = Stage::set(1, LEASE).await;
    let (mut running, token) = keep(&stage).await;
    let client = stage.servers.client().await;
    let held = client.lock("key").inspect().await.unwrap().holder.unwrap();
    assert_eq!(held.token.get(), token);
    client.close().await;
    tokio::time::sleep(LEASE * 5 / 4).await;
    assert!(!stage.is_free("key"), "it is renewed");

    drop(running.0.stdin.take());
    let ran = running.output().await;
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:?}");
    assert!(stage.is_free("key"));
}

#[tokio::test]
async fn the_lock_is_held_until_a_signal_comes() {
    let stage = Stage::set(1, LEASE).await;
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let (mut running, _) = keep(&stage).await;
        let _open = running.0.stdin.take();
        running.signal(signal);
        let ran = running.output().await;
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:?}");
        assert!(stage.is_free("key"));
    }
}

#[tokio::test]
async fn a_lock_that_is_lost_is_80() {
    let stage = Stage::set(1, LEASE).await;
    let (mut running, _) = keep(&stage).await;
    let _open = running.0.stdin.take();
    stage.servers.servers[0].stop();
    let ran = running.output().await;
    assert_eq!(ran.code, 80, "{ran:?}");
    assert!(our_line(&ran).starts_with("the lock was lost"), "{ran:?}");
    stage.servers.servers[0].cont();
}
