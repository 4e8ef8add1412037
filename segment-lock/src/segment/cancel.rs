//! Gives a reservation back.

use super::{Answer, Cancel, Entry, Segment, State};

impl Segment {
    /// Gives back a reservation that is held; otherwise returns its state. An unknown reservation is recorded as
    /// cancelled, so that it takes nothing if it comes later.
    pub fn cancel(&mut self, cancel: &Cancel, now_ms: u64) -> Answer {
        if let Some(ended) = self.ended(&cancel.id)? {
            return Ok(self.answer(ended));
        }
        self.certain()?;
        self.known(cancel.generation, &cancel.id)?;
        match self.reservation(&cancel.id)? {
            None => {
                self.timely(&cancel.id, now_ms)?;
                self.not_frozen(cancel.caller, now_ms)?;
                self.make_room(&cancel.id, now_ms)?;
                let entry = Entry {
                    content: None,
                    state: State::Cancelled,
                };
                self.record(&cancel.id, entry);
                Ok(self.answer(State::Cancelled))
            }
            Some(State::Held { amount, .. }) => {
                self.not_frozen(cancel.caller, now_ms)?;
                Ok(self.return_reservation(&cancel.id, amount, State::Cancelled, now_ms))
            }
            Some(ended) => Ok(self.answer(ended)),
        }
    }
}
