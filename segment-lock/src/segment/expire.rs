//! Reservations come back at their deadlines, by the segment's clock.

use super::{Answer, Reply, Segment, State};
use crate::{RequestId, limits::EXPIRED_PER_CALL_MAX};

impl Segment {
    /// Gives back reservations past their deadlines, the oldest first, a bounded number; answers
    /// how many.
    pub fn expire(&mut self, now_ms: u64) -> Answer {
        self.certain()?;
        Ok(Reply::Expired(self.expire_due(now_ms)))
    }

    /// The same, beside other work.
    pub(super) fn expire_due(&mut self, now_ms: u64) -> usize {
        let due = self
            .due
            .iter()
            .take_while(|(deadline_ms, _)| *deadline_ms <= now_ms);
        let due: Vec<RequestId> = due
            .take(EXPIRED_PER_CALL_MAX)
            .map(|(_, id)| id.clone())
            .collect();
        due.iter().for_each(|id| self.expire_if_due(id, now_ms));
        due.len()
    }

    /// Gives `id` back if it is held past its deadline: it must not be confirmed because its turn
    /// to be swept has not come.
    pub(super) fn expire_if_due(&mut self, id: &RequestId, now_ms: u64) {
        match self.ids.get(id).map(|entry| &entry.state) {
            Some(&State::Held {
                amount,
                deadline_ms,
            }) if deadline_ms <= now_ms => {
                self.return_reservation(id, amount, State::Expired);
            }
            _ => {}
        }
    }
}
