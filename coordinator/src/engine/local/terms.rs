//! The terms of a lock, and what the rules see of it: pure.

use std::time::Duration;

use crate::{
    clock::Instant,
    name::Label,
    shard::{LockKind, LockMode},
};

/// The terms of a lock. One record serves holders with equal terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The holder's name shown to others.
    pub(crate) label: Label,
    /// Which share of the key the holder takes.
    pub(crate) mode: LockMode,
    /// Of a read-write lock: goes before waiters that are not preferred.
    pub(crate) preferred: bool,
    /// Which local queue: 0 is that of the key; readers have one together, so have writers, and every other acquisition of
    /// a share has its own.
    pub(crate) share: u64,
    /// The lease.
    pub(crate) lease: Duration,
    /// How many tokens its holder gets: more than one if that hands the lock on outside of this process.
    pub(crate) tokens: u32,
    /// The length of a fixed hold, which needs its own record with its own end.
    pub(crate) hold_for: Option<Duration>,
}

impl Terms {
    /// Whether readers have a record on these terms together. A fixed hold has an end of its own.
    pub(crate) fn is_shared(&self) -> bool {
        self.mode == LockMode::Read && self.hold_for.is_none()
    }

    /// Whether acquisitions on these terms have a queue together: readers, or writers, which have a record one after the
    /// other.
    pub(crate) fn queue_together(&self) -> bool {
        self.mode.kind() == LockKind::ReadWrite && self.hold_for.is_none()
    }
}

/// The process's entry at the shard: a request, then a record.
pub(crate) trait LeaseView: Clone {
    /// Identifies it.
    type Id: Copy + PartialEq;
    /// Its id.
    fn id(&self) -> Self::Id;
    /// Its terms.
    fn terms(&self) -> &Terms;
    /// Whether the record is certainly there at `now`.
    fn is_held(&self, now: Instant) -> bool;
}
