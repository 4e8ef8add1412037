//! The shard, and how to connect to it.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    faults::Faults,
    link::MemoryLink,
    shared::{self, Shared},
    state::Traces,
    subscription::MemorySubscription,
};
use crate::{
    clock::Clock,
    ids::{ClientId, Life},
    limits::LANES_BY_SLOT,
    name::LockKey,
    random::Random,
    shard::{
        ConnectionId, ControlLink, CounterLink, Lane, LockLane, LockLink, Shard, ShardError,
        Subscription,
    },
};

/// A shard in this process's memory. Its locks and counters end with the process.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use ringfence_coordinator::{clock::BootClock, random::Random, shard::memory::MemoryShard};
///
/// let shard = MemoryShard::new(Arc::new(BootClock), Arc::new(Random::from_os()));
/// shard.faults().unreachable(true);
/// ```
pub struct MemoryShard(Arc<Shared>);

impl MemoryShard {
    /// How far the shard's clock is ahead of the clock that it is given. Code that mixes them up fails at once.
    pub const CLOCK_AHEAD: Duration = shared::CLOCK_AHEAD;

    /// An empty shard, not armed, in its first life, which begins now.
    pub fn new(clock: Arc<dyn Clock>, random: Arc<Random>) -> Arc<Self> {
        Arc::new(Self(Arc::new(Shared::new(clock, random))))
    }

    /// Injects faults into it.
    pub fn faults(&self) -> Faults {
        Faults(Arc::clone(&self.0))
    }

    /// The keys of the counters' segments and manifests that it keeps.
    pub fn counters(&self) -> Vec<LockKey> {
        let state = self.0.state();
        state.memory.counters.groups.keys().cloned().collect()
    }

    async fn connect(
        &self,
        lane: Lane,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<MemoryLink, ShardError> {
        self.0.travel().await;
        let mut state = self.0.state();
        state.check_reachable()?;
        match former {
            Some((life, id)) if life == *state.memory.life() => self.0.end(&mut state, id),
            _ => {}
        }
        let connection = state.open(lane);
        Ok(MemoryLink::new(Arc::clone(&self.0), connection))
    }

    /// What it knows about topologies.
    pub fn traces(&self) -> Traces {
        self.0.state().memory.traces()
    }
}

impl fmt::Debug for MemoryShard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("MemoryShard")
            .field(&self.0.state().memory)
            .finish()
    }
}

#[async_trait]
impl Shard for MemoryShard {
    fn work_lanes(&self) -> usize {
        LANES_BY_SLOT
    }

    async fn connect_locks(
        &self,
        lane: LockLane,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn LockLink>, ShardError> {
        Ok(Box::new(self.connect(lane.into(), former).await?))
    }

    async fn connect_counters(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn CounterLink>, ShardError> {
        Ok(Box::new(self.connect(Lane::Counters, former).await?))
    }

    async fn connect_control(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn ControlLink>, ShardError> {
        Ok(Box::new(self.connect(Lane::Control, former).await?))
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Subscription>, ShardError> {
        self.0.travel().await;
        Ok(Box::new(MemorySubscription::open(&self.0, client)?))
    }
}
