//! Old answers are forgotten; nothing that may be needed is.

use super::{Answer, CreditState, Reply, Segment};
use crate::limits::PURGED_PER_CALL_MAX;

impl Segment {
    /// Raises the mark to what is old enough, never higher, and drops final entries up to it, a
    /// bounded number; answers how many. What stays is answered as before: what is not recorded,
    /// and up to the mark, is too old.
    ///
    /// Held reservations, sent transfers and pinned credits stay, however old.
    pub fn purge(&mut self, now_ms: u64) -> Answer {
        self.certain()?;
        let old_ms = now_ms.saturating_sub(self.terms.idempotency_for_ms);
        self.mark_ms = self.mark_ms.max(old_ms);
        let mark_ms = self.mark_ms;

        let ids = self
            .ids
            .iter()
            .take_while(|(id, _)| id.time_ms() <= mark_ms);
        let ids = ids.filter(|(_, entry)| entry.state.is_final());
        let ids = ids.take(PURGED_PER_CALL_MAX).map(|(id, _)| id.clone());
        let ids: Vec<_> = ids.collect();

        let credits = self
            .credits
            .iter()
            .take_while(|(credit, _)| credit.id.time_ms() <= mark_ms);
        let credits = credits.filter(|(_, credit)| credit.state != CreditState::Pinned);
        let credits = credits
            .take(PURGED_PER_CALL_MAX - ids.len())
            .map(|(id, _)| id.clone());
        let credits: Vec<_> = credits.collect();

        ids.iter().for_each(|id| _ = self.ids.remove(id));
        credits.iter().for_each(|id| _ = self.credits.remove(id));
        Ok(Reply::Purged(ids.len() + credits.len()))
    }
}
