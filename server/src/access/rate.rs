//! Calls per second of a caller.

use std::time::Duration;

use parking_lot::Mutex;
use ringfence_client::Instant;

/// Counts calls against a rate.
#[derive(Debug)]
pub(super) struct Rate {
    /// A caller that has been quiet for this long may make all calls of it at once.
    period: Duration,
    /// The time per call.
    interval: Duration,
    /// The time at which the calls so far are paid.
    paid_at: Mutex<Instant>,
}

impl Rate {
    /// At most `per_second` calls; at least one.
    pub(super) fn new(per_second: u32) -> Self {
        Self::per(Duration::from_secs(1), per_second)
    }

    /// At most `calls` per `period`; at least one.
    pub(super) fn per(period: Duration, calls: u32) -> Self {
        Self {
            period,
            interval: period / calls.max(1),
            paid_at: Mutex::default(),
        }
    }

    /// The same rate, without calls so far.
    pub(super) fn anew(&self) -> Self {
        Self {
            paid_at: Mutex::default(),
            ..*self
        }
    }

    /// Counts `calls` at `now`. The error is the time until the next call may come; then none is counted.
    pub(super) fn count(&self, calls: u32, now: Instant) -> Result<(), Duration> {
        let mut paid_at = self.paid_at.lock();
        let earliest = *paid_at - self.period;
        if now < earliest {
            return Err(earliest.since(now));
        }
        *paid_at = now.max(*paid_at) + self.interval * calls;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_beyond_the_rate_wait() {
        let rate = Rate::new(10);
        let start = Instant::default() + Duration::from_secs(1000);
        // A second's calls, and the one that comes now.
        for _ in 0..11 {
            assert_eq!(rate.count(1, start), Ok(()));
        }
        let wait = rate.count(1, start).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        assert!(rate.count(1, start + wait / 2).is_err());
        assert_eq!(rate.count(1, start + wait), Ok(()));
        assert!(rate.count(1, start + wait).is_err());
        let later = start + Duration::from_secs(100);
        let allowed = (0..100).filter(|_| rate.count(1, later).is_ok()).count();
        assert_eq!(allowed, 11);
    }
}
