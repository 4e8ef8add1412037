//! Every store keeps the contract.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use ringfence_conformance::{shard, topology::Fixture};
use ringfence_coordinator::{
    ids::{ClientId, Epoch, Life},
    shard::ServerOptions,
    topology::{
        Blueprint, Constants, Founder, Home, Namespaces, Swap, Topology, TopologyError,
        TopologyStore, memory::MemoryTopology, server::Founding,
    },
};
use ringfence_ring::{ShardId, SlotCount, Weight};

use super::servers::{Servers, founding, join, join_with};
use crate::{mariadb_fixture::Maria, postgres_fixture::Postgres};

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

/// A server that stores documents.
trait Member: shard::Fixture {
    fn options(&self) -> ServerOptions;
}

impl Member for Postgres {
    fn options(&self) -> ServerOptions {
        self.options.clone().into()
    }
}

impl Member for Maria {
    fn options(&self) -> ServerOptions {
        self.options.clone().into()
    }
}

/// The record on a server that stores documents, and a copy on Redis.
struct OnDocs<H> {
    home: H,
    servers: Servers,
    founded: Arc<Topology>,
}

impl<H: Member> OnDocs<H> {
    async fn new(home: H) -> Self {
        let servers = Servers::spawn(1).await;
        let founding = Founding {
            home: Some(home.options().address().parse().unwrap()),
            ..founding()
        };
        let joined = join_with(seeds(&home, &servers), founding).await;
        Self {
            founded: joined.unwrap().topology,
            home,
            servers,
        }
    }
}

fn seeds(home: &impl Member, servers: &Servers) -> Vec<ServerOptions> {
    let others = servers.seeds().into_iter().map(ServerOptions::from);
    [home.options()].into_iter().chain(others).collect()
}

#[async_trait]
impl<H: Member> Fixture for OnDocs<H> {
    fn founded(&self) -> Arc<Topology> {
        self.founded.clone()
    }

    async fn open(&self) -> Arc<dyn TopologyStore> {
        let joined = join_with(seeds(&self.home, &self.servers), founding()).await;
        joined.unwrap().store
    }
}

/// Its life ends: the record may be an old one, and is put in force again behind a fence.
async fn a_record_outlasts_the_life_of_its_server(home: impl Member) {
    let stage = OnDocs::new(home).await;
    let store = stage.open().await;
    stage.home.restart().await;
    let recovered = store.load().await.unwrap();
    assert!(recovered.incarnation > stage.founded.incarnation);
    assert_eq!(recovered.home.address, stage.founded.home.address);
    assert_ne!(recovered.home.life, stage.founded.home.life);
    let other = stage.open().await;
    assert_eq!(*other.load().await.unwrap(), *recovered);
    // The former incarnation is over.
    let mut late = Topology::clone(&stage.founded);
    late.version += 1;
    let swap = store.swap(stage.founded.version(), &late).await;
    assert!(
        matches!(swap, Err(TopologyError::RecoverNeeded { .. })),
        "{swap:?}"
    );
}

/// The copies on another member serve when a home on Redis comes back without its record.
async fn a_copy_restores_the_record_of_a_home_on_redis(member: impl Member) {
    let mut servers = Servers::spawn(1).await;
    let home = servers.seeds().remove(0).address.into();
    let founding = Founding {
        home: Some(home),
        ..founding()
    };
    let joined = join_with(seeds(&member, &servers), founding).await.unwrap();
    let mut next = Topology::clone(&joined.topology);
    next.version += 1;
    let done = joined.store.swap(joined.topology.version(), &next).await;
    assert!(matches!(done, Ok(Swap::Done)), "{done:?}");
    servers.0[0].restart().await.unwrap();
    let recovered = joined.store.load().await.unwrap();
    assert!(recovered.incarnation > next.incarnation && recovered.version > next.version);
}

macro_rules! on_docs {
    ($home:expr) => {
        ringfence_conformance::topology_conformance!(async {
            super::OnDocs::new($home.await).await
        });

        #[tokio::test]
        async fn a_record_outlasts_the_life_of_its_server() {
            super::a_record_outlasts_the_life_of_its_server($home.await).await;
        }

        #[tokio::test]
        async fn a_copy_restores_the_record_of_a_home_on_redis() {
            super::a_copy_restores_the_record_of_a_home_on_redis($home.await).await;
        }
    };
}

mod mariadb {
    on_docs!(crate::mariadb_fixture::Maria::bare());
}

mod memory {
    ringfence_conformance::topology_conformance!(super::Memory::new());
}

mod postgres {
    on_docs!(crate::postgres_fixture::Postgres::bare());
}

mod redis {
    ringfence_conformance::topology_conformance!(super::Redis::new());
}
