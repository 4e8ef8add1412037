//! Changes of the ring's shape.

use std::{sync::Arc, time::Duration};

use super::Engine;
use crate::{
    mover::{Mover, Observer, Pace, Parts},
    topology::{ResizeError, Swap, Topology},
};

impl Engine {
    /// Puts what `next` makes of the topology, at a wall time, in its place; again, if somebody else was first.
    ///
    /// # Errors
    ///
    /// What `next` says, or the store.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it changed or not.
    pub async fn reshape(
        &self,
        next: &(dyn Fn(&Topology, Duration) -> Result<Topology, ResizeError> + Send + Sync),
    ) -> Result<(), ResizeError> {
        loop {
            let before = self.0.store.load().await?;
            let next = next(&before, self.0.around.clock.unix())?;
            if let Swap::Done = self.0.store.swap(before.version(), &next).await? {
                self.0.routing.adopt(Arc::new(next));
                return Ok(());
            }
        }
    }

    /// A mover of this ring's slots, which reaches the shards as this engine does.
    pub fn mover(&self, pace: Pace) -> Mover {
        Mover::new(Parts {
            store: self.0.store.clone(),
            dial: self.0.routing.dial().clone(),
            clock: self.0.around.clock.clone(),
            random: self.0.around.random.clone(),
            pace,
            servers_are_new: self.0.servers_are_new,
            observer: Observer::default(),
        })
    }
}
