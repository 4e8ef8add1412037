//! What the stores on SQL servers have in common.

use std::time::Duration;

use super::store::{Commit, Committed, Expected, Glance, Name, Write};
use crate::{
    clock::{BootClock, Clock as _, Instant},
    shard::{ShardError, rules::millis},
};

/// New documents after which a connection looks for old ones to delete.
pub(crate) const SWEEP_AFTER: usize = 128;

/// What a connection saw of the clock longer ago says too little: ends would count from much too late a time.
const SEEN_FOR: Duration = Duration::from_millis(250);

/// The version that a document must have; `None` if there must be none. Only of expectations that are not any.
pub(crate) fn version(expected: Expected) -> Option<i64> {
    match expected {
        Expected::Version(version) => Some(version as i64),
        Expected::Any | Expected::Absent => None,
    }
}

/// What `commit` writes, in the order of names: commits that lock documents in one order do not wait for each other.
pub(crate) fn in_order(commit: &Commit) -> Vec<&Write> {
    let mut writes: Vec<_> = commit.writes.iter().collect();
    writes.sort_by_cached_key(|write| write.name.to_bytes());
    writes
}

/// The meaning of the outcome of `commit`: 0 done at `at_ms`, 1 refused, 2 another life, 3 the connection was ended.
pub(crate) fn committed(
    outcome: i32,
    at_ms: Option<u64>,
    commit: &Commit,
    is_stale: impl Fn(&Name) -> bool,
) -> Result<Committed, ShardError> {
    match outcome {
        0 => Ok(Committed::Done { at_ms }),
        1 => {
            let all = commit.expectations().map(|(name, _)| name);
            let stale = all.filter(|name| is_stale(name)).cloned().collect();
            Ok(Committed::Refused { stale })
        }
        2 => Err(ShardError::Unarmed),
        _ => Err(ShardError::NoReply {
            reason: "another connection or a crash of the server has ended this one".into(),
        }),
    }
}

/// How many documents `commit` made.
pub(crate) fn made(committed: &Committed, commit: &Commit) -> usize {
    match committed {
        Committed::Done { .. } => commit.makes(),
        Committed::Refused { .. } => 0,
    }
}

/// The server's clock, as a connection last saw it.
#[derive(Debug, Default)]
pub(crate) struct SeenClock(Option<(Instant, u64)>);

impl SeenClock {
    /// The time to keep for [`see`](Self::see), before a request is sent.
    pub(crate) fn sent() -> Instant {
        BootClock.now()
    }

    /// The answer to a request sent at `sent` showed this.
    pub(crate) fn see(&mut self, sent: Instant, ms: u64) {
        self.0 = Some((sent, ms));
    }

    /// The same, of a commit.
    pub(crate) fn see_commit(&mut self, sent: Instant, committed: &Committed) {
        if let Committed::Done { at_ms: Some(ms) } = committed {
            self.see(sent, *ms);
        }
    }

    /// As [`Session::glance`](super::Session::glance): all the time since the sending may have passed after it was shown.
    pub(crate) fn glance(&self) -> Option<Glance> {
        let (sent, now_ms) = self.0?;
        let since = BootClock.now().since(sent);
        (since <= SEEN_FOR).then(|| Glance {
            now_ms,
            // Both are whole milliseconds.
            slack_ms: millis(since) + 2,
            // A clock that has jumped ahead shows more, mostly.
            until_ms: now_ms + millis(2 * SEEN_FOR),
        })
    }
}
