//! Replaces a segment that is lost with its storage by an empty one.

use super::{Refusal, Replace, Segment, checks::clocks_agree};

/// A number above every version that a segment can have at that time: it would have changed 1024 times per ms.
pub(crate) fn unused_version(now_ms: u64) -> u64 {
    now_ms * 1024
}

impl Segment {
    /// An empty segment in place of a lost one. Nothing of the lost content comes back:
    ///
    /// * It is in doubt until it is [accepted](Self::accept) with the versions of the other segments. Their loans of
    ///   before count as landed, and lost.
    /// * The version, and with it the numbers of its own loans, are greater than all that the lost segment had.
    /// * So are the numbers of its effects.
    /// * Ids that the lost segment may have decided are refused as too old, once it is accepted.
    pub(super) fn replacement(replace: &Replace, now_ms: u64) -> Result<Self, Refusal> {
        clocks_agree(replace.at_ms, now_ms, replace.create.terms.skew_ms)?;
        let mut segment = Self::new(&replace.create);
        segment.version = unused_version(now_ms);
        segment.log.last = segment.version;
        segment.losses = replace.losses;
        segment.lost_ms = segment.latest_ms(now_ms);
        segment.doubtful = true;
        segment.awaits_versions = true;
        Ok(segment)
    }
}
