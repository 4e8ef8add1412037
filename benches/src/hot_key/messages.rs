//! What the bench and its worker processes tell each other: its assignment on the command line, all
//! else as JSON lines.

use std::{str::FromStr, time::Duration};

use nix::time::ClockId;
use serde::{Deserialize, Serialize};

use super::{contenders::Who, exclusion::Tenure, setup::Setup};
use crate::{Failure, Timing};

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

/// The measured window, in nanoseconds of CLOCK_MONOTONIC: the same for every process. Said to a worker
/// when all are ready.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Window {
    /// Until then, half-way through the warm-up, a hold is long enough for a second holder to show.
    pub(crate) checked: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Window {
    /// Begins after the warm-up, which begins now.
    pub(crate) fn of(timing: Timing) -> Result<Self, Failure> {
        let (begin, warm_up) = (monotonic()?, timing.warm_up.as_nanos() as u64);
        let from = begin + warm_up;
        Ok(Self {
            checked: begin + warm_up / 2,
            from,
            to: from + timing.length.as_nanos() as u64,
        })
    }

    pub(crate) fn has(&self, time: u64) -> bool {
        (self.from..self.to).contains(&time)
    }

    pub(crate) fn seconds(&self) -> f64 {
        (self.to - self.from) as f64 / 1e9
    }
}

/// Nanoseconds of a clock that all processes of a machine share.
pub(crate) fn monotonic() -> Result<u64, Failure> {
    Ok(Duration::from(ClockId::CLOCK_MONOTONIC.now()?).as_nanos() as u64)
}

/// What a worker process says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
    /// It is connected.
    Ready,
    Done(Outcome),
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
