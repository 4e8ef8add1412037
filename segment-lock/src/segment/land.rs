//! Receives a loan.

use super::{Answer, Land, Loan, Reply, Segment};

/// Whether the loan of number `seq` may land after the loan of number `landed`: only the next number may. A receiver
/// that lost changes lands any greater one, because it may have lost the loans in between.
pub(crate) fn lands(seq: u64, landed: u64, losses: u64) -> bool {
    seq == landed + 1 || (losses > 0 && seq > landed)
}

impl Segment {
    /// Adds the loan iff it is the next one from that segment, so that it counts once; otherwise returns
    /// [`Reply::Stale`].
    pub fn land(&mut self, land: &Land, now_ms: u64) -> Answer {
        let Land { loan, caller } = *land;
        self.certain()?;
        if !self.is_next(&loan) {
            return Ok(Reply::Stale);
        }
        self.not_frozen(caller, now_ms)?;
        self.sum(i128::from(loan.amount.get()))?;
        self.receive(&loan);
        Ok(Reply::Landed)
    }

    /// Whether it may land here now.
    pub(super) fn is_next(&self, loan: &Loan) -> bool {
        let landed = self.inn.get(&loan.from).copied().unwrap_or_default();
        lands(loan.seq, landed, self.losses)
    }

    /// Adds a loan that is the next one, and fits.
    pub(super) fn receive(&mut self, loan: &Loan) {
        self.inn.insert(loan.from, loan.seq);
        self.set_value(self.value + loan.amount.get());
    }
}
