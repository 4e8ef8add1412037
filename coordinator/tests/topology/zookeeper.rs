//! The record on ZooKeeper, and a copy on Redis.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use async_trait::async_trait;
use ringfence_conformance::topology::Fixture;
use ringfence_coordinator::{
    name::KeyPrefix,
    topology::{
        Topology, TopologyError, TopologyStore,
        server::{Founding, Joined},
    },
};
use ringfence_test_support::database::zookeeper::Zookeeper;

use super::servers::{Servers, founding, join_with};
use crate::zookeeper_fixture::shared;

/// A topology whose one shard is on Redis.
struct OnZookeeper {
    _zookeeper: Arc<Zookeeper>,
    servers: Servers,
    prefix: KeyPrefix,
    founded: Joined,
}

impl OnZookeeper {
    async fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let prefix = format!("topology_{}", NUMBER.fetch_add(1, Relaxed));
        let prefix = KeyPrefix::new(&prefix).unwrap();
        let (zookeeper, servers) = (shared().await, Servers::spawn(1).await);
        let there = Founding {
            home: Some(zookeeper.url().parse().unwrap()),
            ..founding()
        };
        let founded = join(&servers, &prefix, there).await.unwrap();
        assert_eq!(founded.store.home(), zookeeper.url());
        Self {
            _zookeeper: zookeeper,
            servers,
            prefix,
            founded,
        }
    }
}

async fn join(
    servers: &Servers,
    prefix: &KeyPrefix,
    founding: Founding,
) -> Result<Joined, TopologyError> {
    let mut seeds = servers.seeds();
    for seed in &mut seeds {
        seed.prefix = prefix.clone();
    }
    join_with(seeds, founding).await
}

#[async_trait]
impl Fixture for OnZookeeper {
    fn founded(&self) -> Arc<Topology> {
        self.founded.topology.clone()
    }

    /// By the shard's pointer: a process need not be told of ZooKeeper.
    async fn open(&self) -> Arc<dyn TopologyStore> {
        let joined = join(&self.servers, &self.prefix, founding()).await;
        joined.unwrap().store
    }
}

ringfence_conformance::topology_conformance!(OnZookeeper::new());
