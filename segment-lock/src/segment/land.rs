//! Receives a loan.

use super::{Answer, EffectKind, Land, Loan, Reply, Segment};

impl Segment {
    /// Adds the loan iff its number is greater than that of the last one from that segment, so that it counts once;
    /// otherwise returns [`Reply::Stale`].
    pub fn land(&mut self, land: &Land, now_ms: u64) -> Answer {
        let Land { loan, caller } = *land;
        self.certain()?;
        if !self.is_new(&loan) {
            return Ok(Reply::Stale);
        }
        self.not_frozen(caller, now_ms)?;
        self.sum(i128::from(loan.amount.get()))?;
        self.receive(&loan, now_ms);
        Ok(Reply::Landed)
    }

    /// Whether it may land here now.
    pub(super) fn is_new(&self, loan: &Loan) -> bool {
        let landed = self.inn.get(&loan.from).copied().unwrap_or_default();
        loan.seq > landed
    }

    /// Adds a loan that is new, and fits.
    pub(super) fn receive(&mut self, loan: &Loan, now_ms: u64) {
        let &Loan { from, seq, amount } = loan;
        self.inn.insert(from, seq);
        self.set_value(self.value + amount.get());
        self.log(EffectKind::Landed { from, seq }, amount.get(), now_ms);
    }
}
