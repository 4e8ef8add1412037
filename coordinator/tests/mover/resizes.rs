//! Whole resizes: the fewest moves, no more at a time than allowed, no lock lost.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use ringfence_coordinator::{
    ids::{ClientId, MapVersion, Nonce},
    mover::{Observer, Phase, Progress},
    name::{LockKey, Namespace},
    shard::{LockLane, Op, Request, Shard},
    topology::shard_id,
};
use tokio::time::{Instant, timeout};

use super::{
    bank::Bank,
    lockers::{Lockers, engine},
    stage::{Stage, moved},
};

#[tokio::test(start_paused = true)]
async fn from_three_shards_to_four_and_back_no_lock_is_lost_and_no_slot_moves_in_vain() {
    let stage = Stage::new(3).await;
    let lockers = Lockers::start(&stage.ring()).await;
    let bank = Bank::open(&stage.ring()).await;
    for grow in [true, false] {
        let before = stage.record();
        let begun = match grow {
            true => stage.add(3, 1).await,
            false => stage.remove(3),
        };
        let preview = begun.preview().unwrap();
        let resized = stage.resize().await;
        let after = stage.record();
        assert_eq!(moved(&before, &after), 16);
        assert_eq!((preview.slots_to_move(), resized.slots_moved), (16, 16));
        assert!(resized.locks_carried > 0 && resized.counters_carried > 0);
        assert_eq!(after.version, resized.version);
        assert_eq!(after.shards.len(), if grow { 4 } else { 3 });
        for share in preview.shards {
            assert_eq!(
                after.table.quota(&share.id),
                share.slots_after,
                "{}",
                share.id
            );
        }
    }
    lockers.stop().await;
    bank.close().await;
    stage.counters_are_in_place();
}

#[tokio::test(start_paused = true)]
async fn from_one_shard_to_another() {
    let stage = Stage::new(1).await;
    let lockers = Lockers::start(&stage.ring()).await;
    let bank = Bank::open(&stage.ring()).await;
    stage.add(1, 1).await;
    stage.resize().await;
    stage.remove(0);
    stage.resize().await;
    assert_eq!(stage.record().table.quota(&shard_id(1)), 64);
    lockers.stop().await;
    bank.close().await;
    stage.counters_are_in_place();
}

#[tokio::test(start_paused = true)]
async fn other_weights_move_slots_and_nothing_else() {
    let stage = Stage::new(3).await;
    let lockers = Lockers::start(&stage.ring()).await;
    let bank = Bank::open(&stage.ring()).await;
    let before = stage.record();
    let begun = stage.weigh(1, 3);
    let to_move = begun.preview().unwrap().slots_to_move();
    stage.resize().await;
    let after = stage.record();
    assert_eq!(moved(&before, &after), to_move);
    assert_eq!(after.table.quota(&shard_id(1)), 38);
    lockers.stop().await;
    bank.close().await;
    stage.counters_are_in_place();
}

#[tokio::test(start_paused = true)]
async fn without_a_goal_there_is_nothing_to_do() {
    let stage = Stage::new(2).await;
    let before = stage.record();
    let resized = stage.resize().await;
    assert_eq!((resized.slots_moved, resized.locks_carried), (0, 0));
    assert_eq!(stage.record(), before);
}

#[tokio::test(start_paused = true)]
async fn no_more_slots_migrate_than_allowed_and_progress_counts_them() {
    let stage = Stage::new(3).await;
    let lockers = Lockers::start(&stage.ring()).await;
    let bank = Bank::open(&stage.ring()).await;
    stage.add(3, 2).await;
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (watched, sink) = (stage.clone(), seen.clone());
    let observer = Observer::new(move |phase| {
        if phase == Phase::Planned {
            let record = watched.record();
            let migrations = record.migrations.iter();
            sink.lock()
                .push(migrations.map(|migration| migration.slots.len()).sum());
        }
    });
    let mover = stage.mover(5, observer);
    let mut progress = mover.progress();
    let watching = tokio::spawn(async move {
        let mut all: Vec<Progress> = Vec::new();
        while progress.changed().await.is_ok() {
            all.push(progress.borrow_and_update().clone());
        }
        all
    });
    let resized = mover.run().await.unwrap();
    drop(mover);
    let all = watching.await.unwrap();
    assert!(seen.lock().len() > 5 && seen.lock().iter().all(|&slots| slots <= 5));
    assert!(all.iter().all(|progress| progress.migrating <= 5));
    assert!(all.is_sorted_by_key(|progress| progress.slots_moved));
    let last = all.last().unwrap();
    assert_eq!((last.slots_moved, last.migrating), (resized.slots_moved, 0));
    assert!(
        all.iter()
            .all(|progress| progress.slots_to_move == resized.slots_moved)
    );
    assert!(all.iter().any(|progress| progress.left.is_some()));
    lockers.stop().await;
    bank.close().await;
    stage.counters_are_in_place();
}

/// A slot is open where it goes only once its counters are there too.
#[tokio::test(start_paused = true)]
async fn while_the_next_shard_has_no_room_for_counters_their_slots_are_not_opened() {
    let stage = Stage::new(3).await;
    // It arms the shards.
    let _engine = engine(&stage.ring(), 1).await;
    let bank = Bank::open(&stage.ring()).await;
    stage.add(3, 1).await;
    stage.faults(3).out_of_memory(true);
    let mover = stage.mover(64, Observer::default());
    assert!(timeout(Duration::from_secs(60), mover.run()).await.is_err());
    let record = stage.record();
    let waiting_for = mover.progress().borrow().waiting_for.clone();
    let said = waiting_for.unwrap().to_string();
    assert!(said.contains("no memory for counters"), "{said}");
    assert!(record.migrations.iter().any(|migration| !migration.listed));
    stage.faults(3).out_of_memory(false);
    stage.resize().await;
    bank.close().await;
    stage.counters_are_in_place();
}

/// A request by the new map needs no check of the slots.
#[tokio::test(start_paused = true)]
async fn shards_are_quiet_after_a_resize() {
    let stage = Stage::new(3).await;
    stage.add(3, 1).await;
    stage.resize().await;
    let record = stage.record();
    let key = LockKey::new(&Namespace::default(), b"nothing", record.table.slots()).unwrap();
    for index in 0..4 {
        let release = Request {
            key: key.clone(),
            map: record.shard(&shard_id(index)).unwrap().changed,
            declared: MapVersion::UNKNOWN,
            op: Op::Release {
                nonce: Nonce {
                    client: ClientId(9),
                    sequence: 1,
                },
            },
        };
        let link = stage.shard(index).connect_locks(LockLane::Work, None).await;
        let answers = link.unwrap().call(&[release]).await.unwrap();
        assert!(answers.quiet, "shard {index}");
    }
}

/// When phases were reached, from the beginning of a resize on.
#[derive(Clone, Default)]
struct Times(Arc<Mutex<Vec<(Phase, Duration)>>>);

impl Times {
    fn observer(&self) -> Observer {
        let (times, begin) = (self.0.clone(), Instant::now());
        Observer::new(move |phase| times.lock().push((phase, begin.elapsed())))
    }

    fn of(&self, phase: Phase) -> Vec<Duration> {
        let times = self.0.lock();
        let of_it = times.iter().filter(|(its, _)| *its == phase);
        of_it.map(|(_, at)| *at).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_held_nothing_is_waited_for() {
    let stage = Stage::new(3).await;
    stage.add(3, 1).await;
    let times = Times::default();
    stage.resize_with(16, times.observer()).await;
    let finished = times.of(Phase::Finished);
    assert!(finished[0] < Duration::from_millis(500), "{finished:?}");
}

#[tokio::test(start_paused = true)]
async fn the_record_has_lists_at_once_and_what_is_finished_once_a_second() {
    let stage = Stage::new(3).await;
    let lockers = Lockers::start(&stage.ring()).await;
    for grow in [true, false] {
        match grow {
            true => stage.add(3, 1).await,
            false => stage.remove(3),
        };
        let times = Times::default();
        stage.resize_with(16, times.observer()).await;
        let delivered = times.of(Phase::Delivered);
        for at in times.of(Phase::Listed) {
            // Of the last that had to be there.
            let last = delivered.iter().rfind(|delivered| **delivered <= at);
            assert!(
                at - *last.unwrap() < Duration::from_millis(100),
                "{at:?}, {delivered:?}"
            );
        }
        let finished = times.of(Phase::Finished);
        let all_but_the_last = finished.windows(2).rev().skip(1);
        for pair in all_but_the_last {
            assert!(
                pair[1] - pair[0] >= Duration::from_millis(900),
                "{finished:?}"
            );
        }
    }
    lockers.stop().await;
}
