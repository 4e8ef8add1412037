//! Lends money to another segment.

use super::{Answer, Channel, EffectKind, Lend, Reply, Segment};

impl Segment {
    /// Takes up to `want` for segment `to`, if the last loan to it has landed: its number is at most `landed`. If there
    /// is no money: [`Reply::Nothing`]. Otherwise returns the last loan again, and takes nothing.
    ///
    /// The loan's number is the segment's version, which never repeats. So a late request makes a loan that lands, even
    /// if the segment has lost changes since, or was replaced.
    pub fn lend(&mut self, lend: &Lend, now_ms: u64) -> Answer {
        self.certain()?;
        let last = self.out.get(&lend.to).copied().unwrap_or_default();
        if lend.landed < last.seq {
            return Ok(Reply::Lent(last));
        }
        self.not_frozen(lend.caller, now_ms)?;
        let amount = lend.want.get().min(self.value);
        if amount == 0 {
            return Ok(Reply::Nothing);
        }
        self.set_value(self.value - amount);
        let loan = Channel {
            seq: self.version,
            amount,
        };
        self.out.insert(lend.to, loan);
        let (to, seq) = (lend.to, loan.seq);
        self.log(EffectKind::Lent { to, seq }, amount, now_ms);
        Ok(Reply::Lent(loan))
    }
}
