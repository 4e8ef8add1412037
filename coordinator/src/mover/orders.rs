//! What a mover is told to do, put in the record.

use std::sync::Arc;

use super::Mover;
use crate::topology::{Change, ResizeError, Swap, Topology};

impl Mover {
    /// Begins a resize: puts `change` in the record as its goal. [`run`](Self::run) does the rest, here or
    /// in any other process.
    ///
    /// # Errors
    ///
    /// [`ResizeError`]: nothing has begun; but if the store gave no answer, it may have.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it begun or not.
    pub async fn begin(&self, change: Change) -> Result<Arc<Topology>, ResizeError> {
        let unix = || self.around.clock.unix();
        self.order(|record| record.begin(change.clone(), unix()))
            .await
    }

    /// Turns the resize under way back; or one that was turned back, so that it goes on. As
    /// [`begin`](Self::begin), it is [`run`](Self::run) that does the rest: one under way heeds it at once.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    ///
    /// # Cancel safety
    ///
    /// As [`begin`](Self::begin).
    pub async fn abort(&self) -> Result<Arc<Topology>, ResizeError> {
        self.order(|record| record.abort(self.around.clock.unix()))
            .await
    }

    /// Replaces the record by the result of `order`, despite other changes meanwhile.
    async fn order(
        &self,
        order: impl Fn(&Topology) -> Result<Topology, ResizeError>,
    ) -> Result<Arc<Topology>, ResizeError> {
        let mut record = self.around.store.load().await?;
        loop {
            let next = order(&record)?;
            match self.around.store.swap(record.version(), &next).await? {
                Swap::Done => return Ok(Arc::new(next)),
                Swap::Newer(newer) => record = newer,
            }
        }
    }
}
