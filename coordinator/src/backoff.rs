//! Pauses that grow, with jitter.

use std::time::Duration;

use crate::random::Random;

/// Pauses from `first` to `max`, each half as long again as the previous one. Each is reduced at
/// random to between half of its length and all of it.
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
