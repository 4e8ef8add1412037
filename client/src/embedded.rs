//! Shards in this process.

use std::{collections::BTreeMap, ops::Range, sync::Arc, time::Duration};

use ringfence_coordinator::{
    clock::Clock,
    engine::Coordinators,
    ids::{ClientId, Epoch, Life},
    random::Random,
    shard::{
        Shard, ShardError,
        memory::{Faults, MemoryShard},
    },
    topology::{
        Blueprint, Dial, Founder, Home, ShardEntry, Topology, TopologyError,
        memory::MemoryTopology, shard_id,
    },
};
use ringfence_ring::{ShardId, SlotCount, Weight};

use crate::{
    BuildError, Builder, Client,
    builder::{Found, Grounds},
};
use parking_lot::Mutex;

/// The address of the parts in this process; with a shard's id appended, the address of the shard.
const HERE: &str = "memory:";

/// The shards, by their ids.
#[derive(Debug)]
pub(crate) struct Embedded {
    shards: Mutex<BTreeMap<ShardId, Arc<MemoryShard>>>,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    latency: Range<Duration>,
}

impl Embedded {
    /// Creates a shard called `id`, or finds it, and returns its entry for the topology.
    pub(crate) async fn make(&self, id: ShardId, weight: Weight) -> Result<Founder, ShardError> {
        let shard = {
            let mut shards = self.shards.lock();
            let shard = shards.entry(id.clone()).or_insert_with(|| {
                let shard = MemoryShard::new(self.clock.clone(), self.random.clone());
                if !self.latency.is_empty() {
                    shard.faults().latency(self.latency.clone());
                }
                shard
            });
            shard.clone()
        };
        let link = shard.connect_control(None).await?;
        Ok(Founder {
            address: format!("{HERE}{id}"),
            id,
            life: link.life().clone(),
            weight,
            zone: None,
        })
    }

    /// The handles that make the shards fail.
    pub(crate) fn faults(&self) -> BTreeMap<ShardId, Faults> {
        let shards = self.shards.lock();
        let faults = shards
            .iter()
            .map(|(id, shard)| (id.clone(), shard.faults()));
        faults.collect()
    }
}

impl Dial for Embedded {
    fn dial(&self, id: &ShardId, _entry: &ShardEntry) -> Result<Arc<dyn Shard>, ShardError> {
        match self.shards.lock().get(id) {
            Some(shard) => Ok(shard.clone()),
            None => Err(ShardError::Unusable {
                reason: format!("{id} is not in this process"),
            }),
        }
    }
}

pub(crate) async fn build(
    builder: &Builder,
    count: usize,
    random: Arc<Random>,
    coordinators: Option<Arc<dyn Coordinators>>,
) -> Result<Client, BuildError> {
    let shards = Embedded {
        shards: Mutex::default(),
        clock: builder.clock.clone(),
        random: random.clone(),
        latency: builder.latency.clone(),
    };
    let mut founders = Vec::new();
    for id in (0..count).map(shard_id) {
        let founder = shards.make(id, Weight::ONE).await;
        founders.push(founder.map_err(|error| TopologyError::Founding(error.to_string()))?);
    }
    let shards = Arc::new(shards);
    let client = ClientId(random.id());
    let topology = Topology::found(Blueprint {
        id: random.id(),
        engine: client,
        unix: builder.clock.unix(),
        after: Epoch::default(),
        constants: builder.constants,
        slots: SlotCount::default(),
        namespaces: builder.namespaces()?,
        home: Home {
            address: HERE.into(),
            life: Life::new(HERE),
        },
        founders,
    })?;
    let found = Found {
        store: Arc::new(MemoryTopology::new(topology.clone())),
        topology: Arc::new(topology),
        dial: shards.clone(),
        grounds: Grounds::Embedded(shards),
        servers_are_new: true,
        warnings: Vec::new(),
        coordinators,
    };
    Ok(builder.start(found, client, random).await)
}
