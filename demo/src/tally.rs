//! The counts and measurements of workers.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;
use ringfence_client::{Instant, ShardId};

/// Longer waits and holds are counted as this long.
const TIME_MAX: Duration = Duration::from_secs(3600);

/// The counts and measurements of workers.
#[derive(Debug)]
pub(super) struct Tally {
    /// Deductions that found no coins.
    pub(super) refused_empty: u64,
    /// Deductions that the bank refused for their token.
    pub(super) fenced: u64,
    /// Locks that were lost before their release.
    pub(super) locks_lost: u64,
    /// Deductions by the shard of their lock.
    pub(super) by_shard: BTreeMap<ShardId, u64>,
    /// From the request for a lock to its grant, in µs.
    pub(super) wait_us: Histogram<u64>,
    /// From its grant to its release, in µs.
    pub(super) hold_us: Histogram<u64>,
    /// From the request for it to its release, in µs; for a counter, to its answer.
    pub(super) whole_us: Histogram<u64>,
}

impl Tally {
    /// No counts yet.
    pub(super) fn new() -> Self {
        let histogram = || Histogram::new(3).expect("3 digits are within its bounds");
        Self {
            refused_empty: 0,
            fenced: 0,
            locks_lost: 0,
            by_shard: BTreeMap::new(),
            wait_us: histogram(),
            hold_us: histogram(),
            whole_us: histogram(),
        }
    }

    /// How many deductions there were.
    pub(super) fn deductions(&self) -> u64 {
        self.by_shard.values().sum()
    }

    /// The part of all deductions that `shard` had, of 1.
    pub(super) fn share(&self, shard: &ShardId) -> f64 {
        let its = self.by_shard.get(shard).copied().unwrap_or_default();
        its as f64 / self.deductions().max(1) as f64
    }

    /// Adds the counts of `other`.
    pub(super) fn add(&mut self, other: &Self) {
        self.refused_empty += other.refused_empty;
        self.fenced += other.fenced;
        self.locks_lost += other.locks_lost;
        for (shard, its) in &other.by_shard {
            *self.by_shard.entry(shard.clone()).or_default() += its;
        }
        self.wait_us += &other.wait_us;
        self.hold_us += &other.hold_us;
        self.whole_us += &other.whole_us;
    }
}

/// Counts the time between, in µs.
pub(super) fn record(histogram: &mut Histogram<u64>, from: Instant, to: Instant) {
    let micros = to.since(from).min(TIME_MAX).as_micros() as u64;
    histogram.record(micros).expect("it grows as it needs to");
}
