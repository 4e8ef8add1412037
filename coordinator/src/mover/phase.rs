//! The phases of a move, for tests that observe them.

use std::{fmt, sync::Arc};

use crate::failpoint;

/// The step that a mover has just done for some slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The moves are in the record.
    Planned,
    /// The next shard has the blocks of slots that are to be sealed.
    CopiedAhead,
    /// The former shard grants no more.
    Sealed,
    /// The next shard grants keys that are proven free.
    Imported,
    /// The next shard has put a piece of a counter aside.
    Copied,
    /// The next shard has a counter.
    Arrived,
    /// The former shard has dropped what arrived.
    Dropped,
    /// The next shard serves the counters.
    Admitted,
    /// The records left at the former shard are known.
    Scanned,
    /// The next shard knows these records.
    Delivered,
    /// The record notes that the next shard knows them.
    Listed,
    /// The next shard grants everything.
    Opened,
    /// The former shard knows that the slots are elsewhere.
    Shut,
    /// The record names their owner.
    Finished,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Self; 14] = [
        Self::Planned,
        Self::CopiedAhead,
        Self::Sealed,
        Self::Imported,
        Self::Copied,
        Self::Arrived,
        Self::Dropped,
        Self::Admitted,
        Self::Scanned,
        Self::Delivered,
        Self::Listed,
        Self::Opened,
        Self::Shut,
        Self::Finished,
    ];

    /// Its name: a process under test kills itself there.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::CopiedAhead => "copied_ahead",
            Self::Sealed => "sealed",
            Self::Imported => "imported",
            Self::Copied => "copied",
            Self::Arrived => "arrived",
            Self::Dropped => "dropped",
            Self::Admitted => "admitted",
            Self::Scanned => "scanned",
            Self::Delivered => "delivered",
            Self::Listed => "listed",
            Self::Opened => "opened",
            Self::Shut => "shut",
            Self::Finished => "finished",
        }
    }
}

/// Called for each phase, by the task that reached it. It must not block.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<dyn Fn(Phase) + Send + Sync>>);

impl Observer {
    /// Calls `told` for each phase.
    pub fn new(told: impl Fn(Phase) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    pub(super) fn tell(&self, phase: Phase) {
        failpoint::reach(phase.as_str());
        if let Some(told) = &self.0 {
            told(phase);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Observer")
    }
}
