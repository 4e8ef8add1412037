//! Lends money to another segment.

use super::{Answer, Channel, Lend, Reply, Segment};

impl Segment {
    /// Takes up to `want` for segment `to`, as the loan number `seq`.
    ///
    /// * The last number again: the same loan again, nothing is taken.
    /// * The next number: [`Reply::Lent`], or [`Reply::Nothing`] if there is no money.
    /// * Any other: [`Reply::Stale`]. A segment that may have lost its last loans believes the receiver that they
    ///   landed.
    pub fn lend(&mut self, lend: &Lend, now_ms: u64) -> Answer {
        self.certain()?;
        let last = self.out.get(&lend.to).copied().unwrap_or_default();
        if lend.seq == last.seq {
            return Ok(Reply::Lent(last));
        }
        let believed = lend.seq > last.seq && self.losses > 0;
        if lend.seq != last.seq + 1 && !believed {
            return Ok(Reply::Stale);
        }
        self.not_frozen(lend.caller, now_ms)?;
        let amount = lend.want.get().min(self.value);
        if amount == 0 {
            return Ok(Reply::Nothing);
        }
        let loan = Channel {
            seq: lend.seq,
            amount,
        };
        self.out.insert(lend.to, loan);
        self.set_value(self.value - amount);
        Ok(Reply::Lent(loan))
    }
}
