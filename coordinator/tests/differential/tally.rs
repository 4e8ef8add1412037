//! What was compared: a run in which nothing happens proves nothing.

use std::{collections::BTreeMap, fmt, sync::Mutex};

/// How often at least: half of what a run finds, or less.
pub(crate) const MINIMA: [(&str, u64); 40] = [
    ("operations", 10_000),
    ("granted", 250),
    ("granted again", 50),
    ("held", 300),
    ("renewed", 200),
    ("reclaimed", 40),
    ("confirmed", 20),
    ("installed", 20),
    ("lost", 300),
    ("released", 100),
    ("gone", 300),
    ("moved", 50),
    ("grace", 200),
    ("quiet batches", 60),
    ("full batches", 300),
    ("found", 50),
    ("not found", 100),
    ("armed", 100),
    ("armed before", 10),
    ("quiet marks", 30),
    ("failed quiet marks", 30),
    ("queued", 1_500),
    ("turns", 150),
    ("contended by message", 500),
    ("contended by answer", 500),
    ("raises", 15),
    ("steps", 400),
    ("refused steps", 40),
    ("absent", 90),
    ("moving", 100),
    ("renewed, moving", 15),
    ("need proof", 80),
    ("adopted", 80),
    ("not adopted", 500),
    ("removed", 3),
    ("left, held", 20),
    ("still held", 60),
    ("listed", 80),
    ("unarmed", 10),
    ("stale", 10),
];

/// The same, of a run with semaphores and read-write locks.
pub(crate) const MINIMA_OF_SHARES: [(&str, u64); 18] = [
    ("operations", 10_000),
    ("granted", 250),
    ("granted again", 50),
    ("held", 100),
    ("renewed", 100),
    ("reclaimed", 40),
    ("lost", 300),
    ("released", 100),
    ("grace", 200),
    ("queued", 1_000),
    ("turns", 80),
    ("other kind", 100),
    ("absent", 50),
    ("some left", 20),
    ("need proof", 80),
    ("adopted", 60),
    ("removed", 3),
    ("still held", 20),
];

/// Counts by name.
#[derive(Debug)]
pub(crate) struct Tally {
    counts: Mutex<BTreeMap<&'static str, u64>>,
    minima: &'static [(&'static str, u64)],
}

impl Tally {
    pub(crate) fn new(minima: &'static [(&'static str, u64)]) -> Self {
        let counts = Mutex::default();
        Self { counts, minima }
    }

    pub(crate) fn count(&self, name: &'static str) {
        *self.counts.lock().unwrap().entry(name).or_default() += 1;
    }

    pub(crate) fn of(&self, name: &str) -> u64 {
        self.counts
            .lock()
            .unwrap()
            .get(name)
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn is_vacuous(&self) -> bool {
        self.first_missing().is_some()
    }

    pub(crate) fn assert_not_vacuous(&self) {
        if let Some((name, minimum)) = self.first_missing() {
            panic!("{name}: {} of {minimum}", self.of(name));
        }
    }

    fn first_missing(&self) -> Option<(&'static str, u64)> {
        let mut minima = self.minima.iter().copied();
        minima.find(|(name, minimum)| self.of(name) < *minimum)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts.lock().unwrap();
        counts
            .iter()
            .try_for_each(|(name, count)| writeln!(formatter, "{count:>8} {name}"))
    }
}
