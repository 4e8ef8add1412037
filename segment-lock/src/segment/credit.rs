//! Receives another account's transfer.

use super::{
    Answer, Credit, CreditState, EffectKind, Final, GiveCredit, Outcome, Refusal, Reply, Segment,
};

impl Segment {
    /// Decides a transfer at its destination, once, and pins the answer until the transfer is finished at the source.
    ///
    /// Refused if the account is closed or has another unit, if the segment would have more than fits, or if the id is so
    /// old that its answer may be forgotten: then either it was decided before and is finished, or it never came. A refused transfer
    /// stays refused: the source takes its money back.
    ///
    /// In a segment that replaces a lost one, a transfer that old may have been credited and spent there: it counts as
    /// credited, and lost with that segment.
    pub fn credit(&mut self, credit: &GiveCredit, now_ms: u64) -> Answer {
        if let Some(known) = self.credits.get(&credit.id) {
            return known.answer(credit.content);
        }
        self.certain()?;
        self.known(credit.generation, &credit.id.id)?;
        match self.takes(credit, now_ms) {
            Err(Refusal::TooOld { .. }) if credit.id.id.time_ms() <= self.lost_ms => {
                return Ok(Reply::Credited(Outcome::Credited));
            }
            // Not recorded: the mark never falls, so every repeat is refused too.
            Err(Refusal::TooOld { .. }) => return Ok(Reply::Credited(Outcome::Refused)),
            taken => taken?,
        }

        let value = self.sum(i128::from(credit.amount.get()));
        let state = match value {
            Ok(value) if !self.closed && credit.unit == self.terms.unit => {
                self.set_value(value);
                let received = EffectKind::Received(credit.id.clone());
                self.log(received, credit.amount.get(), now_ms);
                self.pinned.insert(credit.id.clone());
                CreditState::Pinned
            }
            _ => CreditState::Refused,
        };
        let credited = Credit {
            content: credit.content,
            state,
        };
        self.newest_ms = self.newest_ms.max(credit.id.id.time_ms());
        self.credits.insert(credit.id.clone(), credited);
        if state != CreditState::Pinned {
            self.order.push_back(Final::Credit(credit.id.clone()));
        }
        credited.answer(credit.content)
    }

    fn takes(&mut self, credit: &GiveCredit, now_ms: u64) -> Result<(), Refusal> {
        self.timely(&credit.id.id, now_ms)?;
        self.not_frozen(credit.caller, now_ms)?;
        self.make_room(&credit.id.id, now_ms)
    }
}

impl Credit {
    fn answer(&self, content: u64) -> Answer {
        if self.content != content {
            return Err(Refusal::Conflict);
        }
        Ok(Reply::Credited(match self.state {
            CreditState::Pinned | CreditState::Forgettable => Outcome::Credited,
            CreditState::Refused => Outcome::Refused,
        }))
    }
}
