//! One holder's time with a lock.

use std::sync::{
    Arc,
    atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire},
    },
};

use super::{Lease, LeaseState};
use crate::{clock::Instant, ids::Token, limits::REENTRY_MAX};

/// One holder's time with a lock: a token, and a record that other holders in this process may have
/// had before, and may have after.
#[derive(Debug)]
pub(crate) struct Grant {
    lease: Arc<dyn Lease>,
    pub(crate) token: Token,
    guards: AtomicUsize,
}

impl Grant {
    /// A grant with one guard.
    pub(crate) fn new(lease: Arc<dyn Lease>, token: Token) -> Arc<Self> {
        Arc::new(Self {
            lease,
            token,
            guards: AtomicUsize::new(1),
        })
    }

    /// Its record.
    pub(crate) fn shared(&self) -> Arc<dyn Lease> {
        self.lease.clone()
    }

    /// The state of its acquisition.
    pub(crate) fn lease(&self) -> &LeaseState {
        self.lease.state()
    }

    /// Whether the lock is in use, and the record is certainly there at `now`.
    pub(crate) fn is_held(&self, now: Instant) -> bool {
        self.guards.load(Acquire) > 0 && self.lease().is_held(now)
    }

    /// Counts one more guard, unless the last one is gone or there are too many; the error is their
    /// number.
    pub(crate) fn enter(&self) -> Result<(), usize> {
        let entered = self.guards.fetch_update(AcqRel, Acquire, |guards| {
            (guards > 0 && guards < REENTRY_MAX).then_some(guards + 1)
        });
        entered.map(drop)
    }

    /// Counts one guard less. Returns whether it was the last.
    pub(crate) fn leave(&self) -> bool {
        self.guards.fetch_sub(1, AcqRel) == 1
    }
}
