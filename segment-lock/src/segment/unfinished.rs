//! Lists unfinished transfers.

use std::ops::Bound;

use super::{Answer, Pinned, Reply, Segment, Sent, State};
use crate::limits::PAGE_LEN_MAX;

impl Segment {
    /// Transfers that are sent and not finished, oldest first.
    pub fn sent_after(&self, sent: &Sent) -> Answer {
        self.certain()?;
        let page = self.sent.range((after(&sent.after), Bound::Unbounded));
        let transfers = page.filter_map(|id| match &self.ids.get(id)?.state {
            State::Sent { amount, to } => Some((id.clone(), *amount, to.clone())),
            _ => None,
        });
        Ok(Reply::Sent(transfers.take(PAGE_LEN_MAX).collect()))
    }

    /// Credits that are pinned, oldest first.
    pub fn pinned_after(&self, pinned: &Pinned) -> Answer {
        self.certain()?;
        let page = self.pinned.range((after(&pinned.after), Bound::Unbounded));
        Ok(Reply::Pinned(page.take(PAGE_LEN_MAX).cloned().collect()))
    }
}

fn after<T: Clone>(last: &Option<T>) -> Bound<T> {
    match last {
        Some(last) => Bound::Excluded(last.clone()),
        None => Bound::Unbounded,
    }
}
