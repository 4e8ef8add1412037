//! What the bench and its worker processes tell each other.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{contenders::Who, exclusion::Tenure, setup::Setup};

/// What a worker process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) who: Who,
    pub(crate) setup: Setup,
    pub(crate) url: String,
    pub(crate) key: String,
}

impl FromStr for Assignment {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

/// What the tasks of one process did.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Grants within the window, by task.
    pub(crate) grants: Vec<u64>,
    /// Waits in nanoseconds, and how many were as long.
    pub(crate) waits: Vec<(u64, u64)>,
    /// For how long the grants within the window were held, all together, in nanoseconds.
    pub(crate) held: u64,
    /// When the lock was held.
    pub(crate) tenures: Vec<Tenure>,
}
