//! Marks a segment whose storage came back and may have lost the last changes.

use super::{Accept, Answer, Reply, Segment, checks::clocks_agree};
use crate::Durability;

/// The step of a version, and of the number of an effect, after some may have been lost: no earlier one is ever used
/// again.
const VERSIONS_APART: u64 = 1 << 32;

impl Segment {
    /// The storage came back and may lack its last changes.
    ///
    /// A segment with a durability other than `memory` moves no money from now on, until an operator has
    /// [accepted](Self::accept) its content. With durability `memory` it is marked, and continues.
    pub fn came_back(&mut self) {
        self.version += VERSIONS_APART;
        self.log.last += VERSIONS_APART;
        match self.terms.durability {
            Durability::Memory => self.losses += 1,
            Durability::Disk | Durability::Replicas(_) => self.doubtful = true,
        }
    }

    /// An operator accepts the segment as it is: it is marked, and continues. Returns its content.
    ///
    /// It may have decided ids that it lost: those are too old from now on. A segment that is older than the layout in
    /// force is prepared for that layout. A replacement takes only loans that were made after the others were read.
    pub fn accept(&mut self, accept: &Accept, now_ms: u64) -> Answer {
        if self.doubtful && self.version != accept.version {
            return Ok(Reply::Stale);
        }
        let is_older = self.generation < accept.in_force.generation;
        if self.doubtful || is_older {
            clocks_agree(accept.at_ms, now_ms, self.terms.skew_ms)?;
            self.mark_ms = self.mark_ms.max(self.latest_ms(now_ms));
        }
        if self.doubtful {
            self.doubtful = false;
            self.losses += 1;
        }
        if std::mem::take(&mut self.awaits_versions) {
            self.inn.clone_from(&accept.others);
        }
        if is_older {
            self.go_by(&accept.in_force);
        }
        Ok(Reply::View(self.view(now_ms).into()))
    }

    /// No id decided before now has a greater time.
    pub(super) fn latest_ms(&self, now_ms: u64) -> u64 {
        now_ms + self.terms.skew_ms
    }

    /// Its content, doubtful or not. For operators.
    pub fn inspect(&self, now_ms: u64) -> Answer {
        Ok(Reply::View(self.view(now_ms).into()))
    }
}
