//! A process's knowledge of the sub-locks, from its own requests.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::choice::{Choice, Known, choose};

/// How long a process avoids a shard that refused a grant for a reason that does not concern the sub-lock.
const TROUBLE: Duration = Duration::from_secs(1);

/// The contention that one process met at one sub-lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// The number of tasks of this process that hold it or ask for it now.
    pub here: u32,
    /// The number of grants to this process.
    pub acquisitions: u64,
    /// The number of grants after a wait.
    pub waits: u64,
    /// The total length of these waits.
    pub waited: Duration,
}

#[derive(Debug, Default)]
struct Entry {
    contention: Contention,
    is_held_elsewhere: bool,
    troubled_until: Option<Instant>,
}

/// A process's knowledge of all sub-locks.
#[derive(Debug)]
pub(super) struct Knowledge(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    entries: Vec<Entry>,
    /// The sub-lock that `any` had last.
    last: u32,
}

impl Inner {
    fn entry(&mut self, segment: u32) -> &mut Entry {
        let at = segment as usize;
        if self.entries.len() <= at {
            self.entries.resize_with(at + 1, Entry::default);
        }
        &mut self.entries[at]
    }
}

impl Knowledge {
    /// No knowledge yet; `any` begins at `first`.
    pub(super) fn new(first: u32) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inner {
            entries: Vec::new(),
            last: first,
        })))
    }

    /// Registers a task at sub-lock `segment`.
    pub(super) fn enter(self: &Arc<Self>, segment: u32) -> Presence {
        self.enter_in(&mut self.0.lock(), segment)
    }

    /// Chooses among the first `used`, and registers there, so that the next caller knows.
    pub(super) fn choose(self: &Arc<Self>, used: u32, tried: &[u32]) -> (Choice, Presence) {
        let mut inner = self.0.lock();
        let now = Instant::now();
        let known = (0..used).map(|segment| inner.entry(segment).known(now));
        let known: Vec<Known> = known.collect();
        let choice = choose(&known, inner.last, tried);
        let (Choice::Try(segment) | Choice::Wait(segment)) = choice;
        (choice, self.enter_in(&mut inner, segment))
    }

    /// The contention met so far, for each of `made`.
    pub(super) fn contention(&self, made: u32) -> Vec<Contention> {
        let mut inner = self.0.lock();
        let of = |segment| inner.entry(segment).contention;
        (0..made).map(of).collect()
    }

    fn enter_in(self: &Arc<Self>, inner: &mut Inner, segment: u32) -> Presence {
        inner.entry(segment).contention.here += 1;
        Presence {
            knowledge: Arc::clone(self),
            segment,
            since: Instant::now(),
        }
    }
}

impl Entry {
    fn known(&self, now: Instant) -> Known {
        Known {
            here: self.contention.here,
            is_held_elsewhere: self.is_held_elsewhere,
            is_in_trouble: self.troubled_until.is_some_and(|until| now < until),
        }
    }
}

/// One task at a sub-lock: asking for it, or holding it. Dropping this ends that.
#[derive(Debug)]
pub(super) struct Presence {
    knowledge: Arc<Knowledge>,
    pub(super) segment: u32,
    since: Instant,
}

impl Presence {
    /// It was granted.
    pub(super) fn granted(&self, had_to_wait: bool) {
        let mut inner = self.knowledge.0.lock();
        let entry = inner.entry(self.segment);
        entry.is_held_elsewhere = false;
        entry.troubled_until = None;
        entry.contention.acquisitions += 1;
        if had_to_wait {
            entry.contention.waits += 1;
            entry.contention.waited += self.since.elapsed();
        }
    }

    /// Notes it as the one that `any` had last.
    pub(super) fn is_last(&self) {
        self.knowledge.0.lock().last = self.segment;
    }

    /// Another process has it.
    pub(super) fn refused(&self) {
        let mut inner = self.knowledge.0.lock();
        inner.entry(self.segment).is_held_elsewhere = true;
    }

    /// Its shard refused for a reason that does not concern the sub-lock.
    pub(super) fn troubled(&self) {
        let mut inner = self.knowledge.0.lock();
        inner.entry(self.segment).troubled_until = Some(Instant::now() + TROUBLE);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut inner = self.knowledge.0.lock();
        inner.entry(self.segment).contention.here -= 1;
    }
}
