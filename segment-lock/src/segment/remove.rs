//! Removes the segment of a deleted account.

use super::{Answer, Refusal, Remove, Reply, Segment, checks::makes_for_ms};

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
        match makes_for_ms(remove.planned_ms, now_ms, self.terms.skew_ms) {
            0 => Ok(Reply::Removed),
            retry_after_ms => Err(Refusal::Busy { retry_after_ms }),
        }
    }
}
