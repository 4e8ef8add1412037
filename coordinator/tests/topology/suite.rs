//! Every store keeps the contract.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use ringfence_conformance::topology::Fixture;
use ringfence_coordinator::{
    ids::{ClientId, Epoch, Life},
    topology::{
        Blueprint, Constants, Founder, Home, Namespaces, Topology, TopologyStore,
        memory::MemoryTopology,
    },
};
use ringfence_ring::{ShardId, SlotCount, Weight};

use super::servers::{Servers, join};

/// The record in this process's memory.
struct Memory {
    founded: Topology,
    store: Arc<MemoryTopology>,
}

impl Memory {
    async fn new() -> Self {
        let founder = |id: &str| Founder {
            id: ShardId::new(id).unwrap(),
            address: format!("memory:{id}"),
            life: Life::new(format!("life of {id}")),
            weight: Weight::ONE,
            zone: None,
        };
        let founded = Topology::found(Blueprint {
            id: 1,
            engine: ClientId(1),
            unix: Duration::from_secs(1_800_000_000),
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::default(),
            namespaces: Namespaces::default(),
            home: Home {
                address: "memory".into(),
                life: Life::new("home"),
            },
            founders: vec![founder("a"), founder("b")],
        })
        .unwrap();
        Self {
            store: Arc::new(MemoryTopology::new(founded.clone())),
            founded,
        }
    }
}

#[async_trait]
impl Fixture for Memory {
    fn founded(&self) -> Arc<Topology> {
        Arc::new(self.founded.clone())
    }

    async fn open(&self) -> Arc<dyn TopologyStore> {
        self.store.clone()
    }
}

/// The record at the first of three servers.
struct Redis {
    servers: Servers,
    founded: Arc<Topology>,
}

impl Redis {
    async fn new() -> Self {
        let servers = Servers::spawn(3).await;
        let founded = servers.found().await.topology;
        Self { servers, founded }
    }
}

#[async_trait]
impl Fixture for Redis {
    fn founded(&self) -> Arc<Topology> {
        self.founded.clone()
    }

    async fn open(&self) -> Arc<dyn TopologyStore> {
        join(self.servers.seeds()).await.unwrap().store
    }
}

mod memory {
    ringfence_conformance::topology_conformance!(super::Memory::new());
}

mod redis {
    ringfence_conformance::topology_conformance!(super::Redis::new());
}
