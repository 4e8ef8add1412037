//! Pays accounts from a reservation.

use super::{Answer, Capture, Committed, Refusal, Reply, Segment, State};

impl Segment {
    /// Decides to pay the legs from a reservation that is held, and gives the rest back; otherwise returns its state. For
    /// an unknown one: [`Reply::Unknown`]. Other legs than those that were decided before are [`Refusal::Conflict`].
    ///
    /// The decision stands: from now on the reservation neither expires nor can be cancelled. So every leg must have been
    /// promised before.
    pub fn capture(&mut self, capture: &Capture, now_ms: u64) -> Answer {
        match self.reservation_of_now(&capture.id, capture.generation, now_ms)? {
            None => Ok(Reply::Unknown),
            Some(State::Held {
                amount,
                deadline_ms,
            }) => {
                let taken = (capture.legs.sum(), amount);
                self.give_rest_back(&capture.id, taken, capture.caller, now_ms)?;
                self.due.remove(&(deadline_ms, capture.id.clone()));
                self.sent.insert(capture.id.clone());
                let committed = State::Committed(Box::new(Committed {
                    legs: capture.legs.clone(),
                    capture: Some(capture.capture.clone()),
                }));
                if let Some(entry) = self.ids.get_mut(&capture.id) {
                    entry.state = committed.clone();
                }
                Ok(self.answer(committed))
            }
            Some(State::Committed(committed)) if committed.legs != capture.legs => {
                Err(Refusal::Conflict)
            }
            Some(state) => Ok(self.answer(state)),
        }
    }
}
