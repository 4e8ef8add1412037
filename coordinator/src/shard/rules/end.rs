//! Ends by the shard's clock: of the grace of an armed life, of records, and of tickets.

use std::time::Duration;

/// An end, in milliseconds by the shard's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) at_ms: u64,
    /// How far away it was when it was set. If it is farther away, the clock was set back since.
    pub(crate) length_ms: u64,
}

impl End {
    /// An end `length_ms` from now.
    pub(crate) fn after(length_ms: u64, now_ms: u64) -> Self {
        Self {
            at_ms: now_ms.saturating_add(length_ms),
            length_ms,
        }
    }

    /// The later one.
    pub(crate) fn max(self, other: Self) -> Self {
        match other.at_ms > self.at_ms {
            true => other,
            false => self,
        }
    }

    /// Sets it to at least `length_ms` from now. It is not cut short.
    pub(crate) fn extend(&mut self, length_ms: u64, now_ms: u64) {
        *self = Self::after(self.left_ms(now_ms).max(length_ms), now_ms);
    }

    /// Sets it to its whole length from now, if it is farther away: nothing tells how much is left of it. The clock may be
    /// late by `slack_ms`. Returns whether it was farther away.
    pub(crate) fn limit(&mut self, now_ms: u64, slack_ms: u64) -> bool {
        let latest = now_ms.saturating_add(slack_ms);
        let latest = latest.saturating_add(self.length_ms);
        let is_beyond = self.at_ms > latest;
        self.at_ms = self.at_ms.min(latest);
        is_beyond
    }

    /// Whether it is `known`, or that after it was limited.
    pub(crate) fn is_within(self, known: Self) -> bool {
        self.length_ms == known.length_ms && self.at_ms <= known.at_ms
    }

    /// Ends it now.
    pub(crate) fn end(&mut self) {
        self.at_ms = 0;
    }

    /// Whether any of it is left.
    pub(crate) fn runs(&self, now_ms: u64) -> bool {
        self.left_ms(now_ms) > 0
    }

    /// How much is left of it: no more than its length.
    pub(crate) fn left_ms(&self, now_ms: u64) -> u64 {
        self.at_ms.saturating_sub(now_ms).min(self.length_ms)
    }

    /// The same, as a length.
    pub(crate) fn left(&self, now_ms: u64) -> Duration {
        Duration::from_millis(self.left_ms(now_ms))
    }
}
