//! Forgets old answers that are no longer needed.

use super::{Answer, Final, Refusal, Reply, Segment};
use crate::{
    RequestId,
    limits::{PURGED_PER_CALL_MAX, PURGED_PER_REQUEST_MAX},
};

impl Segment {
    /// Drops a bounded number of final answers older than `idempotency_for`, or up to the mark. Returns their number. The
    /// mark rises to the times of the dropped ones, and no further: a clock that is wrong for a moment refuses no new id
    /// for longer.
    ///
    /// Answers are dropped in the order in which they became final: an old one stays as long as a newer one is before
    /// it. Effects that are too old are dropped from the log, too.
    pub fn purge(&mut self, now_ms: u64) -> Answer {
        self.certain()?;
        let old_ms = now_ms.saturating_sub(self.terms.idempotency_for_ms);
        let dropped = self.forget_until(self.mark_ms.max(old_ms), PURGED_PER_CALL_MAX);
        self.drop_effects(now_ms);
        Ok(Reply::Purged(dropped))
    }

    /// Makes room for the answer to `id`, which is not recorded.
    ///
    /// Drops some answers older than `idempotency_for`. If the segment is still full, drops the oldest one, if that is
    /// older than `idempotency_at_least`. The mark rises with both, possibly above `id`.
    pub(super) fn make_room(&mut self, id: &RequestId, now_ms: u64) -> Result<(), Refusal> {
        let terms = self.terms;
        let old_ms = now_ms.saturating_sub(terms.idempotency_for_ms);
        self.forget_until(self.mark_ms.max(old_ms), PURGED_PER_REQUEST_MAX);
        if self.is_full() {
            let old_ms = now_ms.saturating_sub(terms.idempotency_at_least_ms);
            self.forget_until(old_ms, 1);
        }
        if self.is_full() {
            let oldest_ms = self.order.front().map_or(now_ms, Final::time_ms);
            let free_ms = oldest_ms.saturating_add(terms.idempotency_at_least_ms);
            return Err(Refusal::TooManyIds {
                ids_max: terms.ids_max,
                retry_after_ms: free_ms.saturating_sub(now_ms).max(1),
            });
        }
        self.remembered(id)
    }

    fn is_full(&self) -> bool {
        self.ids.len() + self.credits.len() >= self.terms.ids_max
    }

    /// Drops at most `most` of the first final answers with times up to `until_ms`, and raises the mark to the times of
    /// the dropped ones: a repeat of one is too old from then on. Returns their number.
    fn forget_until(&mut self, until_ms: u64, most: usize) -> usize {
        let old = self.order.iter().take(most);
        let old = old.take_while(|first| first.time_ms() <= until_ms).count();
        for dropped in self.order.drain(..old) {
            self.mark_ms = self.mark_ms.max(dropped.time_ms());
            match &dropped {
                Final::Request(id) => drop(self.ids.remove(id)),
                Final::Credit(id) => drop(self.credits.remove(id)),
            }
        }
        old
    }
}
