//! Whether a contender excludes, checked on every grant at next to no cost: within a process by a
//! flag, between processes by comparing afterwards when each of them held the lock.
//!
//! Locks given back at once are held for so short a time that two would hardly ever show, so in the
//! first half of the warm-up every hold is as long as [`HOLD_MIN`].

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use ringfence_benches::Failure;

use crate::messages::monotonic;

/// Long enough for a second holder to show.
pub(crate) const HOLD_MIN: Duration = Duration::from_millis(1);

/// As many holds of a process are compared, from the first on: some ten times what a lock reaches
/// that asks the server for each.
const INTERVALS_MAX: usize = 50_000;

/// From when to when a lock was held, on the clock that processes share.
pub(crate) type Interval = (u64, u64);

/// Those who hold the lock in this process: one at most.
#[derive(Debug, Default)]
pub(crate) struct Exclusion {
    held: AtomicBool,
    intervals: Mutex<Vec<Interval>>,
}

impl Exclusion {
    /// To be called once granted. Answers when.
    pub(crate) fn enter(&self) -> Result<u64, Failure> {
        if self.held.swap(true, SeqCst) {
            return Err("two tasks of one process hold the lock".into());
        }
        monotonic()
    }

    /// To be called before giving back what was granted at `granted`.
    pub(crate) fn leave(&self, granted: u64) -> Result<(), Failure> {
        let interval = (granted, monotonic()?);
        let mut intervals = self
            .intervals
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if intervals.len() < INTERVALS_MAX {
            intervals.push(interval);
        }
        drop(intervals);
        if self.held.swap(false, SeqCst) {
            return Ok(());
        }
        Err("another task of the process gave the lock back".into())
    }

    pub(crate) fn intervals(self) -> Vec<Interval> {
        self.intervals
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fails if two of `intervals` overlap: each lies within the time that its lock was granted for.
pub(crate) fn check(mut intervals: Vec<Interval>) -> Result<(), Failure> {
    intervals.sort_unstable();
    // If any two overlap, so do two neighbours: whoever begins next begins before the end as well.
    let overlap = intervals.windows(2).find(|pair| pair[1].0 < pair[0].1);
    overlap.map_or(Ok(()), |pair| {
        let both = pair[0].1.min(pair[1].1) - pair[1].0;
        Err(format!("two processes held the lock at once, for {both} ns").into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_in_the_process_is_found() {
        let exclusion = Exclusion::default();
        let granted = exclusion.enter().unwrap();
        assert!(exclusion.enter().is_err());
        exclusion.leave(granted).unwrap();
        assert!(exclusion.leave(granted).is_err());
        let granted = exclusion.enter().unwrap();
        exclusion.leave(granted).unwrap();
    }

    #[test]
    fn a_second_holder_in_another_process_is_found() {
        check(vec![(30, 40), (10, 20), (20, 30)]).unwrap();
        assert!(check(vec![(10, 20), (30, 40), (19, 25)]).is_err());
        assert!(check(vec![(10, 100), (20, 30), (101, 102)]).is_err());
    }
}
