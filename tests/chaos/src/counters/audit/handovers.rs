//! Shards whose data another server had, for good or for a while: in doubt, and without loss.

use super::fate::Fate;
use crate::counters::Order;

/// A shard's replica was left behind, and then had the shard's data, for good or for a while. The segments are in doubt
/// until that is accepted; then requests that are not recorded are too old there.
#[derive(Clone, Copy, Debug)]
pub struct Handover {
    /// Before it began.
    pub from_ns: u64,
    /// After it was over, and before it was accepted.
    pub over_ns: u64,
    /// The greatest time of requests that are too old since, in ms since 1970.
    pub mark_ms: u64,
}

impl Handover {
    /// Whether a request may be refused as too old at that time.
    pub(super) fn may_refuse(&self, order: &Order, at_ns: u64) -> bool {
        self.from_ns < at_ns && order.time_ms <= self.mark_ms
    }
}

/// Whether a request was refused as too old and certainly never done. If a handover came between, it may have been done
/// before: records of requests that are too old are dropped.
///
/// So the bounds of balances are wider by the requests that were under way at a handover. A few changes that were acknowledged
/// and lost with it can hide in that.
pub(super) fn is_undone(fate: &Fate, handovers: &[Handover]) -> bool {
    let Some(refused_ns) = fate.too_old_ns else {
        return false;
    };
    let came_between =
        |handover: &Handover| fate.asked_ns < handover.over_ns && handover.from_ns < refused_ns;
    fate.is_unanswered() && !handovers.iter().any(came_between)
}
