//! Old answers are forgotten; nothing that may be needed is.

use std::collections::VecDeque;

use super::{Answer, CreditState, Reply, Segment};
use crate::limits::PURGED_PER_CALL_MAX;

impl Segment {
    /// Raises the mark to what is old enough, never higher, and drops final entries up to it, a
    /// bounded number; answers how many. What stays is answered as before: what is not recorded,
    /// and up to the mark, is too old.
    ///
    /// They go as they came: one that is old stays while one before it is not, which is so for as long as
    /// ids may be ahead of the clock at most. Held reservations, sent transfers and pinned credits stay, however old.
    pub fn purge(&mut self, now_ms: u64) -> Answer {
        self.certain()?;
        let old_ms = now_ms.saturating_sub(self.terms.idempotency_for_ms);
        self.mark_ms = self.mark_ms.max(old_ms);
        let mark_ms = self.mark_ms;

        let (order, ids) = (&mut self.order, &mut self.ids);
        let old = first(order, PURGED_PER_CALL_MAX, |id| id.time_ms() <= mark_ms);
        let is_final = |id: &_| ids.get(id).is_none_or(|entry| entry.state.is_final());
        let dropped = take_out(order, old, is_final);
        dropped.iter().for_each(|id| _ = ids.remove(id));

        let (order, credits) = (&mut self.credit_order, &mut self.credits);
        let left = PURGED_PER_CALL_MAX - dropped.len();
        let old = first(order, left, |credit| credit.id.time_ms() <= mark_ms);
        let is_final = |id: &_| {
            let state = credits.get(id).map(|credit| credit.state);
            state != Some(CreditState::Pinned)
        };
        let credits_dropped = take_out(order, old, is_final);
        credits_dropped.iter().for_each(|id| _ = credits.remove(id));
        Ok(Reply::Purged(dropped.len() + credits_dropped.len()))
    }
}

/// How many at the beginning are old, of `most`.
fn first<Id>(order: &VecDeque<Id>, most: usize, is_old: impl Fn(&Id) -> bool) -> usize {
    order.iter().take(most).take_while(|id| is_old(id)).count()
}

/// Takes what is final out of the first `count`; the others go to the end.
fn take_out<Id>(order: &mut VecDeque<Id>, count: usize, is_final: impl Fn(&Id) -> bool) -> Vec<Id> {
    let (done, others): (Vec<_>, Vec<_>) = order.drain(..count).partition(is_final);
    order.extend(others);
    done
}
