//! Every backend keeps the contract of a shard.
#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

mod redis_fixture;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use ringfence_coordinator::{
    clock::TokioClock,
    random::Random,
    shard::{Shard, conformance::Fixture, memory::MemoryShard},
};

/// A shard in memory, on a paused clock.
struct Memory(Arc<MemoryShard>);

impl Memory {
    async fn new() -> Self {
        tokio::time::pause();
        let clock = TokioClock::starting_at(Duration::ZERO);
        Self(MemoryShard::new(
            Arc::new(clock),
            Arc::new(Random::seeded(1)),
        ))
    }
}

#[async_trait]
impl Fixture for Memory {
    fn shard(&self) -> Arc<dyn Shard> {
        self.0.clone()
    }

    fn topology(&self) -> String {
        "memory".into()
    }

    async fn elapse(&self, length: Duration) {
        tokio::time::sleep(length).await;
    }

    async fn set_counter(&self, counter: u64) {
        self.0.faults().set_counter(counter);
    }

    async fn restart(&self) {
        self.0.faults().restart(true);
    }
}

mod memory {
    ringfence_coordinator::shard_conformance!(super::Memory::new());
}

mod redis {
    ringfence_coordinator::shard_conformance!(super::redis_fixture::Redis::new());
}
