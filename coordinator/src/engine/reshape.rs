//! Changes of the ring's shape.

use std::sync::Arc;

use super::Engine;
use crate::{
    mover::{Mover, Observer, Pace, Parts},
    topology::{Change, ResizeError, Swap, Topology, TopologyError},
};

impl Engine {
    /// The topology in force, which this engine uses from now on.
    ///
    /// # Errors
    ///
    /// [`TopologyError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn refresh(&self) -> Result<Arc<Topology>, TopologyError> {
        let topology = self.0.store.load().await?;
        self.0.routing.adopt(topology.clone());
        Ok(topology)
    }

    /// Begins a resize: see [`Topology::begin`].
    ///
    /// # Errors
    ///
    /// [`ResizeError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it begun or not.
    pub async fn begin(&self, change: Change) -> Result<(), ResizeError> {
        loop {
            let before = self.0.store.load().await?;
            let next = before.begin(change.clone(), self.0.around.clock.unix())?;
            if self.swap(&before, next).await? {
                return Ok(());
            }
        }
    }

    /// Turns the resize under way back: see [`Topology::abort`].
    ///
    /// # Errors
    ///
    /// [`ResizeError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it turned back or not.
    pub async fn turn_back(&self) -> Result<(), ResizeError> {
        let mut before = self.0.store.load().await?;
        let goal = before.goal.clone();
        loop {
            let next = before.abort(self.0.around.clock.unix())?;
            if self.swap(&before, next).await? {
                return Ok(());
            }
            before = self.0.store.load().await?;
            // Another process has turned it back: turning it back again would continue it.
            if before.goal.is_some() && before.goal != goal {
                return Ok(());
            }
        }
    }

    async fn swap(&self, before: &Topology, next: Topology) -> Result<bool, TopologyError> {
        let done = self.0.store.swap(before.version(), &next).await?;
        if let Swap::Done = done {
            self.0.routing.adopt(Arc::new(next));
            return Ok(true);
        }
        Ok(false)
    }

    /// A mover of this ring's slots, which uses this engine's way to reach the shards.
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
