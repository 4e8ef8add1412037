//! The grace of an armed life.

use std::time::Duration;

/// Nothing new is granted before its end. In milliseconds by the shard's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GraceTimer {
    pub(crate) until_ms: u64,
    /// How long it was set for. If more seems to be left, the clock was set back since.
    pub(super) length_ms: u64,
}

impl GraceTimer {
    /// Sets the end to at least `length_ms` from now. It is not cut short.
    pub(crate) fn extend(&mut self, length_ms: u64, now_ms: u64) {
        let left_ms = self.until_ms.saturating_sub(now_ms).min(self.length_ms);
        self.length_ms = left_ms.max(length_ms);
        self.until_ms = now_ms.saturating_add(self.length_ms);
    }

    /// Whether nothing new is granted now.
    pub(crate) fn runs(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms
    }

    /// How long nothing new is granted.
    pub(crate) fn left(&self, now_ms: u64) -> Duration {
        Duration::from_millis(self.until_ms.saturating_sub(now_ms))
    }
}
