//! Removes the segment of a deleted account.

use super::{Answer, Refusal, Remove, Reply, Segment};
use crate::limits::CLOCKS_APART_MS_MAX;

impl Segment {
    /// Whether the segment may go, with its records: [`Reply::Removed`].
    ///
    /// * [`Reply::View`]: it has money, or unfinished requests, or is not closed.
    /// * [`Reply::Later`]: it has decided ids that a later account of that name would decide again.
    /// * [`Refusal::Busy`]: a request of the account's last plan may still be under way, and would make it again.
    pub(super) fn remove(&self, remove: &Remove, now_ms: u64) -> Answer {
        self.certain()?;
        self.newest_known(remove.generation)?;
        let is_idle = self.due.is_empty() && self.sent.is_empty() && self.pinned.is_empty();
        if !(self.closed && is_idle && self.value == remove.credit) {
            return Ok(Reply::View(self.view(now_ms).into()));
        }
        let after_ms = self.newest_ms.max(self.mark_ms);
        if after_ms > remove.mark_ms {
            return Ok(Reply::Later { after_ms, now_ms });
        }
        let apart_ms = self.terms.skew_ms + CLOCKS_APART_MS_MAX;
        let made_until_ms = remove.planned_ms.saturating_add(apart_ms);
        match now_ms.checked_sub(made_until_ms + 1) {
            Some(_) => Ok(Reply::Removed),
            None => Err(Refusal::Busy {
                retry_after_ms: made_until_ms + 1 - now_ms,
            }),
        }
    }
}
