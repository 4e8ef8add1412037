//! What a mover's rules are for: each switched off, in a simulation in which all is well otherwise.
//!
//! A rule is off in all of the process, so the tests here take turns.

#![expect(clippy::unwrap_used, reason = "what a test unwraps is what it expects")]

#[path = "../mover/lockers.rs"]
mod lockers;
#[path = "../mover/stage.rs"]
#[expect(dead_code, reason = "the mover's own tests use the rest")]
mod stage;

use std::time::Duration;

use futures_util::FutureExt;
use ringfence_coordinator::{
    failpoint::{Rule, switch_off},
    mover::Phase,
    shard::Shard,
    topology::shard_id,
};
use tokio::{
    sync::Mutex,
    task::{JoinError, JoinSet},
    time::timeout,
};

use crate::{
    lockers::Lockers,
    stage::{Stage, UNIX, at},
};

/// Held by the test that has its turn.
static TURN: Mutex<()> = Mutex::const_new(());

/// What became of locks that are taken while three shards become four and three again.
async fn resized() -> Result<(), JoinError> {
    let stage = Stage::new(3).await;
    let mut going = JoinSet::new();
    going.spawn(async move {
        let lockers = Lockers::start(&stage.ring()).await;
        stage.add(3, 1).await;
        stage.resize().await;
        stage.remove(3);
        stage.resize().await;
        lockers.stop().await;
    });
    going.join_next().await.expect("there is one")
}

/// Arms a shard as the record says.
fn arm(stage: &Stage, index: usize) {
    let (id, record) = (shard_id(index), stage.record());
    let arm = record.arm(&id, record.grace(&id, false));
    let armed = async {
        let link = stage.shard(index).connect_control(None).await;
        link.unwrap().arm(&arm).await.unwrap().armed_now
    };
    assert!(armed.now_or_never().expect("it takes no time"));
}

fn says(resized: Result<(), JoinError>, words: &[&str]) {
    let panic = resized.expect_err("something breaks").into_panic();
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.unwrap_or_else(|| panic.downcast_ref::<&str>().unwrap().to_string());
    assert!(words.iter().any(|word| text.contains(word)), "{text}");
}

#[tokio::test(start_paused = true)]
async fn with_every_rule_in_force_all_is_well() {
    let _turn = TURN.lock().await;
    resized().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_list_of_before_the_seal_makes_two_holders() {
    let _turn = TURN.lock().await;
    let _off = switch_off(Rule::ListAfterSeal);
    says(resized().await, &["two holders", "lost"]);
}

#[tokio::test(start_paused = true)]
async fn opening_what_is_not_empty_makes_two_holders_or_loses_a_lock() {
    let _turn = TURN.lock().await;
    let _off = switch_off(Rule::OpenWhenEmpty);
    says(resized().await, &["two holders", "lost"]);
}

/// The next shard came back after its slots were opened, and knows nothing of that; and nobody tells it,
/// because the record says that they are where they belong.
#[tokio::test(start_paused = true)]
async fn a_move_finished_in_a_later_record_leaves_slots_that_nobody_opens() {
    let _turn = TURN.lock().await;
    for off in [false, true] {
        let _off = off.then(|| switch_off(Rule::FinishAtVersion));
        let stage = Stage::new(1).await;
        stage.add(1, 1).await;
        let hit = stage.clone();
        let (observer, _) = at(Phase::Shut, 1, move || {
            hit.faults(1).restart(false);
            let life = hit.shard(1).traces().life;
            hit.change(|record| record.reborn(&shard_id(1), life, UNIX).unwrap().unwrap());
            arm(&hit, 1);
        });
        stage.resize_with(64, observer).await;
        let engine = lockers::engine(&stage.ring(), 1).await;
        let all = async {
            for nth in 0..64 {
                drop(lockers::acquire(&engine, &format!("key/{nth}")).await);
            }
        };
        let had = timeout(Duration::from_secs(600), all).await;
        assert_eq!(had.is_err(), off);
    }
}
