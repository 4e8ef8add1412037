//! Whether a contender excludes, checked on every grant at next to no cost: within a process by a
//! flag, between processes by comparing afterwards when each of them held the lock. Fencing tokens,
//! where a contender has any, rise from grant to grant, in the process and between them.
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

use serde::{Deserialize, Serialize};

use crate::{Failure, workers::monotonic};

/// Long enough for a second holder to show.
pub(crate) const HOLD_MIN: Duration = Duration::from_millis(1);

/// As many tenures of a process are compared, from the first on: some ten times what a lock reaches
/// that asks the server for each.
const TENURES_MAX: usize = 50_000;

/// A time during which a process held the lock, on the clock that processes share: one hold, or
/// several with consecutive tokens, because then no other process can have held it in between.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tenure {
    from: u64,
    to: u64,
    /// The first fencing token and the last.
    tokens: Option<(u64, u64)>,
}

impl Tenure {
    /// Takes in `next`, which came after it in this process, if nobody was in between; says so.
    fn takes_in(&mut self, next: &Self) -> Result<bool, Failure> {
        let (Some((_, last)), Some((first, token))) = (&mut self.tokens, next.tokens) else {
            return Ok(false);
        };
        if first <= *last {
            return Err(format!("token {first} was granted after {last}").into());
        }
        let follows = first == *last + 1;
        if follows {
            *last = token;
            self.to = next.to;
        }
        Ok(follows)
    }
}

/// The holders of the lock in this process: at most one.
#[derive(Debug, Default)]
pub(crate) struct Exclusion {
    held: AtomicBool,
    tenures: Mutex<Vec<Tenure>>,
}

impl Exclusion {
    /// To be called once granted. Answers when.
    pub(crate) fn enter(&self) -> Result<u64, Failure> {
        if self.held.swap(true, SeqCst) {
            return Err("two tasks of one process hold the lock".into());
        }
        monotonic()
    }

    /// To be called before giving back what was granted at `granted`, with `token`. Answers when.
    pub(crate) fn leave(&self, granted: u64, token: Option<u64>) -> Result<u64, Failure> {
        let now = monotonic()?;
        self.note(Tenure {
            from: granted,
            to: now,
            tokens: token.map(|token| (token, token)),
        })?;
        if self.held.swap(false, SeqCst) {
            return Ok(now);
        }
        Err("another task of the process gave the lock back".into())
    }

    fn note(&self, hold: Tenure) -> Result<(), Failure> {
        let mut tenures = self.tenures.lock().unwrap_or_else(PoisonError::into_inner);
        let taken_in = match tenures.last_mut() {
            Some(tenure) => tenure.takes_in(&hold)?,
            None => false,
        };
        if !taken_in && tenures.len() < TENURES_MAX {
            tenures.push(hold);
        }
        Ok(())
    }

    pub(crate) fn tenures(self) -> Vec<Tenure> {
        self.tenures
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fails if two of `tenures` overlap: each lies within the time that its lock was granted for. Fails
/// too if a later one has a smaller token.
pub(crate) fn check(mut tenures: Vec<Tenure>) -> Result<(), Failure> {
    tenures.sort_unstable_by_key(|tenure| (tenure.from, tenure.to));
    // If any two overlap, so do two neighbours: the next one begins before the end as well.
    for pair in tenures.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        if next.from < one.to {
            let both = one.to.min(next.to) - next.from;
            return Err(format!("two processes held the lock at once, for {both} ns").into());
        }
        if let (Some((_, last)), Some((first, _))) = (one.tokens, next.tokens)
            && first <= last
        {
            return Err(format!("a process was granted token {first} after {last}").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(from: u64, to: u64) -> Tenure {
        Tenure {
            from,
            to,
            tokens: None,
        }
    }

    fn with(tokens: (u64, u64), from: u64, to: u64) -> Tenure {
        Tenure {
            tokens: Some(tokens),
            ..held(from, to)
        }
    }

    #[test]
    fn a_second_holder_in_the_process_is_found() {
        let exclusion = Exclusion::default();
        let granted = exclusion.enter().unwrap();
        assert!(exclusion.enter().is_err());
        exclusion.leave(granted, None).unwrap();
        assert!(exclusion.leave(granted, None).is_err());
        let granted = exclusion.enter().unwrap();
        exclusion.leave(granted, None).unwrap();
    }

    #[test]
    fn a_second_holder_in_another_process_is_found() {
        check(vec![held(30, 40), held(10, 20), held(20, 30)]).unwrap();
        assert!(check(vec![held(10, 20), held(30, 40), held(19, 25)]).is_err());
        assert!(check(vec![held(10, 100), held(20, 30), held(101, 102)]).is_err());
    }

    #[test]
    fn a_token_that_does_not_rise_is_found() {
        check(vec![with((3, 3), 30, 40), with((1, 2), 10, 20)]).unwrap();
        assert!(check(vec![with((1, 2), 30, 40), with((3, 3), 10, 20)]).is_err());
        assert!(check(vec![with((1, 2), 10, 20), with((2, 3), 30, 40)]).is_err());
        let exclusion = Exclusion::default();
        exclusion.note(with((7, 7), 10, 20)).unwrap();
        assert!(exclusion.note(with((7, 7), 30, 40)).is_err());
    }

    #[test]
    fn holds_are_one_tenure_while_their_tokens_follow_one_another() {
        let exclusion = Exclusion::default();
        for (token, from) in [(1, 10), (2, 20), (4, 30), (5, 40)] {
            let hold = with((token, token), from, from + 5);
            exclusion.note(hold).unwrap();
        }
        let tenures = exclusion.tenures();
        assert_eq!(tenures, [with((1, 2), 10, 25), with((4, 5), 30, 45)]);
    }
}
