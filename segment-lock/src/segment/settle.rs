//! A transfer's source hears what the destination said.

use super::{Answer, Final, Outcome, Refusal, Reply, Segment, Settle, State};

impl Segment {
    /// Ends a transfer that is sent: the money is gone, or back. Otherwise answers what became of
    /// it. Nothing else ever ends it: a source that took the money back by itself would mint it.
    pub fn settle(&mut self, settle: &Settle, now_ms: u64) -> Answer {
        let Some(entry) = self.recorded(&settle.id)? else {
            self.certain()?;
            self.known(settle.generation, &settle.id)?;
            self.remembered(&settle.id)?;
            return Ok(Reply::Unknown);
        };
        let amount = match &entry.state {
            State::Sent { amount, .. } => amount.get(),
            State::Delivered | State::Returned | State::Insufficient => {
                return Ok(Reply::Recorded(entry.state.clone()));
            }
            _ => return Err(Refusal::Conflict),
        };
        let settled = match settle.outcome {
            Outcome::Credited => {
                self.held -= amount;
                State::Delivered
            }
            Outcome::Refused => {
                self.not_frozen(settle.caller, now_ms)?;
                self.take_back(amount);
                State::Returned
            }
        };
        self.sent.remove(&settle.id);
        if let Some(entry) = self.ids.get_mut(&settle.id) {
            entry.state = settled.clone();
        }
        self.order.push_back(Final::Request(settle.id.clone()));
        Ok(Reply::Recorded(settled))
    }
}
