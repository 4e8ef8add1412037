//! Two shards side by side.

use std::{
    collections::HashMap,
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use proptest::test_runner::TestCaseError;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    clock::{Clock, Instant},
    ids::Token,
    name::{LockKey, Namespace},
    random::Random,
    shard::{ControlLink, LockLane, LockLink, Shard, ShardError, memory::MemoryShard},
};
use ringfence_ring::{Slot, SlotCount};

use super::{
    notifications::{Ears, listen},
    steps::{Arming, KEYS, Step},
    tally::Tally,
};
use crate::redis_fixture::Redis;

pub(crate) type Checked<T = ()> = Result<T, TestCaseError>;

/// Shows what it is told.
#[derive(Debug, Default)]
pub(crate) struct HandClock(AtomicU64);

impl HandClock {
    fn pass(&self, length: Duration) {
        let nanos = length.as_nanos() as u64;
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn unix(&self) -> Duration {
        unreachable!("a shard takes no wall time")
    }
}

/// An empty Redis, an empty memory shard, and what both have been told.
pub(crate) struct Pair<'a> {
    pub(crate) redis: &'a Redis,
    memory: Arc<MemoryShard>,
    clock: Arc<HandClock>,
    /// To Redis, and to memory.
    pub(crate) locks: [Box<dyn LockLink>; 2],
    /// The same.
    pub(crate) movers: [Box<dyn ControlLink>; 2],
    pub(crate) tally: &'a Tally,
    /// Each used once, as a topology does.
    pub(crate) last_epoch: u64,
    pub(crate) incarnation: u64,
    /// Of the latest move.
    pub(crate) moved: u64,
    /// Slots that are not open.
    pub(crate) away: Vec<Slot>,
    /// Of each nonce.
    pub(crate) tokens: HashMap<u64, Token>,
    /// Of each client.
    pub(crate) ears: Vec<Ears>,
}

impl<'a> Pair<'a> {
    pub(crate) async fn new(redis: &'a Redis, tally: &'a Tally) -> Self {
        redis.flush().await;
        let clock = Arc::new(HandClock::default());
        let memory = MemoryShard::new(clock.clone(), Arc::new(Random::seeded(1)));
        let (locks, movers) = connect(redis, &memory).await;
        let ears = listen(redis, &memory).await;
        tally.count("runs");
        Self {
            redis,
            memory,
            clock,
            locks,
            movers,
            tally,
            last_epoch: 1,
            incarnation: 5,
            moved: 1,
            away: Vec::new(),
            tokens: HashMap::new(),
            ears,
        }
    }

    pub(crate) async fn run(mut self, steps: &[Step]) -> Checked {
        for step in steps {
            self.step(step).await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Checked {
        match step {
            Step::Batch { map, ops } => self.batch(*map, ops).await,
            Step::Inspect { key } => self.inspect(*key).await,
            Step::Arm(arming) => self.arm(arming).await,
            Step::MarkQuiet {
                incarnation,
                map,
                all,
            } => self.mark_quiet(*incarnation, *map, *all).await,
            Step::Change {
                incarnation,
                when,
                mode,
                slots,
                above,
            } => {
                let slots = slots.iter().map(|key| lock_key(*key).slot()).collect();
                let change = self.change(*incarnation, (*when, *mode), slots, *above);
                self.make(&change).await
            }
            Step::Scan(when) => self.scan(*when).await,
            Step::List {
                when,
                held,
                complete,
            } => self.list(*when, held, complete).await,
            Step::StillHeld(when) => self.still_held(*when).await,
            Step::Raise { incarnation, epoch } => self.raise(*incarnation, *epoch).await,
            Step::LoseState { rearm } => {
                self.redis.lose_state().await;
                self.memory.faults().restart(true);
                self.begin_anew(rearm.as_ref()).await
            }
            Step::Forget { rearm } => {
                self.redis.flush().await;
                self.memory.faults().forget();
                self.begin_anew(rearm.as_ref()).await
            }
            Step::Pass(length) => {
                self.redis.elapse(*length).await;
                self.clock.pass(*length);
                Ok(())
            }
        }
    }

    async fn begin_anew(&mut self, rearm: Option<&Arming>) -> Checked {
        (self.locks, self.movers) = connect(self.redis, &self.memory).await;
        self.ears = listen(self.redis, &self.memory).await;
        match rearm {
            Some(arming) => self.arm(arming).await,
            None => Ok(()),
        }
    }

    /// Both answers, or `None` where both made the same error, and are connected anew.
    pub(crate) async fn both<T: Debug>(
        &mut self,
        expected: Result<T, ShardError>,
        found: Result<T, ShardError>,
        what: &impl Debug,
    ) -> Checked<Option<(T, T)>> {
        match (expected, found) {
            (Ok(expected), Ok(found)) => return Ok(Some((expected, found))),
            (Err(ShardError::Unarmed), Err(ShardError::Unarmed)) => self.tally.count("unarmed"),
            (Err(ShardError::Stale { fence: one }), Err(ShardError::Stale { fence: other }))
                if one == other =>
            {
                self.tally.count("stale")
            }
            (expected, found) => self.check(false, what, &expected, &found)?,
        }
        (self.locks, self.movers) = connect(self.redis, &self.memory).await;
        Ok(None)
    }

    /// Fails unless they are the `same`.
    pub(crate) fn check(
        &self,
        same: bool,
        what: &(impl Debug + ?Sized),
        expected: &impl Debug,
        found: &impl Debug,
    ) -> Checked {
        if same {
            return Ok(());
        }
        let difference = format!("{what:?}\n   redis: {expected:?}\n  memory: {found:?}");
        Err(TestCaseError::fail(difference))
    }
}

async fn connect(
    redis: &Redis,
    memory: &MemoryShard,
) -> ([Box<dyn LockLink>; 2], [Box<dyn ControlLink>; 2]) {
    let redis = redis.shard();
    let [locks, in_memory] = [&*redis as &dyn Shard, memory]
        .map(async |shard| shard.connect_locks(LockLane::Work, None).await.unwrap());
    let [movers, movers_in_memory] = [&*redis as &dyn Shard, memory]
        .map(async |shard| shard.connect_control(None).await.unwrap());
    (
        [locks.await, in_memory.await],
        [movers.await, movers_in_memory.await],
    )
}

pub(crate) fn slot_count() -> SlotCount {
    SlotCount::new(16).unwrap()
}

pub(crate) fn lock_key(index: usize) -> LockKey {
    LockKey::new(&Namespace::default(), KEYS[index].as_bytes(), slot_count()).unwrap()
}

/// The slot that may be elsewhere from the start: the last key's.
pub(crate) fn gone() -> Slot {
    lock_key(KEYS.len() - 1).slot()
}
