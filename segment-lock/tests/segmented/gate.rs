//! A gate before the record: a caller that comes while it is closed is paused there.

use std::sync::Arc;

use async_trait::async_trait;
use ringfence_segment_lock::{
    Account, Manifests, StorageError, VersionedManifest, lock::Split, memory::Memory,
};
use tokio::{sync::watch, task::yield_now};

/// How many may still pass, and how many stand before it.
#[derive(Debug)]
pub(crate) struct Gate(watch::Sender<(usize, usize)>);

impl Gate {
    fn open_wide() -> Self {
        Self(watch::Sender::new((usize::MAX, 0)))
    }

    /// Closes after so many have passed.
    pub(crate) fn close_after(&self, passes: usize) {
        self.0.send_modify(|(left, _)| *left = passes);
    }

    /// Opens.
    pub(crate) fn open(&self) {
        self.close_after(usize::MAX);
    }

    /// Waits until somebody stands before it.
    pub(crate) async fn arrived(&self) {
        let mut gate = self.0.subscribe();
        gate.wait_for(|(_, standing)| *standing > 0).await.unwrap();
    }

    async fn pass(&self) {
        yield_now().await;
        if self.0.borrow().0 == 0 {
            self.0.send_modify(|(_, standing)| *standing += 1);
            let mut gate = self.0.subscribe();
            gate.wait_for(|(left, _)| *left > 0).await.unwrap();
            self.0.send_modify(|(_, standing)| *standing -= 1);
        }
        self.0.send_modify(|(left, _)| *left -= 1);
    }
}

/// A memory behind two gates.
#[derive(Debug)]
pub(crate) struct Gated {
    memory: Arc<Memory>,
    pub(crate) reads: Gate,
    pub(crate) swaps: Gate,
}

impl Gated {
    pub(crate) fn to(memory: Arc<Memory>) -> Self {
        Self {
            memory,
            reads: Gate::open_wide(),
            swaps: Gate::open_wide(),
        }
    }
}

#[async_trait]
impl Manifests<Split> for Gated {
    async fn read(&self, name: &Account) -> Result<Option<VersionedManifest<Split>>, StorageError> {
        self.reads.pass().await;
        self.memory.read(name).await
    }

    async fn swap(
        &self,
        name: &Account,
        expected: u64,
        split: Split,
    ) -> Result<bool, StorageError> {
        self.swaps.pass().await;
        self.memory.swap(name, expected, split).await
    }
}
