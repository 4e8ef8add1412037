//! Reads the segment's money, with or without a freeze.

use super::{Answer, Collect, Freeze, Frozen, Reply, Segment, Thaw};
use crate::limits::FREEZE_MS_MAX;

impl Segment {
    /// Returns [`Reply::View`] to a caller that knows every segment that may have money.
    ///
    /// With a freeze, only its caller moves money here for a moment: so a conflict does not repeat. No conclusion may
    /// depend on a freeze.
    pub fn collect(&mut self, collect: &Collect, now_ms: u64) -> Answer {
        self.certain()?;
        self.newest_known(collect.generation)?;
        if let Some(Freeze { caller, for_ms }) = collect.freeze {
            self.not_frozen(caller, now_ms)?;
            self.frozen = Some(Frozen {
                caller,
                until_ms: now_ms + for_ms.min(FREEZE_MS_MAX),
            });
        }
        self.expire_due(now_ms);
        Ok(Reply::View(self.view(now_ms).into()))
    }

    /// Ends the caller's freeze, if it exists.
    pub fn thaw(&mut self, thaw: &Thaw) -> Answer {
        if self
            .frozen
            .is_some_and(|frozen| frozen.caller == thaw.caller)
        {
            self.frozen = None;
        }
        Ok(Reply::Done)
    }
}
