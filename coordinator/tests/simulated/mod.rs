//! Several processes and their shards, in one simulation: its clock is paused, and moves while all wait.
#![expect(
    clippy::disallowed_methods,
    reason = "the tasks are a test's, and end with it"
)]

mod given_up;
mod handoff;
mod linger;
mod replicated;
mod restart;
mod turns;
mod wire;
mod writers;

use std::{collections::BTreeMap, ops::Deref, sync::Arc, time::Duration};

use ringfence_coordinator::{
    clock::TokioClock,
    engine::{Acquire, AcquireError, Engine, Guard, Handoff, Parts, Sharing, Wait},
    ids::{ClientId, Epoch, Life},
    name::{Label, LockKey, Namespace},
    random::Random,
    shard::{
        Holder, Shard, ShardError,
        memory::{Faults, MemoryShard},
    },
    topology::{
        Blueprint, Constants, Dial, Founder, Home, Namespaces, ShardEntry, Swap, Topology,
        TopologyStore, memory::MemoryTopology, shard_id,
    },
};
use ringfence_ring::{ShardId, SlotCount, Weight};
use tokio::time::{sleep, timeout};

use self::wire::{OverWire, Wire};

const LEASE: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);
/// Nothing takes so long here.
const FOR_EVER: Duration = Duration::from_secs(300);
/// What nobody but a poll could explain is longer.
const AT_ONCE: Duration = Duration::from_millis(30);

/// Processes that share a shard, or several.
#[derive(Debug)]
struct Crew {
    /// The first one.
    shard: Arc<MemoryShard>,
    shards: BTreeMap<ShardId, Arc<MemoryShard>>,
    topology: Arc<Topology>,
    store: Arc<dyn TopologyStore>,
    clock: TokioClock,
    processes: u128,
}

/// One process, and its ways to the shards.
struct Process {
    engine: Engine,
    /// To the first one.
    wire: Arc<Wire>,
    wires: BTreeMap<ShardId, Arc<Wire>>,
}

impl Deref for Process {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

#[derive(Debug)]
struct Through(BTreeMap<ShardId, Arc<Wire>>);

impl Dial for Through {
    fn dial(&self, id: &ShardId, _: &ShardEntry) -> Result<Arc<dyn Shard>, ShardError> {
        Ok(Arc::new(OverWire(self.0[id].clone())))
    }
}

impl Crew {
    async fn new() -> Self {
        Self::at(1, Namespaces::default()).await
    }

    /// With so many shards, and the locks of `namespaces`.
    async fn at(shards: usize, namespaces: Namespaces) -> Self {
        let clock = TokioClock::starting_at(Duration::from_secs(1_800_000_000));
        let shard = |number: usize| {
            let random = Random::seeded(number as u64 + 1);
            MemoryShard::new(Arc::new(clock), Arc::new(random))
        };
        let shards = (0..shards).map(|number| (shard_id(number), shard(number)));
        let shards: BTreeMap<_, _> = shards.collect();
        let mut founders = Vec::new();
        for (id, shard) in &shards {
            founders.push(Founder {
                id: id.clone(),
                address: "memory:".to_owned(),
                life: shard.connect_control(None).await.unwrap().life().clone(),
                weight: Weight::ONE,
                zone: None,
            });
        }
        let here = || "memory:".to_owned();
        let topology = Topology::found(Blueprint {
            id: 1,
            engine: ClientId(1),
            unix: Duration::from_secs(1_800_000_000),
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::default(),
            namespaces,
            home: Home {
                address: here(),
                life: Life::new(here()),
            },
            founders,
        });
        let topology = topology.unwrap();
        Self {
            shard: shards[&shard_id(0)].clone(),
            shards,
            store: Arc::new(MemoryTopology::new(topology.clone())),
            topology: Arc::new(topology),
            clock,
            processes: 0,
        }
    }

    /// One more process.
    async fn process(&mut self) -> Process {
        self.sharing(Sharing::default()).await
    }

    /// More processes.
    async fn processes<const N: usize>(&mut self) -> [Process; N] {
        let mut processes = Vec::with_capacity(N);
        for _ in 0..N {
            processes.push(self.process().await);
        }
        let processes = processes.try_into().ok();
        processes.expect("as many as were asked for")
    }

    /// One more process, which shares what it holds so.
    async fn sharing(&mut self, sharing: Sharing) -> Process {
        self.processes += 1;
        let wires = self.shards.iter();
        let wires = wires.map(|(id, shard)| (id.clone(), Wire::to(shard.clone())));
        let wires: BTreeMap<_, _> = wires.collect();
        let engine = Engine::start(Parts {
            clock: Arc::new(self.clock),
            random: Arc::new(Random::seeded(self.processes as u64)),
            client: ClientId(self.processes),
            label: Label::new(&format!("process {}", self.processes)),
            store: self.store.clone(),
            topology: self.topology.clone(),
            dial: Arc::new(Through(wires.clone())),
            sharing,
            servers_are_new: true,
            shared: false,
            coordinators: None,
        });
        Process {
            engine: engine.await,
            wire: wires[&shard_id(0)].clone(),
            wires,
        }
    }

    /// A server that is nobody's yet.
    fn another_server(&self) -> Arc<MemoryShard> {
        MemoryShard::new(Arc::new(self.clock), Arc::new(Random::seeded(2)))
    }

    /// The record says that the shard lives there.
    async fn lives_at(&self, server: &MemoryShard) {
        let link = server.connect_control(None).await.unwrap();
        let before = self.store.load().await.unwrap();
        let unix = Duration::from_secs(1_800_000_000);
        let next = before.reborn(&shard_id(0), link.life().clone(), unix);
        let next = next.unwrap().expect("another life");
        let swapped = self.store.swap(before.version(), &next).await.unwrap();
        assert!(matches!(swapped, Swap::Done));
    }

    fn faults(&self) -> Faults {
        self.shard.faults()
    }
}

fn handing_on(max: u32, length: Duration) -> Sharing {
    Sharing {
        handoff: Handoff { max, length },
        ..Sharing::default()
    }
}

fn lingering(length: Duration) -> Sharing {
    Sharing {
        linger: [("default".to_owned(), length)].into_iter().collect(),
        ..Sharing::default()
    }
}

/// How a lock called `key` is asked for.
fn ask(key: &str, wait: Wait) -> Acquire<'_> {
    static NAMESPACE: std::sync::LazyLock<Namespace> = std::sync::LazyLock::new(Namespace::default);
    Acquire {
        namespace: &NAMESPACE,
        key: key.as_bytes(),
        lease: None,
        hold_for: None,
        wait,
        preferred: false,
        tokens: 1,
        owner: None,
        label: None,
        observer: None,
    }
}

async fn acquire(engine: &Engine) -> Guard {
    acquire_as(engine, ask("key", Wait::Forever)).await
}

async fn acquire_as(engine: &Engine, ask: Acquire<'_>) -> Guard {
    let granted = timeout(FOR_EVER, engine.acquire(ask)).await;
    granted.expect("a turn").unwrap()
}

async fn try_acquire(engine: &Engine) -> Result<Guard, AcquireError> {
    engine.acquire(ask("key", Wait::No)).await
}

/// A task of `engine` that waits for the key, and has its place in the queue.
async fn waiting(engine: &Engine) -> tokio::task::JoinHandle<Guard> {
    let engine = engine.clone();
    let waiter = tokio::spawn(async move { acquire(&engine).await });
    sleep(MILLISECOND).await;
    waiter
}

/// The holder of the key at that server.
async fn holder(server: &MemoryShard) -> Option<Holder> {
    let mut link = server.connect_control(None).await.unwrap();
    let key = LockKey::new(&Namespace::default(), b"key", SlotCount::default()).unwrap();
    link.inspect(&key).await.unwrap().holder
}

/// The holder of the key, by its record.
async fn recorded(engine: &Engine) -> Option<Holder> {
    let inspected = engine.inspect(&Namespace::default(), b"key").await;
    inspected.unwrap().holder
}
