//! Movers that are killed, each in another phase, on Redis servers: another goes on.

use std::{os::unix::process::ExitStatusExt, process::Stdio};

use ringfence_coordinator::{failpoint::KILL_AT, mover::Phase, topology::TopologyStore};
use ringfence_test_support::eventually;

use super::{
    bank::Bank,
    lockers::Lockers,
    servers::{Stage, mover, ring, topology},
    stage::moved,
};

/// The seeds, for a process that is to move slots.
const SEEDS: &str = "RINGFENCE_MOVER_SEEDS";

const SIGKILL: i32 = 9;

/// Not a test: a process that another starts.
#[tokio::test]
#[ignore = "started by another test"]
async fn process() {
    let Ok(seeds) = std::env::var(SEEDS) else {
        return;
    };
    let seeds: Vec<_> = seeds.split(',').map(str::to_owned).collect();
    let store = topology(&seeds).await;
    mover(&ring(&store)).run().await.unwrap();
}

/// Starts a mover that kills itself when it reaches `phase`, and waits until it has.
async fn kill_one_at(phase: Phase, seeds: &str) {
    let mut process = std::process::Command::new(std::env::current_exe().unwrap());
    process
        .args(["--ignored", "--exact", "mover::killed::process"])
        .env(SEEDS, seeds)
        .env(KILL_AT, phase.as_str())
        .stdout(Stdio::null());
    let mut process = process.spawn().unwrap();
    let mut ended = || process.try_wait().unwrap();
    eventually("its end", || std::future::ready(ended().is_some())).await;
    let status = ended().unwrap();
    assert_eq!(status.signal(), Some(SIGKILL), "{phase:?}: {status}");
}

#[tokio::test]
#[ignore = "long: every phase of a move"]
async fn the_next_mover_continues_after_one_that_was_killed_in_any_phase() {
    let stage = Stage::new().await;
    let urls: Vec<_> = stage.servers[..3]
        .iter()
        .map(|server| server.url())
        .collect();
    let lockers = Lockers::start(&ring(&stage.store)).await;
    let bank = Bank::open(&ring(&stage.store)).await;
    let mut grow = true;
    for phase in Phase::ALL {
        let before = stage.begin(grow).await;
        kill_one_at(phase, &urls.join(",")).await;
        kill_one_at(phase, &urls.join(",")).await;
        stage.resize().await;
        let after = stage.store.load().await.unwrap();
        assert_eq!(moved(&before, &after), 64, "{phase:?}");
        grow = !grow;
    }
    lockers.stop().await;
    bank.close().await;
}
