//! Semaphores and read-write locks of callers without tokio.

use std::sync::Arc;

use super::{Lock, reactor::Reactor};
use crate::Preference;

/// A number of permits: [`Semaphore`](crate::Semaphore).
#[derive(Clone, Debug)]
#[must_use = "nothing is asked for until permits are acquired"]
pub struct Semaphore {
    // Dropped first: it may be the last handle of its client.
    semaphore: crate::Semaphore,
    reactor: Arc<Reactor>,
}

/// Many readers, or one writer: [`RwLock`](crate::RwLock).
#[derive(Clone, Debug)]
#[must_use = "nothing is asked for until one side is acquired"]
pub struct RwLock {
    // Dropped first: it may be the last handle of its client.
    lock: crate::RwLock,
    reactor: Arc<Reactor>,
}

impl Semaphore {
    pub(super) fn new(semaphore: crate::Semaphore, reactor: &Arc<Reactor>) -> Self {
        let reactor = reactor.clone();
        Self { semaphore, reactor }
    }

    /// `count` permits, all or none of them.
    pub fn permits(&self, count: u32) -> Lock {
        Lock::new(self.semaphore.permits(count), &self.reactor)
    }

    /// One permit.
    pub fn permit(&self) -> Lock {
        self.permits(1)
    }
}

impl RwLock {
    pub(super) fn new(lock: crate::RwLock, reactor: &Arc<Reactor>) -> Self {
        let reactor = reactor.clone();
        Self { lock, reactor }
    }

    /// Lets one side go before other waiters: [`RwLock::prefer`](crate::RwLock::prefer).
    pub fn prefer(mut self, side: Preference) -> Self {
        self.lock = self.lock.prefer(side);
        self
    }

    /// The side of the readers, who hold the lock together.
    pub fn read(&self) -> Lock {
        Lock::new(self.lock.read(), &self.reactor)
    }

    /// The side of the writers, who hold it alone.
    pub fn write(&self) -> Lock {
        Lock::new(self.lock.write(), &self.reactor)
    }
}
