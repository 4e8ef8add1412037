//! Movers that are dropped, doubled, delayed, and resizes that are turned back: it goes on from the record.

use std::time::Duration;

use ringfence_conformance::cancel::{after_every_turn, dropped_after};
use ringfence_coordinator::{
    mover::{Observer, Phase},
    topology::{Change, ResizeError, shard_id},
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    bank::Bank,
    lockers::Lockers,
    stage::{FOR_EVER, Stage, at, moved},
};

const MILLISECOND: Duration = Duration::from_millis(1);

/// A turn in which everybody else gets on.
async fn turn() {
    sleep(40 * MILLISECOND).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "long: every step of a move"]
async fn the_next_mover_continues_after_one_that_was_dropped() {
    let stage = Stage::new(3).await;
    for shard in 0..3 {
        stage.faults(shard).latency(MILLISECOND..8 * MILLISECOND);
    }
    let lockers = Lockers::start(&stage.ring()).await;
    let bank = Bank::open(&stage.ring()).await;
    let mut grow = true;
    after_every_turn("a resize", async |turns| {
        let before = stage.record();
        if grow {
            stage.add(3, 1).await;
            stage.faults(3).latency(MILLISECOND..8 * MILLISECOND);
        } else {
            stage.remove(3);
        }
        let mover = stage.mover(8, Observer::default());
        let done = dropped_after(turns, turn, mover.run()).await.is_some();
        stage.resize().await;
        assert_eq!(moved(&before, &stage.record()), 16);
        grow = !grow;
        done
    })
    .await;
    lockers.stop().await;
    bank.close().await;
    stage.counters_are_in_place();
}

#[tokio::test(start_paused = true)]
async fn two_movers_at_once_do_no_harm() {
    let stage = Stage::new(3).await;
    let lockers = Lockers::start(&stage.ring()).await;
    let bank = Bank::open(&stage.ring()).await;
    for grow in [true, false, true, false] {
        let before = stage.record();
        match grow {
            true => stage.add(3, 1).await,
            false => stage.remove(3),
        };
        let (one, other) = (
            stage.mover(8, Observer::default()),
            stage.mover(6, Observer::default()),
        );
        let both = async { tokio::join!(one.run(), other.run()) };
        let (one, other) = timeout(FOR_EVER, both).await.expect("an end");
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_eq!(one.version, other.version);
        assert_eq!(moved(&before, &stage.record()), 16);
    }
    lockers.stop().await;
    bank.close().await;
    stage.counters_are_in_place();
}

#[tokio::test(start_paused = true)]
async fn a_resize_turned_back_in_any_phase_ends_where_it_began() {
    for phase in Phase::ALL {
        for nth in [1, 3] {
            let stage = Stage::new(3).await;
            let lockers = Lockers::start(&stage.ring()).await;
            let bank = Bank::open(&stage.ring()).await;
            let before = stage.record();
            stage.add(3, 1).await;
            let turned = stage.clone();
            let (observer, reached) = at(phase, nth, move || drop(turned.abort()));
            stage.resize_with(6, observer).await;
            assert!(*reached.lock() >= nth, "{phase:?}");
            let after = stage.record();
            assert_eq!(after.weights(), before.weights(), "{phase:?}");
            assert!(after.shards.keys().eq(before.shards.keys()));
            // What one had above its share may be another's now.
            assert!(moved(&before, &after) <= 1, "{phase:?}");
            lockers.stop().await;
            bank.close().await;
            stage.counters_are_in_place();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_abort_of_an_abort_goes_on_in_any_phase() {
    for phase in Phase::ALL {
        let stage = Stage::new(3).await;
        let lockers = Lockers::start(&stage.ring()).await;
        let bank = Bank::open(&stage.ring()).await;
        stage.add(3, 1).await;
        let (first, second) = (stage.clone(), stage.clone());
        let (turned, mut is_turned) = watch::channel(());
        let (observer, _) = at(phase, 1, move || {
            first.abort();
            turned.send_replace(());
        });
        let mover = stage.mover(6, observer);
        tokio::select! {
            biased;
            turned = is_turned.changed() => turned.unwrap(),
            _ = mover.run() => panic!("it was to be dropped under way"),
        }
        let (observer, reached) = at(Phase::Sealed, 1, move || drop(second.abort()));
        stage.resize_with(6, observer).await;
        assert!(*reached.lock() > 0, "{phase:?}");
        assert_eq!(stage.record().table.quota(&shard_id(3)), 16, "{phase:?}");
        lockers.stop().await;
        bank.close().await;
        stage.counters_are_in_place();
    }
}

/// The process that gives orders need not be the mover.
#[tokio::test(start_paused = true)]
async fn a_resize_is_begun_and_turned_back_by_others_while_it_runs() {
    let stage = Stage::new(3).await;
    let lockers = Lockers::start(&stage.ring()).await;
    let bank = Bank::open(&stage.ring()).await;
    let (runs, orders) = (
        stage.mover(6, Observer::default()),
        stage.mover(6, Observer::default()),
    );
    let refused = orders.abort().await;
    assert!(
        matches!(refused, Err(ResizeError::NoneUnderWay)),
        "{refused:?}"
    );
    let before = stage.record();
    let begun = orders.begin(stage.adding(3, 1).await).await.unwrap();
    let refused = orders.begin(Change::default()).await;
    assert!(
        matches!(refused, Err(ResizeError::UnderWay { .. })),
        "{refused:?}"
    );
    let turned_back = async {
        sleep(Duration::from_secs(12)).await;
        orders.abort().await.unwrap()
    };
    let both = async { tokio::join!(runs.run(), turned_back) };
    let (resized, turned) = timeout(FOR_EVER, both).await.expect("an end");
    assert!(turned.version > begun.version && resized.unwrap().version > turned.version);
    assert_eq!(stage.record().weights(), before.weights());
    lockers.stop().await;
    bank.close().await;
    stage.counters_are_in_place();
}

/// A mover on a suspended machine wakes long after, when the slots have moved on.
#[tokio::test(start_paused = true)]
async fn a_mover_that_wakes_after_a_later_resize_changes_nothing() {
    for phase in [
        Phase::Planned,
        Phase::Sealed,
        Phase::Copied,
        Phase::Arrived,
        Phase::Dropped,
        Phase::Scanned,
        Phase::Listed,
        Phase::Opened,
    ] {
        let stage = Stage::new(3).await;
        let lockers = Lockers::start(&stage.ring()).await;
        let bank = Bank::open(&stage.ring()).await;
        stage.add(3, 1).await;
        let (reach, mut reached) = watch::channel(());
        let (observer, _) = at(phase, 2, move || reach.send_replace(()));
        let zombie = stage.mover(8, observer);
        let mut run = Box::pin(zombie.run());
        tokio::select! {
            _ = &mut run => panic!("it was to be held up"),
            reached = reached.changed() => reached.unwrap(),
        }
        // Nobody looks at it any more, and what was begun of it goes on by the record of then.
        stage.resize().await;
        stage.remove(3);
        stage.resize().await;
        let after = stage.record();
        timeout(FOR_EVER, run).await.expect("an end").unwrap();
        assert_eq!(stage.record(), after);
        lockers.stop().await;
        bank.close().await;
        stage.counters_are_in_place();
    }
}
