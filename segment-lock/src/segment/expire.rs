//! Gives reservations back at their deadlines, by the segment's clock.

use super::{Answer, Reply, Segment, State};
use crate::{RequestId, limits::EXPIRED_PER_CALL_MAX};

impl Segment {
    /// Gives back a bounded number of reservations past their deadlines, the oldest first. Returns their number.
    pub fn expire(&mut self, now_ms: u64) -> Answer {
        self.certain()?;
        Ok(Reply::Expired(self.expire_due(now_ms)))
    }

    /// The same, as a part of another request.
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

    /// Gives `id` back if it is held past its deadline: it must not be confirmed only because no sweep has reached it
    /// yet.
    pub(super) fn expire_if_due(&mut self, id: &RequestId, now_ms: u64) {
        match self.ids.get(id).map(|entry| &entry.state) {
            Some(&State::Held {
                amount,
                deadline_ms,
            }) if deadline_ms <= now_ms => {
                self.return_reservation(id, amount, State::Expired, now_ms);
            }
            _ => {}
        }
    }
}
