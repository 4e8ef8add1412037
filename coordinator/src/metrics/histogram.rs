//! A distribution of durations or of numbers.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// Upper bounds of durations, in nanoseconds: 500 µs to 30 s.
const DURATIONS_NS: &[u64] = &[
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
];

/// Upper bounds of numbers.
const NUMBERS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Counts values by size.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// The number of units in a reader's unit: nanoseconds in a second, or one.
    per_unit: f64,
    /// Per bound, and one more for larger values.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    fn new(bounds: &'static [u64], per_unit: f64) -> Self {
        Self {
            bounds,
            per_unit,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }
    }

    pub(super) fn of_durations() -> Self {
        Self::new(DURATIONS_NS, 1e9)
    }

    pub(super) fn of_numbers() -> Self {
        Self::new(NUMBERS, 1.0)
    }

    pub(super) fn add_duration(&self, length: Duration) {
        self.add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn add(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    /// The sum of all values, durations in seconds.
    pub fn sum(&self) -> f64 {
        self.sum.load(Relaxed) as f64 / self.per_unit
    }

    /// Upper bounds, durations in seconds, with the number of values above the bound before. The
    /// last bound is [`f64::INFINITY`].
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = self
            .bounds
            .iter()
            .map(|bound| *bound as f64 / self.per_unit);
        let counts = self.counts.iter().map(|count| count.load(Relaxed));
        bounds.chain([f64::INFINITY]).zip(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_at_the_first_bound_that_is_not_less() {
        let histogram = Histogram::of_numbers();
        for value in [0, 1, 2, 3, 256, 257] {
            histogram.add(value);
        }
        let buckets = histogram.buckets();
        assert_eq!(buckets[..3], [(1.0, 2), (2.0, 1), (4.0, 1)]);
        assert_eq!(buckets[8..], [(256.0, 1), (f64::INFINITY, 1)]);
        assert_eq!(histogram.sum(), 519.0);

        let histogram = Histogram::of_durations();
        histogram.add_duration(Duration::from_millis(1500));
        assert_eq!(histogram.sum(), 1.5);
        let bucket = histogram
            .buckets()
            .into_iter()
            .find(|(_, count)| *count > 0);
        assert_eq!(bucket, Some((2.5, 1)));
    }
}
