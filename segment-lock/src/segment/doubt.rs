//! A storage that came back may have lost the last changes.

use super::{Accept, Answer, Reply, Segment};
use crate::Durability;

/// What a version rises by where some may have been lost: no version of before is ever seen again.
const VERSIONS_APART: u64 = 1 << 32;

impl Segment {
    /// The storage came back, without some last changes for all it knows.
    ///
    /// An account that asked for durability moves no money in here from now on, until a person has
    /// [accepted](Self::accept) what is left. One that asked for none is marked, and goes on.
    pub fn came_back(&mut self) {
        self.version += VERSIONS_APART;
        match self.terms.durability {
            Durability::Memory => self.losses += 1,
            Durability::Disk | Durability::Replicas(_) => self.doubtful = true,
        }
    }

    /// A person takes the segment for what it is: it is marked, and goes on. Answers what it has.
    ///
    /// It may have decided ids that it lost: those are too old from now on. A segment older than the layout in force
    /// came back from before that, and is prepared for it.
    pub fn accept(&mut self, accept: &Accept, now_ms: u64) -> Answer {
        let is_older = self.generation < accept.in_force.generation;
        if self.doubtful || is_older {
            self.mark_ms = self.mark_ms.max(self.latest_ms(now_ms));
        }
        if self.doubtful {
            self.doubtful = false;
            self.losses += 1;
        }
        if is_older {
            self.go_by(&accept.in_force);
        }
        Ok(Reply::View(self.view(now_ms)))
    }

    /// No id decided before now has a greater time.
    pub(super) fn latest_ms(&self, now_ms: u64) -> u64 {
        now_ms + self.terms.skew_ms
    }

    /// What it has, doubtful or not: for people.
    pub fn inspect(&self, now_ms: u64) -> Answer {
        Ok(Reply::View(self.view(now_ms)))
    }
}
