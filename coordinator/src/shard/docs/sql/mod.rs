//! What the stores on SQL servers have in common.

mod shared;

use std::time::Duration;

pub(crate) use shared::{Connector, ListeningSession, SharedConnection, UNREAD_MAX};

use super::store::{Commit, Committed, Expected, Glance, Name, Write};
use crate::{
    clock::{BootClock, Clock as _, Instant},
    shard::{ShardError, rules::millis},
};

/// The version of the functions and procedures of both kinds of servers, which ends their names. Each release calls its own. Raise
/// it with each change of a schema.sql that is released.
pub(crate) const SCHEMA_VERSION: &str = "1";

/// New documents after which a connection looks for old ones to delete.
pub(crate) const SWEEP_AFTER: usize = 128;

/// How long commits are careful after one was refused.
const CAREFUL_FOR: Duration = Duration::from_secs(1);

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

/// When a commit of a connection was last refused. While others change the same documents, the server looks at all of them
/// before it writes any: a transaction that wrote something holds others up.
#[derive(Debug, Default)]
pub(crate) struct LastRefusal(Option<Instant>);

impl LastRefusal {
    pub(crate) fn see(&mut self, committed: &Committed) {
        if !committed.is_done() {
            self.0 = Some(BootClock.now());
        }
    }

    /// Whether it was lately.
    pub(crate) fn is_recent(&self) -> bool {
        let since = self.0.map(|refused| BootClock.now().since(refused));
        since.is_some_and(|since| since <= CAREFUL_FOR)
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
