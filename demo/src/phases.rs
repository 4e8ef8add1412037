//! The parts of a run, and their counts: before, during and after each resize, or all of it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use ringfence_client::Instant;

use super::tally::Tally;

/// The parts of a run so far.
#[derive(Debug)]
pub(super) struct Phases {
    /// An index into `all`.
    latest: AtomicUsize,
    all: Mutex<Vec<Phase>>,
}

/// A part of a run.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// The number of shards at its beginning, and at its end.
    pub(super) shards: (usize, usize),
    /// It ends when the next one begins.
    pub(super) began: Instant,
    /// The counts of the deductions that began in it.
    pub(super) tally: Tally,
}

impl Phases {
    /// No part yet; nothing is counted before the first begins.
    pub(super) fn new() -> Self {
        Self {
            latest: AtomicUsize::new(0),
            all: Mutex::default(),
        }
    }

    /// Ends the latest part, and begins another.
    pub(super) fn begin(&self, name: &'static str, shards: (usize, usize), began: Instant) {
        let mut all = self.all.lock();
        all.push(Phase {
            name,
            shards,
            began,
            tally: Tally::new(),
        });
        self.latest.store(all.len() - 1, Relaxed);
    }

    /// The index of the part under way.
    pub(super) fn latest(&self) -> usize {
        self.latest.load(Relaxed)
    }

    /// Adds counts of a worker to `phase`.
    pub(super) fn add(&self, phase: usize, tally: &Tally) {
        self.all.lock()[phase].tally.add(tally);
    }

    /// All parts.
    pub(super) fn take(&self) -> Vec<Phase> {
        std::mem::take(&mut self.all.lock())
    }
}
