//! The times at which to tend each lease.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::clock::Instant;

/// Leases due within the same tick are tended together: their renewals travel together.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// A lease that has a place in the wheel.
pub(crate) trait Tended {
    fn place(&self) -> &Place;
}

/// The leases at one shard, by the time to tend them.
#[derive(Debug)]
pub(crate) struct Wheel<L> {
    pub(crate) due: BTreeMap<u64, Vec<Arc<L>>>,
    /// The tick until which the task sleeps.
    pub(crate) asleep_until: u64,
}

/// The place of a lease in the wheel. Touched only with the wheel locked.
#[derive(Debug)]
pub(crate) struct Place {
    tick: AtomicU64,
    index: AtomicUsize,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            tick: AtomicU64::new(Self::NOWHERE),
            index: AtomicUsize::new(0),
        }
    }
}

impl Place {
    const NOWHERE: u64 = u64::MAX;

    /// The tick at which it is due; [`u64::MAX`] if it is not in the wheel.
    pub(crate) fn tick(&self) -> u64 {
        self.tick.load(Relaxed)
    }
}

impl<L> Default for Wheel<L> {
    fn default() -> Self {
        Self {
            due: BTreeMap::new(),
            asleep_until: 0,
        }
    }
}

impl<L: Tended> Wheel<L> {
    pub(crate) fn add(&mut self, lease: Arc<L>, tick: u64) {
        let bucket = self.due.entry(tick).or_default();
        lease.place().tick.store(tick, Relaxed);
        lease.place().index.store(bucket.len(), Relaxed);
        bucket.push(lease);
    }

    pub(crate) fn remove(&mut self, lease: &L) {
        let tick = lease.place().tick.swap(Place::NOWHERE, Relaxed);
        if tick == Place::NOWHERE {
            return;
        }
        let Some(bucket) = self.due.get_mut(&tick) else {
            return;
        };
        let index = lease.place().index.load(Relaxed);
        bucket.swap_remove(index);
        if let Some(moved) = bucket.get(index) {
            moved.place().index.store(index, Relaxed);
        }
    }

    /// Takes the leases due at `tick` or before.
    pub(crate) fn take_due(&mut self, tick: u64) -> Vec<Arc<L>> {
        let later = self.due.split_off(&(tick + 1));
        taken(std::mem::replace(&mut self.due, later))
    }

    /// Takes everything.
    pub(crate) fn take_all(&mut self) -> Vec<Arc<L>> {
        taken(std::mem::take(&mut self.due))
    }
}

fn taken<L: Tended>(due: BTreeMap<u64, Vec<Arc<L>>>) -> Vec<Arc<L>> {
    let leases: Vec<_> = due.into_values().flatten().collect();
    leases
        .iter()
        .for_each(|lease| lease.place().tick.store(Place::NOWHERE, Relaxed));
    leases
}

/// The last tick at `at`.
pub(crate) fn tick_at(at: Instant) -> u64 {
    at.as_nanos() / TICK.as_nanos() as u64
}

/// The first tick not before `at`.
pub(crate) fn tick_from(at: Instant) -> u64 {
    at.as_nanos().div_ceil(TICK.as_nanos() as u64)
}
