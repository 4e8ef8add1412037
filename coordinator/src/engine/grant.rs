//! One holder's time with a lock.

use std::sync::{
    Arc,
    atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire},
    },
};

use super::hold::Hold;
use crate::{clock::Instant, ids::Token, limits::REENTRY_MAX};

/// One holder's time with a lock: a token, and a record that other holders in this process may have
/// had before, and may have after.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) hold: Arc<Hold>,
    pub(super) token: Token,
    guards: AtomicUsize,
}

impl Grant {
    /// A grant with one guard.
    pub(super) fn new(hold: Arc<Hold>, token: Token) -> Arc<Self> {
        Arc::new(Self {
            hold,
            token,
            guards: AtomicUsize::new(1),
        })
    }

    /// Whether the lock is in use, and the record is certainly there at `now`.
    pub(super) fn is_held(&self, now: Instant) -> bool {
        self.guards.load(Acquire) > 0 && self.hold.is_held(now)
    }

    /// Counts one more guard, unless the last one is gone or there are too many; the error is their
    /// number.
    pub(super) fn enter(&self) -> Result<(), usize> {
        let entered = self.guards.fetch_update(AcqRel, Acquire, |guards| {
            (guards > 0 && guards < REENTRY_MAX).then_some(guards + 1)
        });
        entered.map(drop)
    }

    /// Counts one guard less. Returns whether it was the last.
    pub(super) fn leave(&self) -> bool {
        self.guards.fetch_sub(1, AcqRel) == 1
    }
}
