//! Shards in this process.

use std::{collections::BTreeMap, sync::Arc};

use ringfence_coordinator::{
    engine::Dial,
    ids::{ClientId, Epoch, Life},
    random::Random,
    shard::{Lane, Shard, ShardError, memory::MemoryShard},
    topology::{
        Blueprint, Founder, Home, ShardEntry, Topology, TopologyError, memory::MemoryTopology,
        shard_id,
    },
};
use ringfence_ring::{ShardId, SlotCount, Weight};

use crate::{BuildError, Builder, Client, builder::Found};

/// The address of what is in this process.
const HERE: &str = "memory:";

/// The shards, by their ids.
#[derive(Debug)]
struct Embedded(BTreeMap<ShardId, Arc<MemoryShard>>);

impl Dial for Embedded {
    fn dial(&self, id: &ShardId, _entry: &ShardEntry) -> Result<Arc<dyn Shard>, ShardError> {
        match self.0.get(id) {
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
) -> Result<Client, BuildError> {
    let mut shards = BTreeMap::new();
    let mut founders = Vec::new();
    for id in (0..count).map(shard_id) {
        let shard = MemoryShard::new(builder.clock.clone(), random.clone());
        let link = shard.connect(Lane::Control, None).await;
        let link = link.map_err(|error| TopologyError::Founding(error.to_string()))?;
        founders.push(Founder {
            id: id.clone(),
            address: HERE.into(),
            life: link.life().clone(),
            weight: Weight::ONE,
        });
        if !builder.latency.is_empty() {
            shard.faults().latency(builder.latency.clone());
        }
        shards.insert(id, shard);
    }
    let client = ClientId(random.id());
    let topology = Topology::found(Blueprint {
        id: random.id(),
        engine: client,
        unix: builder.clock.unix(),
        after: Epoch::default(),
        constants: builder.constants,
        slots: SlotCount::default(),
        home: Home {
            address: HERE.into(),
            life: Life::new(HERE),
        },
        founders,
    })?;
    let found = Found {
        store: Arc::new(MemoryTopology::new(topology.clone())),
        topology: Arc::new(topology),
        faults: shards
            .iter()
            .map(|(id, shard)| (id.clone(), shard.faults()))
            .collect(),
        dial: Arc::new(Embedded(shards)),
        servers_are_new: true,
        warnings: Vec::new(),
    };
    Ok(builder.start(found, client, random).await)
}
