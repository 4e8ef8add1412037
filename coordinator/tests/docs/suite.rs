//! Every store of documents keeps the contract.

use std::sync::Arc;

use async_trait::async_trait;
use ringfence_conformance::store::Fixture;
use ringfence_coordinator::{
    clock::BootClock,
    etcd::etcd_store,
    random::Random,
    shard::{docs::Store, mysql::mysql_store, postgres::postgres_store},
    zookeeper::zookeeper_store,
};

use crate::{
    docs_fixture::Server, etcd_fixture::OnEtcd, mariadb_fixture::Maria, postgres_fixture::Postgres,
    zookeeper_fixture::OnZookeeper,
};

#[async_trait]
impl Fixture for Postgres {
    fn store(&self) -> Arc<dyn Store> {
        postgres_store(self.options.clone())
    }

    async fn begin_life(&self) {
        self.run("UPDATE {}.life SET id = gen_random_uuid()").await;
    }
}

#[async_trait]
impl Fixture for Maria {
    fn store(&self) -> Arc<dyn Store> {
        mysql_store(self.options.clone())
    }

    async fn begin_life(&self) {
        self.run("UPDATE `{}_life` SET id = uuid()").await;
    }
}

#[async_trait]
impl Fixture for OnEtcd {
    fn store(&self) -> Arc<dyn Store> {
        etcd_store(self.options.clone(), Arc::new(Random::from_os()))
    }

    async fn begin_life(&self) {
        self.end_life();
    }
}

#[async_trait]
impl Fixture for OnZookeeper {
    fn store(&self) -> Arc<dyn Store> {
        zookeeper_store(self.options.clone(), Arc::new(Random::from_os()))
    }

    async fn begin_life(&self) {
        self.end_life().await;
    }
}

/// A store in memory.
struct Memory(Arc<Server>);

impl Memory {
    async fn new() -> Self {
        tokio::time::pause();
        Self(Arc::new(Server::starting_at(BootClock)))
    }
}

#[async_trait]
impl Fixture for Memory {
    fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }

    async fn begin_life(&self) {
        self.0.restart();
    }
}

mod memory {
    ringfence_conformance::store_conformance!(super::Memory::new());
}

mod mariadb {
    ringfence_conformance::store_conformance!(crate::mariadb_fixture::Maria::bare());
}

mod postgres {
    ringfence_conformance::store_conformance!(crate::postgres_fixture::Postgres::bare());
}

mod postgres_through_a_pooler {
    ringfence_conformance::store_conformance!(crate::postgres_fixture::Postgres::bare_and_pooled());
}

mod etcd {
    ringfence_conformance::store_conformance!(crate::etcd_fixture::OnEtcd::bare());
}

mod zookeeper {
    ringfence_conformance::store_conformance!(crate::zookeeper_fixture::OnZookeeper::bare());
}
