//! Lists unfinished transfers.

use std::ops::Bound;

use super::{Answer, CreditState, Pinned, PinnedCredit, Reply, Segment, Sent};
use crate::limits::PAGE_LEN_MAX;

impl Segment {
    /// Transfers and captures that are not finished, oldest first.
    pub fn sent_after(&self, sent: &Sent) -> Answer {
        self.certain()?;
        let page = self.sent.range((after(&sent.after), Bound::Unbounded));
        let transfers = page.filter_map(|id| Some((id.clone(), self.ids.get(id)?.state.clone())));
        Ok(Reply::Sent(transfers.take(PAGE_LEN_MAX).collect()))
    }

    /// Credits that are promised or pinned, oldest first.
    pub fn pinned_after(&self, pinned: &Pinned) -> Answer {
        self.certain()?;
        let page = self.pinned.range((after(&pinned.after), Bound::Unbounded));
        let credits = page.filter_map(|id| {
            Some(PinnedCredit {
                id: id.clone(),
                promised_ms: match self.credits.get(id)?.state {
                    CreditState::Promised { at_ms, .. } => Some(at_ms),
                    _ => None,
                },
            })
        });
        Ok(Reply::Pinned(credits.take(PAGE_LEN_MAX).collect()))
    }
}

fn after<T: Clone>(last: &Option<T>) -> Bound<T> {
    match last {
        Some(last) => Bound::Excluded(last.clone()),
        None => Bound::Unbounded,
    }
}
