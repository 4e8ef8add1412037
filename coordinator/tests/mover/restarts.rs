//! Shards that die, come back, or stay away while slots move.

use std::time::Duration;

use ringfence_coordinator::{
    mover::{Observer, Phase, WaitingFor},
    topology::shard_id,
};
use tokio::time::{Instant, sleep, timeout};

use super::{
    bank::Bank,
    lockers::{Lockers, acquire, engine},
    stage::{FOR_EVER, Stage, at, moved},
};

const SECOND: Duration = Duration::from_secs(1);

/// Restarts the shard at `index` in every phase, once with its records and once without. Locks wait for its grace;
/// counters only until somebody notices, as whoever renews a lock does, though their slots are sealed.
async fn restarted_in_every_phase(index: usize) {
    for phase in Phase::ALL {
        for (nth, keep_records) in [(1, true), (2, false)] {
            let stage = Stage::new(3).await;
            let lockers = Lockers::start(&stage.ring()).await;
            let bank = Bank::open(&stage.ring()).await;
            let before = stage.record();
            stage.add(3, 1).await;
            let hit = stage.clone();
            let deed = move || hit.faults(index).restart(keep_records);
            let (observer, reached) = at(phase, nth, deed);
            stage.resize_with(6, observer).await;
            assert!(*reached.lock() >= nth, "{phase:?}");
            assert_eq!(moved(&before, &stage.record()), 16, "{phase:?}");
            lockers.stop().await;
            let bank = bank.rest().await;
            let soon = before.constants.grace() / 3;
            assert!(
                bank.longest_wait < soon,
                "{phase:?}: {:?}",
                bank.longest_wait
            );
            match keep_records {
                true => bank.close().await,
                false => bank.close_after_loss().await,
            }
            stage.counters_are_in_place();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_former_shard_may_restart_in_any_phase() {
    restarted_in_every_phase(0).await;
}

#[tokio::test(start_paused = true)]
async fn the_next_shard_may_restart_in_any_phase() {
    restarted_in_every_phase(3).await;
}

/// No engine is there that would notice.
#[tokio::test(start_paused = true)]
async fn a_shard_that_restarts_is_taken_in_again_by_the_mover_itself() {
    for index in [0, 3] {
        for phase in Phase::ALL {
            let stage = Stage::new(3).await;
            stage.add(3, 1).await;
            let hit = stage.clone();
            let (observer, _) = at(phase, 1, move || hit.faults(index).restart(false));
            stage.resize_with(6, observer).await;
            assert_eq!(stage.record().table.quota(&shard_id(3)), 16);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_shard_is_away_the_others_go_on_and_progress_says_so() {
    let stage = Stage::new(3).await;
    let lockers = Lockers::start(&stage.ring()).await;
    stage.remove(2);
    let away = stage.faults(1);
    away.unreachable(true);
    away.hang_up();
    let mover = stage.mover(64, Observer::default());
    let mut progress = mover.progress();
    let going = tokio::spawn(async move { mover.run().await });
    let halfway = progress.wait_for(|progress| progress.slots_moved >= 10);
    let halfway = timeout(FOR_EVER, halfway)
        .await
        .expect("others go on")
        .unwrap()
        .clone();
    let Some(WaitingFor::Shard {
        id,
        reason,
        is_silent: true,
    }) = halfway.waiting_for
    else {
        panic!("it waits for b: {halfway:?}")
    };
    assert_eq!(
        (id, reason.contains("unreachable")),
        (shard_id(1), true),
        "{reason}"
    );
    assert!(
        stage
            .record()
            .migrations
            .iter()
            .all(|migration| migration.to.0 == shard_id(1))
    );
    sleep(5 * SECOND).await;
    away.unreachable(false);
    timeout(FOR_EVER, going)
        .await
        .expect("an end")
        .unwrap()
        .unwrap();
    lockers.stop().await;
}

/// Whoever held a lock before puts it back first.
#[tokio::test(start_paused = true)]
async fn nothing_is_sealed_while_its_shard_is_in_grace() {
    let stage = Stage::new(1).await;
    let lockers = Lockers::start(&stage.ring()).await;
    let (restarted, before) = (Instant::now(), stage.record());
    stage.faults(0).restart(false);
    let taken_in = async {
        while stage.record().version == before.version {
            sleep(SECOND).await;
        }
        // Its slots are open.
        sleep(SECOND).await;
    };
    timeout(FOR_EVER, taken_in).await.expect("it is noticed");
    let grace = before.constants.grace();
    assert!(restarted.elapsed() < grace);
    stage.add(1, 1).await;
    let observer = Observer::new(move |phase| {
        assert!(phase == Phase::Planned || restarted.elapsed() >= grace);
    });
    stage.resize_with(64, observer).await;
    lockers.stop().await;
}

/// Whoever held a lock before puts it back, and is listed then.
#[tokio::test(start_paused = true)]
async fn slots_sealed_before_a_grace_are_listed_after_it() {
    let stage = Stage::new(1).await;
    let lockers = Lockers::start(&stage.ring()).await;
    stage.faults(0).restart(false);
    let (restarted, grace) = (Instant::now(), stage.record().constants.grace());
    // A life that is armed now is armed with slots that leave.
    stage.add(1, 1).await;
    let early = [
        Phase::Planned,
        Phase::CopiedAhead,
        Phase::Sealed,
        Phase::Imported,
        Phase::Admitted,
    ];
    let observer = Observer::new(move |phase| {
        assert!(early.contains(&phase) || restarted.elapsed() >= grace);
    });
    stage.resize_with(64, observer).await;
    lockers.stop().await;
}

/// Its slots are not sealed before their next shard is there: they go on being granted where they are.
#[tokio::test(start_paused = true)]
async fn nothing_is_sealed_while_the_next_shard_is_away() {
    let stage = Stage::new(3).await;
    let engine = engine(&stage.ring(), 1).await;
    stage.add(3, 1).await;
    let away = stage.faults(3);
    away.unreachable(true);
    let mover = stage.mover(64, Observer::new(|phase| assert_eq!(phase, Phase::Planned)));
    let waited = timeout(60 * SECOND, mover.run()).await;
    assert!(waited.is_err());
    drop(mover);
    for nth in 0..64 {
        let key = format!("key/{nth}");
        let granted = timeout(SECOND, acquire(&engine, &key)).await;
        granted.expect("at once").release().await;
    }
    away.unreachable(false);
    stage.resize().await;
}
