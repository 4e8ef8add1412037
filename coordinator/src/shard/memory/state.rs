//! A shard's memory, and requests to the whole of it.

use std::fmt;

use super::{counters::Counters, locks::Locks};
use crate::{
    ids::{Epoch, Incarnation, Life},
    shard::{Notification, ShardError, rules::Slots, whole::Whole},
};

/// What a shard knows about topologies: the answer to a recovery, which asks every member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// Its present life.
    pub life: Life,
    /// Nothing of a lower incarnation takes effect in this life.
    pub fence: Option<Incarnation>,
    /// Incarnation, version and text of the newest record seen.
    pub copy: Option<(Incarnation, u64, String)>,
    /// The epoch this life is armed with.
    pub armed: Option<Epoch>,
    /// The greatest epoch seen.
    pub epoch_seen: Epoch,
}

/// A shard's memory, in one life of it.
pub(super) struct Memory {
    life: Life,
    /// When the life began.
    began_ms: u64,
    /// Everything was forgotten since the life began.
    emptied: bool,
    /// The topology that arms it first is its own: no other may.
    pub(super) whole: Whole,
    pub(super) locks: Locks,
    pub(super) counters: Counters,
    /// Notifications that are not sent yet.
    pub(super) notifications: Vec<Notification>,
    /// There is no memory for new locks.
    pub(super) full: bool,
}

impl Memory {
    /// An empty memory in a life that begins now.
    pub(super) fn new(life: Life, now_ms: u64) -> Self {
        Self {
            life,
            began_ms: now_ms,
            emptied: false,
            whole: Whole::default(),
            locks: Locks::new(),
            counters: Counters::default(),
            notifications: Vec::new(),
            full: false,
        }
    }

    pub(super) fn life(&self) -> &Life {
        &self.life
    }

    pub(super) fn traces(&self) -> Traces {
        let head = self.whole.head.clone();
        Traces {
            life: self.life.clone(),
            fence: head.fence,
            copy: head.copy,
            armed: head.armed.map(|armed| armed.epoch),
            epoch_seen: head.epoch_seen,
        }
    }

    /// The slots, if the life is armed.
    pub(super) fn slots(&self) -> Result<&Slots, ShardError> {
        self.whole.head.armed()?;
        Ok(&self.whole.slots)
    }

    /// For how long it has had this life and forgotten nothing.
    pub(super) fn up_ms(&self, now_ms: u64) -> Option<u64> {
        (!self.emptied).then(|| now_ms.saturating_sub(self.began_ms))
    }

    /// Forgets everything; the life goes on.
    pub(super) fn forget(&mut self) {
        *self = Self {
            emptied: true,
            full: self.full,
            ..Self::new(self.life.clone(), self.began_ms)
        };
    }

    /// Begins the life called `life`, with the former records, queues and counters, or with none.
    pub(super) fn restart(&mut self, life: Life, keep_records: bool, now_ms: u64) {
        let former = std::mem::replace(self, Self::new(life, now_ms));
        self.full = former.full;
        self.whole.affiliation = former.whole.affiliation;
        if keep_records {
            self.locks = former.locks;
            self.counters = former.counters;
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Memory")
            .field("life", &self.life)
            .field("armed", &self.whole.head.armed)
            .field("locks", &self.locks.len())
            .finish_non_exhaustive()
    }
}
