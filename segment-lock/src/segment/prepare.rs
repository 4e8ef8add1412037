//! Prepares a segment for a planned layout.

use std::sync::Arc;

use super::{Answer, Prepare, Reply, Segment};

impl Segment {
    /// Prepares for a plan, iff no id that would have another home by it can have been decided here: the newest decided
    /// id, and the newest that may be forgotten, are older than its beginning. Otherwise returns [`Reply::Later`].
    ///
    /// For a plan older than the prepared one: [`Reply::Stale`], because it was replaced.
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

    /// Uses that layout from now on.
    pub(super) fn go_by(&mut self, prepare: &Prepare) {
        self.generation = prepare.generation;
        self.base = prepare.base;
        self.cut_ms = prepare.from_ms;
        self.closed |= prepare.closed;
        self.mark_ms = self.mark_ms.max(prepare.mark_ms);
        self.manifest = Arc::clone(&prepare.manifest);
    }

    /// The copy of the account's manifest. A doubtful segment returns it too: that helps to find a lost manifest.
    pub fn read_copy(&self) -> Answer {
        Ok(Reply::Copied {
            manifest: Arc::clone(&self.manifest),
            closed: self.closed,
        })
    }
}
