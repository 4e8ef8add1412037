//! One slot on its way from one shard to another, step by step, and the engines of several processes meanwhile.
#![expect(
    clippy::disallowed_methods,
    reason = "the tasks are a test's, and end with it"
)]

mod holders;
mod mover;
mod newcomers;
mod releases;
mod waiters;

use std::{sync::Arc, time::Duration};

use ringfence_coordinator::{
    clock::TokioClock,
    engine::{Acquire, AcquireError, Engine, Guard, Parts, Sharing, Wait},
    ids::{ClientId, Epoch, Life},
    name::{Label, LockKey, Namespace},
    random::Random,
    shard::{Holder, Shard, ShardError, memory::MemoryShard},
    topology::{
        Blueprint, Constants, Dial, Founder, Home, Namespaces, ShardEntry, Topology, TopologyStore,
        memory::MemoryTopology, shard_id,
    },
};
use ringfence_ring::{ShardId, SlotCount, Weight};
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);
/// Nothing takes so long here.
const FOR_EVER: Duration = Duration::from_secs(300);
/// Every holder renews within this, and every waiter asks again.
const SOON: Duration = Duration::from_secs(11);

/// Two shards, and a key in a slot that goes from `a` to `b`.
#[derive(Clone, Debug)]
struct Ring {
    shards: Arc<[Arc<MemoryShard>; 2]>,
    store: Arc<MemoryTopology>,
    clock: TokioClock,
    key: &'static str,
    /// Another, in `b`'s own slot.
    other: &'static str,
}

/// Reaches each shard by its name.
#[derive(Debug)]
struct Both(Arc<[Arc<MemoryShard>; 2]>);

impl Dial for Both {
    fn dial(&self, id: &ShardId, _: &ShardEntry) -> Result<Arc<dyn Shard>, ShardError> {
        Ok(self.0[usize::from(*id == shard_id(1))].clone())
    }
}

impl Ring {
    async fn new() -> Self {
        let clock = TokioClock::starting_at(Duration::from_secs(1_800_000_000));
        let shard = |seed| MemoryShard::new(Arc::new(clock), Arc::new(Random::seeded(seed)));
        let shards = Arc::new([shard(1), shard(2)]);
        let mut founders = Vec::new();
        for (index, shard) in shards.iter().enumerate() {
            let link = shard.connect_control(None).await.unwrap();
            founders.push(Founder {
                id: shard_id(index),
                address: format!("memory:{index}"),
                life: link.life().clone(),
                weight: Weight::ONE,
                zone: None,
            });
        }
        let topology = Topology::found(Blueprint {
            id: 1,
            engine: ClientId(1),
            unix: Duration::from_secs(1_800_000_000),
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::new(2).unwrap(),
            namespaces: Namespaces::default(),
            home: Home {
                address: "memory:".into(),
                life: Life::new("memory:"),
            },
            founders,
        })
        .unwrap();
        let keys = ["one", "two", "three", "four", "five", "six"];
        let of = |shard| {
            let is_its =
                |key: &&str| *topology.table.owner(lock_key(key).slot()) == shard_id(shard);
            keys.into_iter().find(is_its).expect("one of them is its")
        };
        Self {
            shards,
            store: Arc::new(MemoryTopology::new(topology.clone())),
            clock,
            key: of(0),
            other: of(1),
        }
    }

    /// A process.
    async fn process(&self, number: u128) -> Process {
        self.sharing(number, Sharing::default()).await
    }

    /// A process that shares what it holds so.
    async fn sharing(&self, number: u128, sharing: Sharing) -> Process {
        let engine = Engine::start(Parts {
            clock: Arc::new(self.clock),
            random: Arc::new(Random::seeded(number as u64)),
            client: ClientId(number),
            label: Label::new(&format!("process {number}")),
            store: self.store.clone(),
            topology: self.store.load().await.unwrap(),
            dial: Arc::new(Both(self.shards.clone())),
            sharing,
            servers_are_new: true,
            shared: false,
            coordinators: None,
        });
        Process {
            engine: engine.await,
            key: self.key,
        }
    }

    fn a(&self) -> &MemoryShard {
        &self.shards[0]
    }

    fn b(&self) -> &MemoryShard {
        &self.shards[1]
    }

    /// The holder of the key at `shard`, by the record there.
    async fn holder(&self, shard: &MemoryShard) -> Option<Holder> {
        let mut link = shard.connect_control(None).await.unwrap();
        link.inspect(&lock_key(self.key)).await.unwrap().holder
    }

    /// How many wait for the key at `shard`.
    async fn waiting(&self, shard: &MemoryShard) -> usize {
        let mut link = shard.connect_control(None).await.unwrap();
        link.inspect(&lock_key(self.key))
            .await
            .unwrap()
            .waiters
            .len()
    }
}

/// One process.
#[derive(Clone)]
struct Process {
    engine: Engine,
    key: &'static str,
}

impl Process {
    async fn acquire(&self) -> Guard {
        let granted = timeout(FOR_EVER, self.ask(Wait::Forever)).await;
        granted.expect("a turn").unwrap()
    }

    async fn try_acquire(&self) -> Result<Guard, AcquireError> {
        self.ask(Wait::No).await
    }

    async fn ask(&self, wait: Wait) -> Result<Guard, AcquireError> {
        let ask = Acquire {
            namespace: &Namespace::default(),
            key: self.key.as_bytes(),
            lease: None,
            hold_for: None,
            wait,
            preferred: false,
            tokens: 1,
            owner: None,
            label: None,
            observer: None,
        };
        self.engine.acquire(ask).await
    }

    /// A task that waits for the key, and has its place in the queue.
    async fn waits(&self) -> tokio::task::JoinHandle<Guard> {
        let process = self.clone();
        let waiter = tokio::spawn(async move { process.acquire().await });
        sleep(MILLISECOND).await;
        waiter
    }
}

fn lock_key(key: &str) -> LockKey {
    let slots = SlotCount::new(2).unwrap();
    LockKey::new(&Namespace::default(), key.as_bytes(), slots).unwrap()
}
