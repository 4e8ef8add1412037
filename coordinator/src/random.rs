//! The one source of randomness.

use std::time::Duration;

use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// Random numbers for jitter and ids.
///
/// With a seed it is repeatable: right for a simulation, and wrong for two processes that share a
/// server, because their nonces would be the same.
#[derive(Debug)]
pub struct Random(Mutex<StdRng>);

impl Random {
    /// Seeded by the operating system.
    pub fn from_os() -> Self {
        Self(Mutex::new(rand::make_rng()))
    }

    /// The same numbers for the same `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// 128 random bits.
    pub fn id(&self) -> u128 {
        self.0.lock().random()
    }

    /// A number in `0..bound`; 0 if `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            self.0.lock().random_range(0..bound)
        }
    }

    /// Between half of `length` and all of it.
    pub fn jitter(&self, length: Duration) -> Duration {
        let half = length / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
        half + Duration::from_nanos(self.below(nanos.saturating_add(1)))
    }
}
