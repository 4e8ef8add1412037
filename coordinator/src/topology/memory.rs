//! A topology record in this process's memory: for embedded use, and simulation.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Copies, Swap, Topology, TopologyError, TopologyStore, Version, store::check_next};
use crate::ids::Incarnation;

/// Stores the record as long as the process lives.
#[derive(Debug)]
pub struct MemoryTopology {
    record: watch::Sender<Arc<Topology>>,
}

impl MemoryTopology {
    /// A store with `founded` in force.
    pub fn new(founded: Topology) -> Self {
        Self {
            record: watch::Sender::new(Arc::new(founded)),
        }
    }
}

#[async_trait]
impl TopologyStore for MemoryTopology {
    async fn load(&self) -> Result<Arc<Topology>, TopologyError> {
        Ok(self.record.borrow().clone())
    }

    async fn swap(&self, expected: Version, next: &Topology) -> Result<Swap, TopologyError> {
        check_next(expected, next)?;
        let mut swap = Swap::Done;
        self.record.send_if_modified(|record| {
            if record.version() != expected {
                swap = Swap::Newer(record.clone());
                return false;
            }
            *record = Arc::new(next.clone());
            true
        });
        Ok(swap)
    }

    async fn watch(&self, known: Version) -> Result<Arc<Topology>, TopologyError> {
        let mut records = self.record.subscribe();
        let newer = records.wait_for(|record| record.version() > known).await;
        Ok(newer.expect("its sender is `self.record`").clone())
    }

    async fn copies(&self) -> Copies {
        Copies::default()
    }

    /// The record never moves: no other process can have put another one in force.
    fn outrun(&self, _incarnation: Incarnation) {}
}
