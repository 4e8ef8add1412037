//! Shards that are gone for good, while locks are held there.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ringfence_coordinator::{
    mover::{Observer, Phase},
    topology::{Topology, memory::MemoryTopology, shard_id},
};
use tokio::time::{Instant, sleep, timeout};

use super::{
    bank::Bank,
    lockers::{Lockers, acquire, engine},
    stage::{Stage, UNIX, at},
};

const SECOND: Duration = Duration::from_secs(1);

impl Stage {
    /// Nobody hears of the shard at `index` again.
    pub(crate) fn kill(&self, index: usize) {
        self.faults(index).unreachable(true);
        self.faults(index).hang_up();
    }

    /// Declares the shard at `index` dead; its slots are not open yet.
    pub(crate) fn decommission(&self, index: usize) -> Arc<Topology> {
        self.change(|record| record.decommission(&shard_id(index), UNIX).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_shard_that_is_gone_the_others_have_its_slots_and_no_lock_is_lost() {
    let stage = Stage::new(3).await;
    let lockers = Lockers::start(&stage.ring()).await;
    stage.kill(2);
    sleep(5 * SECOND).await;
    stage.decommission(2);
    stage.resize().await;
    let record = stage.record();
    assert_eq!((record.openings.len(), record.failed.len()), (0, 1));
    assert_eq!(
        [0, 1].map(|index| record.table.quota(&shard_id(index))),
        [32; 2]
    );
    sleep(60 * SECOND).await;
    lockers.stop().await;
}

/// Buries the shard at `index` in every phase of a resize.
async fn buried_in_every_phase(index: usize) {
    for phase in Phase::ALL {
        for nth in [1, 2] {
            let stage = Stage::new(3).await;
            let lockers = Lockers::start(&stage.ring()).await;
            let bank = Bank::open(&stage.ring()).await;
            stage.add(3, 1).await;
            let hit = stage.clone();
            let deed = move || {
                hit.kill(index);
                hit.decommission(index);
            };
            let (observer, reached) = at(phase, nth, deed);
            stage.resize_with(6, observer).await;
            assert!(*reached.lock() >= nth, "{phase:?}");
            let record = stage.record();
            assert!(record.openings.is_empty(), "{phase:?}");
            let left = (0..4).filter(|it| *it != index).map(shard_id);
            let members: BTreeSet<_> = record.table.shards().iter().cloned().collect();
            assert_eq!(members, left.collect(), "{phase:?}");
            sleep(60 * SECOND).await;
            lockers.stop().await;
            bank.close_after_loss().await;
        }
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "long: every phase of a move"]
async fn the_former_shard_may_be_gone_for_good_in_any_phase() {
    buried_in_every_phase(0).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "long: every phase of a move"]
async fn the_next_shard_may_be_gone_for_good_in_any_phase() {
    buried_in_every_phase(3).await;
}

/// Theirs begins with it, and nothing that waits for its end is needed for it.
#[tokio::test(start_paused = true)]
async fn shards_in_grace_are_opened_at_once_by_any_mover() {
    let stage = Stage::new(3).await;
    engine(&stage.ring(), 1).await.close(SECOND).await;
    stage.kill(2);
    stage.decommission(2);
    for index in [0, 1] {
        stage.faults(index).restart(true);
    }
    let began = Instant::now();
    stage.resize().await;
    assert!(stage.record().openings.is_empty());
    assert!(began.elapsed() < 10 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn while_one_heir_is_away_the_other_is_opened() {
    let stage = Stage::new(3).await;
    engine(&stage.ring(), 1).await.close(SECOND).await;
    stage.kill(2);
    stage.decommission(2);
    stage.kill(1);
    let mover = stage.mover(6, Observer::default());
    assert!(timeout(60 * SECOND, mover.run()).await.is_err());
    let record = stage.record();
    let [opening] = &record.openings[..] else {
        panic!("{:?}", record.openings)
    };
    assert_eq!(opening.to.0, shard_id(1));
    let waiting_for = mover.progress().borrow().waiting_for.clone();
    assert!(waiting_for.unwrap().to_string().starts_with("shard b: "));
    stage.faults(1).unreachable(false);
    stage.resize().await;
    assert!(stage.record().openings.is_empty());
}

/// A process that never hears of anything goes on with it: where removal is supervised, somebody attested
/// that there is none.
#[tokio::test(start_paused = true)]
async fn a_shard_declared_dead_that_returns_is_told_and_grants_nothing_more() {
    let stage = Stage::new(3).await;
    // Every shard is armed: no epoch is allotted twice, though there are two records.
    engine(&stage.ring(), 2).await.close(SECOND).await;
    let mut ring = stage.ring();
    ring.store = Arc::new(MemoryTopology::new(Topology::clone(&stage.record())));
    let behind = engine(&ring, 1).await;
    let key = stage.key_at(2);
    acquire(&behind, &key).await.release().await;
    stage.decommission(2);
    stage.resize().await;
    let granted = timeout(60 * SECOND, acquire(&behind, &key)).await;
    assert!(granted.is_err());
}
