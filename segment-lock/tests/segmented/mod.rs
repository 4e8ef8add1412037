//! What a segmented lock promises, over locks and a record in memory, under simulated time.

mod any;
mod cancel;
mod deadlines;
mod gate;
mod histories;
mod locks;
mod resized;
mod zombies;

use std::{sync::Arc, time::Duration};

use gate::Gated;
use locks::TestLocks;
use ringfence_segment_lock::{
    Account, Durability,
    lock::{Held, SegmentedLock, SegmentedLockError},
    memory::Memory,
};

const SECOND: Duration = Duration::from_secs(1);

type Lock = SegmentedLock<TestLocks>;

/// What processes share: locks, and records.
struct World {
    locks: TestLocks,
    memory: Arc<Memory>,
}

impl World {
    /// With a segmented lock of so many sub-locks.
    async fn of(segments: u32) -> Self {
        let world = Self {
            locks: TestLocks::default(),
            memory: Arc::new(Memory::new(Box::new(|| 0))),
        };
        let created = world.process(0).create(segments, Durability::Memory).await;
        created.unwrap();
        world
    }

    /// A process's lock, that begins at sub-lock `first`.
    fn process(&self, first: u32) -> Lock {
        let name = Account::new("stock/7").unwrap();
        SegmentedLock::open(self.locks.clone(), self.memory.clone(), name, first)
    }

    /// A process's lock, and what its way to the record goes through.
    fn gated(&self) -> (Lock, Arc<Gated>) {
        let gated = Arc::new(Gated::to(self.memory.clone()));
        let name = Account::new("stock/7").unwrap();
        let lock = SegmentedLock::open(self.locks.clone(), gated.clone(), name, 0);
        (lock, gated)
    }

    /// How many sub-locks there are.
    async fn made(&self) -> u32 {
        self.process(0).split().await.unwrap().made()
    }
}

#[tokio::test]
async fn one_that_was_not_created_is_not_there() {
    let world = World {
        locks: TestLocks::default(),
        memory: Arc::new(Memory::new(Box::new(|| 0))),
    };
    let missing = world.process(0).any().acquire().await.unwrap_err();
    assert!(matches!(missing, SegmentedLockError::NoLock { .. }));
    assert_eq!(missing.to_string(), "segmented lock stock/7 does not exist");
    assert!(!missing.is_retryable());
}

#[tokio::test]
async fn one_that_exists_is_left_as_it_is() {
    let world = World::of(4).await;
    let again = world.process(0);
    again.create(2, Durability::Memory).await.unwrap();
    assert_eq!(again.split().await.unwrap().used(), 4);
}

#[tokio::test]
async fn a_number_out_of_range_is_refused_with_its_limit() {
    let world = World::of(4).await;
    let lock = world.process(0);
    for (refused, says) in [
        (
            lock.resize(0).run().await.unwrap_err(),
            "segments is 0, must be 1 to 1024",
        ),
        (
            lock.resize(1025).run().await.unwrap_err(),
            "segments is 1025, must be 1 to 1024",
        ),
        (
            lock.at(4).acquire().await.unwrap_err(),
            "segment is 4, must be less than 4: no more were ever made",
        ),
    ] {
        assert_eq!(refused.to_string(), says);
        assert!(!refused.is_retryable());
    }
}

#[tokio::test]
async fn the_holder_of_one_excludes_the_holder_of_all_and_vice_versa() {
    let world = World::of(3).await;
    let (a, b) = (world.process(0), world.process(0));
    let one = a.at(1).try_acquire().await.unwrap();
    assert_eq!((one.segment(), one.is_held()), (1, true));
    let refused = b.all().try_acquire().await.unwrap_err();
    assert!(matches!(refused, SegmentedLockError::Held { segment: 1 }));
    assert_eq!(world.locks.held(), 1, "what it took before is given back");
    one.release().await;

    let all = b.all().try_acquire().await.unwrap();
    assert_eq!(all.segments().len(), 3);
    let refused = a.any().try_acquire().await.unwrap_err();
    assert!(matches!(
        refused,
        SegmentedLockError::NoneFree { looked_at: 3 }
    ));
    assert_eq!(all.release().await.len(), 3);
    assert_eq!(world.locks.held(), 0);
}

#[tokio::test]
async fn a_loss_of_one_is_a_loss_of_all() {
    let world = World::of(3).await;
    let all = world.process(0).all().acquire().await.unwrap();
    let work = all.run_while_held(async {
        world.locks.expire(2);
        std::future::pending::<()>().await;
    });
    assert_eq!(work.await, None);
    assert!(!all.is_held());
    all.lost().await;
}
