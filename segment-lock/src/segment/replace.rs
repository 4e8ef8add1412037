//! A segment that is lost with its storage is replaced by one that has nothing.

use super::{Channel, Replace, Segment};

/// No number that a segment has used before is as great as the time in ms, times this: it would have made as many loans per
/// ms.
pub(crate) const NUMBERS_PER_MS: u64 = 1024;

impl Segment {
    /// A segment with nothing in it, in the place of one that is lost. Nothing that was there comes back:
    ///
    /// * A loan between it and another segment counts as landed, and lost. Numbers go on where the other segment is: a
    ///   loan that landed before must not land again.
    /// * An id that may have been decided there is too old.
    ///
    /// It counts as one that came back without its last changes.
    pub(super) fn replacement(replace: &Replace, now_ms: u64) -> Self {
        let mut segment = Self::new(&replace.create);
        let unused = now_ms * NUMBERS_PER_MS;
        segment.version = unused;
        segment.losses = replace.losses;
        for (&other, numbers) in &replace.numbers {
            segment.count_from(other, numbers.lent, numbers.landed);
        }
        for &other in &replace.lost {
            segment.count_from(other, unused, unused);
        }
        segment.lost_ms = segment.latest_ms(now_ms);
        segment.mark_ms = segment.mark_ms.max(segment.lost_ms);
        segment.came_back();
        segment
    }

    /// Has the loans from and to `other` go on after these numbers.
    fn count_from(&mut self, other: u32, inn: u64, out: u64) {
        let nothing = Channel {
            seq: out,
            amount: 0,
        };
        self.inn.insert(other, inn);
        self.out.insert(other, nothing);
    }
}
