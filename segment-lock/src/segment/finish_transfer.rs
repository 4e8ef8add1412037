//! Finishes a transfer or a capture at its source, with the destinations' answers.

use super::{Answer, EffectKind, Final, FinishTransfer, Refusal, Reply, Segment, State};
use crate::Leg;

impl Segment {
    /// Ends a transfer that is sent, or a decision to pay several accounts: the money of each leg is gone, or back.
    /// Otherwise returns the state. Only this ends it: a source that took the money back by itself would mint it.
    pub fn finish_transfer(&mut self, finish: &FinishTransfer, now_ms: u64) -> Answer {
        let Some(entry) = self.recorded(&finish.id)? else {
            self.certain()?;
            self.known(finish.generation, &finish.id)?;
            self.remembered(&finish.id)?;
            return Ok(Reply::Unknown);
        };
        let is_refused = |leg: &Leg| finish.refused.contains(&leg.to);
        let (legs, finished) = match &entry.state {
            State::Sent { amount, to } => {
                let (amount, to) = (*amount, to.clone());
                let leg = Leg { to, amount };
                let finished = match is_refused(&leg) {
                    true => State::Returned,
                    false => State::Delivered,
                };
                (vec![leg], finished)
            }
            State::Committed(committed) => {
                let refused = committed.legs.iter().filter(|leg| is_refused(leg));
                let refused = refused.map(|leg| leg.amount.get()).sum();
                (committed.legs.to_vec(), committed.end(refused))
            }
            State::Done | State::Held { .. } => return Err(Refusal::Conflict),
            ended => return Ok(self.answer(ended.clone())),
        };
        if legs.iter().any(is_refused) {
            self.not_frozen(finish.caller, now_ms)?;
        }
        for leg in legs {
            let (id, amount) = (finish.id.clone(), leg.amount.get());
            match is_refused(&leg) {
                true => {
                    self.take_back(amount);
                    self.log(EffectKind::Returned(id, leg.to), amount, now_ms);
                }
                false => {
                    self.held -= amount;
                    self.log(EffectKind::Delivered(id, leg.to), amount, now_ms);
                }
            }
        }
        self.sent.remove(&finish.id);
        if let Some(entry) = self.ids.get_mut(&finish.id) {
            entry.state = finished.clone();
        }
        self.order.push_back(Final::Request(finish.id.clone()));
        Ok(self.answer(finished))
    }
}
