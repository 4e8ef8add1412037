//! Replaces a segment that is lost with its storage by an empty one.

use super::{Channel, Replace, Segment};

/// No segment has used a number as great as the time in ms times this: it would have made this many loans per ms.
pub(crate) const NUMBERS_PER_MS: u64 = 1024;

impl Segment {
    /// An empty segment in place of a lost one. Nothing of the lost content comes back:
    ///
    /// * A loan between it and another segment counts as landed, and lost. The numbers continue after those of the
    ///   other segment: a loan that landed before must not land again.
    /// * Ids that the lost segment may have decided are refused as too old.
    ///
    /// It counts as a segment that came back without its last changes.
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

    /// Continues the numbers of the loans from and to `other` after these.
    fn count_from(&mut self, other: u32, inn: u64, out: u64) {
        let nothing = Channel {
            seq: out,
            amount: 0,
        };
        self.inn.insert(other, inn);
        self.out.insert(other, nothing);
    }
}
