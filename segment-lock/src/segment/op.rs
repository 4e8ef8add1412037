//! Decides a change at its home: deposit, deduct, reserve, or the start of a transfer to one account or several.

use super::{Answer, EffectKind, Entry, Loan, Op, Refusal, Reply, Segment};
use crate::{Amount, Change, Leg, Reference, RequestId};

impl Segment {
    /// Decides a request, once.
    ///
    /// * Deposit: the money is added. The others: it is taken, if there is enough, and a
    ///   reservation's or transfer's is held. Answers [`Reply::Recorded`].
    /// * Too little: nothing is recorded, [`Reply::Short`]; or [`Refusal::Layout`] if the caller
    ///   does not know of every segment that may have the rest.
    /// * Recorded before: [`Reply::Recorded`], or [`Refusal::Conflict`] if it was something else. A reservation past its
    ///   deadline has expired.
    ///
    /// The loans that it brings are landed first, and stay landed even if the money is still too little: any caller may
    /// land any loan at any time.
    pub fn op(&mut self, op: &Op, now_ms: u64) -> Answer {
        let content = op.change.digest();
        if !self.doubtful {
            self.expire_if_due(&op.id, now_ms);
        }
        if let Some(entry) = self.recorded(&op.id)? {
            return self.first_answer(entry, content);
        }
        self.certain()?;
        self.known(op.generation, &op.id)?;
        self.timely(&op.id, now_ms)?;
        self.outlives(&op.id, now_ms)?;
        self.not_frozen(op.caller, now_ms)?;
        self.acceptable(op)?;
        self.make_room(&op.id, now_ms).map_err(undecided)?;
        let landing = self.that_fit(op)?;

        self.expire_due(now_ms);
        for loan in landing {
            // The request may bring the same loan twice.
            if self.is_new(&loan) {
                self.receive(&loan, now_ms);
            }
        }
        let amount = op.change.amount().get();
        if op.change.signed() < 0 && self.value < amount {
            self.newest_known(op.generation)?;
            return Ok(Reply::Short(self.view(now_ms).into()));
        }
        self.version += 1;
        self.change(op, now_ms);
        self.list(&op.id, &op.change);
        let state = op.state();
        let entry = Entry {
            content: Some(content),
            state: state.clone(),
        };
        self.record(&op.id, entry);
        Ok(self.answer(state))
    }

    fn acceptable(&self, op: &Op) -> Result<(), Refusal> {
        if op.reference.is_some() && self.terms.effects_max == 0 {
            return Err(Refusal::NoLog);
        }
        match op.change {
            Change::Deposit { .. } if self.closed => Err(Refusal::Closed),
            Change::Reserve { deadline_ms, .. } => {
                let window_ms = self.terms.idempotency_for_ms;
                let max_ms = op.id.time_ms().saturating_add(window_ms);
                match deadline_ms <= max_ms {
                    true => Ok(()),
                    false => Err(Refusal::DeadlineTooLate {
                        deadline_ms,
                        max_ms,
                    }),
                }
            }
            _ => Ok(()),
        }
    }

    /// The loans that may land now, if all of them fit: so nothing fails after the first write. A loan that follows
    /// another one of the same request has to be sent again.
    fn that_fit(&self, op: &Op) -> Result<Vec<Loan>, Refusal> {
        let new = op.lands.iter().filter(|loan| self.is_new(loan));
        let landing: Vec<Loan> = new.copied().collect();
        let landed: i128 = landing
            .iter()
            .map(|loan| i128::from(loan.amount.get()))
            .sum();
        let deposited = match op.change {
            Change::Deposit { amount } => i128::from(amount.get()),
            _ => 0,
        };
        self.sum(landed + deposited).map(|_| landing)
    }

    fn change(&mut self, op: &Op, now_ms: u64) {
        let id = || op.id.clone();
        let kind = match &op.change {
            Change::Deposit { .. } => EffectKind::Deposited(id()),
            Change::Deduct { .. } => EffectKind::Deducted(id()),
            Change::Reserve { .. } => EffectKind::Reserved(id()),
            Change::Transfer { to, .. } => EffectKind::Sent(id(), to.clone()),
            Change::TransferLegs { legs } => {
                for Leg { to, amount } in legs.iter() {
                    let sent = EffectKind::Sent(id(), to.clone());
                    self.take_effect(sent, *amount, op.reference, now_ms);
                }
                return;
            }
        };
        self.take_effect(kind, op.change.amount(), op.reference, now_ms);
    }

    fn take_effect(
        &mut self,
        kind: EffectKind,
        amount: Amount,
        reference: Option<Reference>,
        now_ms: u64,
    ) {
        let (value, held) = kind.signs();
        self.value += value * amount.get();
        self.held += held * amount.get();
        self.log_referenced(kind, amount.get(), reference, now_ms);
    }

    /// Lists a change that is not final.
    fn list(&mut self, id: &RequestId, change: &Change) {
        match change {
            Change::Deposit { .. } | Change::Deduct { .. } => {}
            Change::Reserve { deadline_ms, .. } => {
                self.due.insert((*deadline_ms, id.clone()));
            }
            Change::Transfer { .. } | Change::TransferLegs { .. } => {
                self.sent.insert(id.clone());
            }
        }
    }
}

/// What makes room for an id that was not decided may forget up to that id.
fn undecided(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::TooOld { mark_ms } => Refusal::IdExpired { since_ms: mark_ms },
        other => other,
    }
}
