//! Finishes a transfer at its source, with the destination's answer.

use super::{Answer, EffectKind, Final, FinishTransfer, Outcome, Refusal, Reply, Segment, State};

impl Segment {
    /// Ends a transfer that is sent: the money is gone, or back. Otherwise returns its state. Only this ends a
    /// transfer: a source that took the money back by itself would mint it.
    pub fn finish_transfer(&mut self, finish: &FinishTransfer, now_ms: u64) -> Answer {
        let Some(entry) = self.recorded(&finish.id)? else {
            self.certain()?;
            self.known(finish.generation, &finish.id)?;
            self.remembered(&finish.id)?;
            return Ok(Reply::Unknown);
        };
        let (amount, to) = match &entry.state {
            State::Sent { amount, to } => (amount.get(), to.clone()),
            State::Delivered | State::Returned | State::Insufficient => {
                return Ok(self.answer(entry.state.clone()));
            }
            _ => return Err(Refusal::Conflict),
        };
        let id = finish.id.clone();
        let (finished, effect) = match finish.outcome {
            Outcome::Credited => {
                self.held -= amount;
                (State::Delivered, EffectKind::Delivered(id, to))
            }
            Outcome::Refused => {
                self.not_frozen(finish.caller, now_ms)?;
                self.take_back(amount);
                (State::Returned, EffectKind::Returned(id, to))
            }
        };
        self.log(effect, amount, now_ms);
        self.sent.remove(&finish.id);
        if let Some(entry) = self.ids.get_mut(&finish.id) {
            entry.state = finished.clone();
        }
        self.order.push_back(Final::Request(finish.id.clone()));
        Ok(self.answer(finished))
    }
}
