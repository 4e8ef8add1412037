//! The two timers of an armed life.

use std::time::Duration;

/// The timers of an armed life, in milliseconds by the shard's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timers {
    /// Nothing new is granted before this.
    pub(crate) grace_until_ms: u64,
    /// Nothing is granted or reclaimed before this.
    pub(crate) shut_until_ms: u64,
    /// How long the grace was set for. If more seems to be left, the clock was set back since.
    pub(super) grace_ms: u64,
    /// The same of the other timer.
    pub(super) shut_ms: u64,
}

impl Timers {
    /// Sets the timers to at least `grace_ms` and `shut_ms` from now. Neither timer is cut short.
    pub(crate) fn extend(&mut self, grace_ms: u64, shut_ms: u64, now_ms: u64) {
        let left = |until_ms: u64, length_ms| until_ms.saturating_sub(now_ms).min(length_ms);
        self.grace_ms = left(self.grace_until_ms, self.grace_ms).max(grace_ms);
        self.shut_ms = left(self.shut_until_ms, self.shut_ms).max(shut_ms);
        self.grace_until_ms = now_ms.saturating_add(self.grace_ms);
        self.shut_until_ms = now_ms.saturating_add(self.shut_ms);
    }

    /// As [`extend`](Self::extend): first nothing is granted or reclaimed for `shut_ms`, then nothing new is granted for `grace_ms`.
    pub(crate) fn extend_in_turn(&mut self, shut_ms: u64, grace_ms: u64, now_ms: u64) {
        self.extend(0, shut_ms, now_ms);
        self.extend(self.shut_ms.saturating_add(grace_ms), 0, now_ms);
    }

    /// Whether nothing new is granted now.
    pub(crate) fn is_grace(&self, now_ms: u64) -> bool {
        now_ms < self.grace_until_ms
    }

    /// Whether nothing is granted or reclaimed now.
    pub(crate) fn is_shut(&self, now_ms: u64) -> bool {
        now_ms < self.shut_until_ms
    }

    /// How long nothing new is granted.
    pub(crate) fn grace_left(&self, now_ms: u64) -> Duration {
        Duration::from_millis(self.grace_until_ms.saturating_sub(now_ms))
    }
}
