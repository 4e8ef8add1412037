//! Replaces a segment that is lost with its storage by an empty one.

use super::{Refusal, Replace, Segment, checks::clocks_agree};

/// No segment has had a version as great as the time in ms times this: it would have changed this often per ms.
const VERSIONS_PER_MS: u64 = 1024;

impl Segment {
    /// An empty segment in place of a lost one. Nothing of the lost content comes back:
    ///
    /// * A loan to the lost segment counts as landed, and lost: the numbers of the loans that land here are greater.
    /// * The version, and with it the numbers of its own loans, are greater than all that the lost segment had.
    /// * Ids that the lost segment may have decided are refused as too old.
    ///
    /// It counts as a segment that came back without its last changes.
    pub(super) fn replacement(replace: &Replace, now_ms: u64) -> Result<Self, Refusal> {
        clocks_agree(replace.at_ms, now_ms, replace.create.terms.skew_ms)?;
        let mut segment = Self::new(&replace.create);
        let unused = now_ms * VERSIONS_PER_MS;
        segment.version = unused;
        segment.losses = replace.losses;
        segment.inn.clone_from(&replace.lent);
        let lost = replace.lost.iter().map(|&other| (other, unused));
        segment.inn.extend(lost);
        segment.lost_ms = segment.latest_ms(now_ms);
        segment.mark_ms = segment.mark_ms.max(segment.lost_ms);
        segment.came_back();
        Ok(segment)
    }
}
