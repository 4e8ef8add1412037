//! The progress of a resize, for people.

use std::{fmt, time::Duration};

use ringfence_ring::ShardId;

use crate::{
    clock::Instant,
    topology::{Topology, TopologyError},
};

/// The progress of a resize.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Slots that have arrived, moved by any mover.
    pub slots_moved: u32,
    /// Slots that the whole resize moves.
    pub slots_to_move: u32,
    /// Slots that are migrating now.
    pub migrating: u32,
    /// Keys that were held when their slots were sealed and have left since: their holders moved them along, or
    /// released them. This mover's count.
    pub locks_carried: u64,
    /// Counters' segments and manifests that this mover carried.
    pub counters_carried: u64,
    /// The estimated time that is left; `None` as long as no estimate is possible.
    pub left: Option<Duration>,
    /// The reason for which some moves wait. Others go on.
    pub waiting_for: Option<WaitingFor>,
}

/// The reason for which moves wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitingFor {
    /// A shard does not answer, or is in grace.
    Shard {
        /// The shard.
        id: ShardId,
        /// The cause.
        reason: String,
        /// Whether it does not answer: it may be gone for good.
        is_silent: bool,
    },
    /// The topology store does not answer.
    Store {
        /// The cause.
        reason: String,
    },
}

impl fmt::Display for WaitingFor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shard { id, reason, .. } => write!(formatter, "shard {id}: {reason}"),
            Self::Store { reason } => write!(formatter, "topology store: {reason}"),
        }
    }
}

/// Counts since the start of a mover.
#[derive(Debug)]
pub(super) struct Tally {
    began: Instant,
    /// Slots that had arrived at the start; `None` until a record was counted.
    at_first: Option<u32>,
    progress: Progress,
}

impl Tally {
    pub(super) fn new(began: Instant) -> Self {
        Self {
            began,
            at_first: None,
            progress: Progress::default(),
        }
    }

    /// Counts the slots of `record`. At the end of a resize all have arrived.
    pub(super) fn count(&mut self, record: &Topology) -> Result<(), TopologyError> {
        let preview = record.preview()?;
        let progress = &mut self.progress;
        if record.goal.is_some() {
            progress.slots_to_move = preview.slots_in_all;
        }
        progress.slots_moved =
            progress.slots_to_move - preview.slots_to_move().min(progress.slots_to_move);
        let migrations = record.migrations.iter();
        progress.migrating = migrations
            .map(|migration| migration.slots.len() as u32)
            .sum();
        self.at_first.get_or_insert(progress.slots_moved);
        Ok(())
    }

    pub(super) fn gone(&mut self, keys: usize) {
        self.progress.locks_carried += keys as u64;
    }

    pub(super) fn carried(&mut self, groups: usize) {
        self.progress.counters_carried += groups as u64;
    }

    /// The progress at `now`.
    pub(super) fn look(&self, now: Instant, waiting_for: Option<WaitingFor>) -> Progress {
        let Progress {
            slots_moved,
            slots_to_move,
            ..
        } = self.progress;
        let done = slots_moved.saturating_sub(self.at_first.unwrap_or(slots_moved));
        let left = (done > 0).then(|| now.since(self.began) * (slots_to_move - slots_moved) / done);
        Progress {
            left,
            waiting_for,
            ..self.progress.clone()
        }
    }
}
