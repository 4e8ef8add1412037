//! A segment makes ready for a layout that is planned.

use std::sync::Arc;

use super::{Answer, Prepare, Reply, Segment};

impl Segment {
    /// Prepares for a plan, iff no id that the plan would home elsewhere can have been decided here:
    /// the newest decided, and the newest that may be forgotten, are older than its beginning. Else
    /// [`Reply::Later`].
    ///
    /// A plan older than the prepared one is [`Reply::Stale`]: it was replaced.
    pub fn prepare(&mut self, prepare: &Prepare, now_ms: u64) -> Answer {
        self.certain()?;
        if prepare.generation == self.generation {
            return Ok(Reply::Prepared);
        }
        if prepare.generation < self.generation {
            return Ok(Reply::Stale);
        }
        let after_ms = self.newest_ms.max(self.mark_ms);
        if after_ms >= prepare.from_ms {
            return Ok(Reply::Later { after_ms, now_ms });
        }
        self.go_by(prepare);
        Ok(Reply::Prepared)
    }

    /// Goes by that layout from now on.
    pub(super) fn go_by(&mut self, prepare: &Prepare) {
        self.generation = prepare.generation;
        self.base = prepare.base;
        self.cut_ms = prepare.from_ms;
        self.closed |= prepare.closed;
        self.mark_ms = self.mark_ms.max(prepare.mark_ms);
        self.manifest = Arc::clone(&prepare.manifest);
    }

    /// The copy of the account's manifest: even a doubtful segment helps to find a manifest that was lost.
    pub fn read_copy(&self) -> Answer {
        Ok(Reply::Copied {
            manifest: Arc::clone(&self.manifest),
            closed: self.closed,
        })
    }
}
