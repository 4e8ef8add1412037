//! A shard in memory, on a paused clock, with a hand inside.

use std::{ops::Range, sync::Arc, time::Duration};

use async_trait::async_trait;
use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    clock::{BootClock, Clock, TokioClock},
    random::Random,
    shard::{Shard, memory::MemoryShard},
};

/// How long a turn is,
const TURN: Duration = Duration::from_millis(1);
/// and how long the way to a slow shard takes, or back.
const SLOW: Range<Duration> = Duration::from_millis(8)..Duration::from_millis(16);

/// A shard in memory.
pub(crate) struct Memory(Arc<MemoryShard>);

impl Memory {
    /// An empty one; the runtime's clock is paused from now on.
    pub(crate) async fn new() -> Self {
        tokio::time::pause();
        let clock = TokioClock::starting_at(BootClock.unix());
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
        // A sleep may be a millisecond longer.
        tokio::time::advance(length).await;
    }

    async fn slow_down(&self) {
        self.0.faults().latency(SLOW);
    }

    async fn turn(&self) {
        // A paused clock moves only while everybody sleeps.
        tokio::time::sleep(TURN).await;
    }

    async fn set_counter(&self, counter: u64) {
        self.0.faults().set_counter(counter);
    }

    async fn set_clock_back(&self, length: Duration) {
        self.0.faults().set_clock_back(length);
    }

    async fn copy(&self) -> Option<String> {
        self.0.traces().copy.map(|(_, _, text)| text)
    }

    async fn restart(&self) {
        self.0.faults().restart(true);
    }
}
