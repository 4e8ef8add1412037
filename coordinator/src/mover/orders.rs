//! Puts orders for movers in the record: begin, abort.

use std::sync::Arc;

use super::Mover;
use crate::topology::{Change, ResizeError, Swap, Topology};

impl Mover {
    /// Begins a resize: puts `change` in the record as its goal. [`run`](Self::run) does the rest, in this or any other
    /// process.
    ///
    /// # Errors
    ///
    /// [`ResizeError`]: nothing has begun, unless the store gave no answer: then it may have begun.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it begun or not.
    pub async fn begin(&self, change: Change) -> Result<Arc<Topology>, ResizeError> {
        let unix = || self.around.clock.unix();
        self.order(|record| record.begin(change.clone(), unix()))
            .await
    }

    /// Turns back the resize that is under way; or, if it was turned back already, forward again. As with
    /// [`begin`](Self::begin), [`run`](Self::run) does the rest: a run that is under way follows at once.
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

    /// Replaces the record by the result of `order`. Repeats that if the record changed meanwhile.
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
