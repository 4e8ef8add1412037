//! Receives another account's transfer, or promises to.

use super::{
    Answer, Credit, CreditId, CreditState, EffectKind, Final, GiveCredit, Outcome, Refusal, Reply,
    Segment,
};
use crate::Amount;

impl Segment {
    /// Decides a transfer at its destination, once, and pins the answer until the transfer is finished at the source.
    ///
    /// Refused if the account is closed or has another unit, if the segment would have more than fits, or if the id is so
    /// old that its answer may be forgotten: then either it was decided before and is finished, or it never came. A refused transfer
    /// stays refused: the source takes its money back.
    ///
    /// In a segment that replaces a lost one, a transfer that old may have been credited and spent there: it counts as
    /// credited, and lost with that segment.
    ///
    /// A promise is decided by the same rules: it keeps room for the money. The money of a promise is received in any case,
    /// also in an account that is closed since.
    pub fn credit(&mut self, credit: &GiveCredit, now_ms: u64) -> Answer {
        if let Some(known) = self.credits.get(&credit.id).copied() {
            return match known.state {
                CreditState::Promised { amount, .. } if known.content == credit.content => {
                    self.keep_promise(credit, amount, now_ms)
                }
                _ => known.answer(credit.content),
            };
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
                self.pinned.insert(credit.id.clone());
                match credit.is_promise {
                    true => {
                        self.promised += credit.amount.get();
                        CreditState::Promised {
                            amount: credit.amount,
                            at_ms: now_ms,
                        }
                    }
                    false => {
                        self.give(&credit.id, value, credit.amount, now_ms);
                        CreditState::Pinned
                    }
                }
            }
            _ => CreditState::Refused,
        };
        let credited = Credit {
            content: credit.content,
            state,
        };
        self.newest_ms = self.newest_ms.max(credit.id.id.time_ms());
        self.credits.insert(credit.id.clone(), credited);
        if state == CreditState::Refused {
            self.order.push_back(Final::Credit(credit.id.clone()));
        }
        credited.answer(credit.content)
    }

    fn keep_promise(&mut self, credit: &GiveCredit, amount: Amount, now_ms: u64) -> Answer {
        self.certain()?;
        let kept = match credit.is_promise {
            true => CreditState::Promised {
                amount,
                at_ms: now_ms,
            },
            false => {
                self.not_frozen(credit.caller, now_ms)?;
                self.promised -= amount.get();
                self.give(&credit.id, self.value + amount.get(), amount, now_ms);
                CreditState::Pinned
            }
        };
        let kept = Credit {
            content: credit.content,
            state: kept,
        };
        self.credits.insert(credit.id.clone(), kept);
        kept.answer(credit.content)
    }

    /// Receives the money, after which there is `value`.
    fn give(&mut self, id: &CreditId, value: i64, amount: Amount, now_ms: u64) {
        self.set_value(value);
        self.log(EffectKind::Received(id.clone()), amount.get(), now_ms);
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
        Ok(match self.state {
            CreditState::Promised { .. } => Reply::Promised,
            CreditState::Pinned | CreditState::Forgettable => Reply::Credited(Outcome::Credited),
            CreditState::Refused => Reply::Credited(Outcome::Refused),
        })
    }
}
