//! Pauses that grow, with jitter.

use std::time::Duration;

use crate::random::Random;

/// Pauses from `first` up, half as long again each time, to `max`; each cut to between half of it
/// and all of it at random.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, max: Duration) -> Self {
        Self {
            first,
            max,
            next: first,
        }
    }

    /// Starts over.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }

    /// The next pause.
    pub(crate) fn next(&mut self, random: &Random) -> Duration {
        let pause = self.next;
        self.next = (pause * 3 / 2).min(self.max);
        random.jitter(pause)
    }
}
