//! What the stores on SQL servers have in common.

use super::store::{Commit, Committed, Expected, Name};
use crate::shard::ShardError;

/// New documents after which a connection looks for old ones to delete.
pub(crate) const SWEEP_AFTER: usize = 128;

/// The version that a document must have; `None` if there must be none. Only of expectations that are not any.
pub(crate) fn version(expected: Expected) -> Option<i64> {
    match expected {
        Expected::Version(version) => Some(version as i64),
        Expected::Any | Expected::Absent => None,
    }
}

/// The meaning of the outcome of `commit`: 0 done, 1 refused, 2 another life, 3 the connection was ended.
pub(crate) fn committed(
    outcome: i32,
    commit: &Commit,
    is_stale: impl Fn(&Name) -> bool,
) -> Result<Committed, ShardError> {
    match outcome {
        0 => Ok(Committed::Done),
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
        Committed::Done => commit.makes(),
        Committed::Refused { .. } => 0,
    }
}
