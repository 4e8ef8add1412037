//! Shards in memory, their topology, and movers of it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::FutureExt;
use parking_lot::Mutex;
use ringfence_coordinator::{
    clock::TokioClock,
    ids::{ClientId, Epoch, Life},
    mover::{Mover, Observer, Pace, Parts, Phase, Resized},
    random::Random,
    shard::{
        Shard, ShardError,
        memory::{Faults, MemoryShard},
    },
    topology::{
        Blueprint, Change, Constants, Dial, Founder, Home, Namespaces, ShardEntry, Swap, Topology,
        TopologyStore, memory::MemoryTopology, shard_id,
    },
};
use ringfence_ring::{ShardId, SlotCount, Weight};
use tokio::time::timeout;

use super::lockers::Ring;

/// Nothing takes so long here.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(3600);

/// Wall time when a simulation begins.
pub(crate) const UNIX: Duration = Duration::from_secs(1_800_000_000);

/// Shards in memory, and their topology.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) shards: Arc<Shards>,
    pub(crate) store: Arc<MemoryTopology>,
    pub(crate) clock: TokioClock,
    random: Arc<Random>,
}

/// Every shard there is, by its id.
#[derive(Debug, Default)]
pub(crate) struct Shards(Mutex<BTreeMap<ShardId, Arc<MemoryShard>>>);

impl Dial for Shards {
    fn dial(&self, id: &ShardId, _: &ShardEntry) -> Result<Arc<dyn Shard>, ShardError> {
        Ok(self.0.lock()[id].clone())
    }
}

impl Stage {
    /// A ring of `count` shards of 64 slots.
    pub(crate) async fn new(count: usize) -> Arc<Self> {
        Self::with_namespaces(count, Namespaces::default()).await
    }

    /// The same, founded with these namespaces.
    pub(crate) async fn with_namespaces(count: usize, namespaces: Namespaces) -> Arc<Self> {
        let clock = TokioClock::starting_at(UNIX);
        let random = Arc::new(Random::seeded(1));
        let shards = Arc::new(Shards::default());
        let mut founders = Vec::new();
        for index in 0..count {
            founders.push(shards.make(index, 1, clock, &random).await);
        }
        let founded = Topology::found(Blueprint {
            id: 1,
            engine: ClientId(1),
            unix: UNIX,
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::new(64).unwrap(),
            namespaces,
            home: Home {
                address: "memory".into(),
                life: Life::new("memory"),
            },
            founders,
        });
        let store = Arc::new(MemoryTopology::new(founded.unwrap()));
        Arc::new(Self {
            shards,
            store,
            clock,
            random,
        })
    }

    /// Where locks are taken.
    pub(crate) fn ring(&self) -> Ring {
        Ring {
            store: self.store.clone(),
            dial: self.shards.clone(),
            clock: Arc::new(self.clock),
            hold: Duration::from_secs(3),
        }
    }

    /// The record in force.
    pub(crate) fn record(&self) -> Arc<Topology> {
        let loaded = self.store.load().now_or_never();
        loaded.expect("it is in memory").unwrap()
    }

    /// Puts what `change` makes of the record in force.
    pub(crate) fn change(&self, change: impl FnOnce(&Topology) -> Topology) -> Arc<Topology> {
        let record = self.record();
        let next = change(&record);
        let swap = self.store.swap(record.version(), &next).now_or_never();
        let swapped = swap.expect("it is in memory").unwrap();
        assert!(matches!(swapped, Swap::Done), "{swapped:?}");
        Arc::new(next)
    }

    /// Begins a resize.
    pub(crate) fn begin(&self, change: Change) -> Arc<Topology> {
        self.change(|record| record.begin(change, UNIX).unwrap())
    }

    /// Turns the one under way back.
    pub(crate) fn abort(&self) -> Arc<Topology> {
        self.change(|record| record.abort(UNIX).unwrap())
    }

    /// Begins to take in a shard of its own.
    pub(crate) async fn add(&self, index: usize, weight: u32) -> Arc<Topology> {
        let change = self.adding(index, weight).await;
        self.begin(change)
    }

    /// Makes a shard, to be taken in.
    pub(crate) async fn adding(&self, index: usize, weight: u32) -> Change {
        let founder = self.shards.make(index, weight, self.clock, &self.random);
        Change {
            add: vec![founder.await],
            ..Change::default()
        }
    }

    /// Begins to do without a shard.
    pub(crate) fn remove(&self, index: usize) -> Arc<Topology> {
        self.begin(Change {
            remove: vec![shard_id(index)],
            ..Change::default()
        })
    }

    /// Begins to give a shard another weight.
    pub(crate) fn weigh(&self, index: usize, weight: u32) -> Arc<Topology> {
        self.begin(Change {
            weigh: [(shard_id(index), Weight::new(weight).unwrap())].into(),
            ..Change::default()
        })
    }

    /// A mover that has `slots_in_flight` migrating, and tells `observer`.
    pub(crate) fn mover(&self, slots_in_flight: usize, observer: Observer) -> Mover {
        Mover::new(Parts {
            store: self.store.clone(),
            dial: self.shards.clone(),
            clock: Arc::new(self.clock),
            random: self.random.clone(),
            pace: Pace {
                slots_in_flight,
                pause: Duration::from_millis(4),
            },
            servers_are_new: true,
            observer,
        })
    }

    /// Moves slots to the end.
    pub(crate) async fn resize(&self) -> Resized {
        self.resize_with(16, Observer::default()).await
    }

    pub(crate) async fn resize_with(&self, in_flight: usize, observer: Observer) -> Resized {
        let mover = self.mover(in_flight, observer);
        let resized = timeout(FOR_EVER, mover.run()).await;
        let stuck = || {
            format!(
                "stuck at {:?}: {:?}",
                mover.progress().borrow(),
                self.record()
            )
        };
        let resized = resized.unwrap_or_else(|_| panic!("{}", stuck())).unwrap();
        let record = self.record();
        assert!(record.goal.is_none() && record.migrations.is_empty());
        resized
    }

    /// Every counter is at one shard, and it is the one that has its slot.
    pub(crate) fn counters_are_in_place(&self) {
        let record = self.record();
        for (id, shard) in &*self.shards.0.lock() {
            for key in shard.counters() {
                assert_eq!(record.table.owner(key.slot()), id, "{key}");
            }
        }
    }

    pub(crate) fn faults(&self, index: usize) -> Faults {
        self.shards.0.lock()[&shard_id(index)].faults()
    }

    /// The shard at `index`.
    pub(crate) fn shard(&self, index: usize) -> Arc<MemoryShard> {
        self.shards.0.lock()[&shard_id(index)].clone()
    }
}

impl Shards {
    async fn make(
        &self,
        index: usize,
        weight: u32,
        clock: TokioClock,
        random: &Arc<Random>,
    ) -> Founder {
        let id = shard_id(index);
        let shard = MemoryShard::new(Arc::new(clock), random.clone());
        let link = shard.connect_control(None).await.unwrap();
        let life = link.life().clone();
        let founder = Founder {
            id: id.clone(),
            // Another server than one that had the id before.
            address: format!("memory:{life}"),
            life,
            weight: Weight::new(weight).unwrap(),
            zone: None,
        };
        self.0.lock().insert(id, shard);
        founder
    }
}

/// How many slots are another's than before.
pub(crate) fn moved(before: &Topology, after: &Topology) -> u32 {
    let slots = before.table.slots().iter();
    let moved = slots.filter(|&slot| before.table.owner(slot) != after.table.owner(slot));
    moved.count() as u32
}

/// Does `deed` when `phase` is reached for the `nth` time.
pub(crate) fn at(
    phase: Phase,
    nth: usize,
    deed: impl FnOnce() + Send + 'static,
) -> (Observer, Arc<Mutex<usize>>) {
    let count = Arc::new(Mutex::new(0));
    let (counted, deed) = (count.clone(), Mutex::new(Some(deed)));
    let observer = Observer::new(move |reached| {
        if reached != phase {
            return;
        }
        *counted.lock() += 1;
        if *counted.lock() == nth
            && let Some(deed) = deed.lock().take()
        {
            deed();
        }
    });
    (observer, count)
}
