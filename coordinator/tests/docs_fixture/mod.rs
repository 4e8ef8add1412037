//! A shard on a store of documents in memory, on a paused clock, with a hand inside.

mod store;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    clock::BootClock,
    random::Random,
    shard::{
        Shard,
        docs::{DocsShard, Store},
    },
};

pub(crate) use store::Server;

/// The topology that may arm it.
const TOPOLOGY: &str = "d0c5";

/// How long a turn is.
const TURN: Duration = Duration::from_millis(1);

/// A shard on a store in memory.
pub(crate) struct Docs {
    server: Arc<Server>,
    shard: Arc<DocsShard>,
}

impl Docs {
    /// An empty one; the runtime's clock is paused from now on.
    pub(crate) async fn new() -> Self {
        tokio::time::pause();
        let server = Arc::new(Server::starting_at(BootClock));
        let random = Arc::new(Random::seeded(1));
        let shard = Arc::new(DocsShard::new(server.clone(), random));
        shard.join(TOPOLOGY, "home").await.unwrap();
        Self { shard, server }
    }

    /// Later commits have at most `most` documents.
    pub(crate) fn limit_commits(&self, most: usize) {
        self.server.limit_commits(most);
    }

    /// What keeps the documents.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.server.clone()
    }

    /// How many requests read documents.
    pub(crate) fn reads(&self) -> u64 {
        self.server.reads()
    }
}

#[async_trait]
impl Fixture for Docs {
    fn shard(&self) -> Arc<dyn Shard> {
        self.shard.clone()
    }

    fn topology(&self) -> String {
        TOPOLOGY.into()
    }

    async fn elapse(&self, length: Duration) {
        tokio::time::sleep(length).await;
    }

    async fn slow_down(&self) {
        self.server.slow_down();
    }

    async fn turn(&self) {
        // A paused clock moves only while everybody sleeps.
        tokio::time::sleep(TURN).await;
    }

    async fn set_counter(&self, counter: u64) {
        self.server.set_counter(counter);
    }

    async fn set_clock_back(&self, length: Duration) {
        self.server.set_clock_back(length);
    }

    async fn copy(&self) -> Option<String> {
        self.server.copy()
    }

    async fn restart(&self) {
        self.server.restart();
    }
}
