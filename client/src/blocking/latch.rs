//! Latches of callers without tokio.

use std::{sync::Arc, time::Duration};

use ringfence_segment_lock::{Account, Durability, RequestId};

use super::reactor::Reactor;
use crate::LatchError;

/// A countdown latch: [`Latch`](crate::Latch). Made by [`Client::latch`](super::Client::latch). Cheap to clone.
#[derive(Clone, Debug)]
pub struct Latch {
    // Dropped first: it may be the last handle of its client.
    latch: crate::Latch,
    reactor: Arc<Reactor>,
}

impl Latch {
    pub(super) fn new(latch: crate::Latch, reactor: &Arc<Reactor>) -> Self {
        let reactor = reactor.clone();
        Self { latch, reactor }
    }

    /// Sets it, closed, to `count`: [`Latch::set`](crate::Latch::set).
    ///
    /// # Errors
    ///
    /// Those of the asynchronous call.
    pub fn set(&self, count: u64, durability: Durability) -> Result<(), LatchError> {
        self.reactor.wait(self.latch.set(count, durability))
    }

    /// Counts down by one, once per `request`: [`Latch::count_down`](crate::Latch::count_down).
    ///
    /// # Errors
    ///
    /// Those of the asynchronous call.
    pub fn count_down(&self, request: &RequestId) -> Result<(), LatchError> {
        self.reactor.wait(self.latch.count_down(request))
    }

    /// How often it is still to be counted down; 0 if it is open.
    ///
    /// # Errors
    ///
    /// Those of the asynchronous call.
    pub fn remaining(&self) -> Result<u64, LatchError> {
        self.reactor.wait(self.latch.remaining())
    }

    /// Blocks this thread until it is open: [`Latch::opened`](crate::Latch::opened).
    ///
    /// # Errors
    ///
    /// Those of the asynchronous call.
    pub fn opened(&self) -> Result<(), LatchError> {
        self.reactor.wait(self.latch.opened())
    }

    /// As [`opened`](Self::opened), for at most `length`.
    ///
    /// # Errors
    ///
    /// Those of the asynchronous call.
    pub fn opened_within(&self, length: Duration) -> Result<(), LatchError> {
        self.reactor.wait(self.latch.opened_within(length))
    }

    /// Its name.
    pub fn name(&self) -> &Account {
        self.latch.name()
    }
}
