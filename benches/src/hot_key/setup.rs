//! How many want the key, where they are, and for how long each holds it.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) processes: usize,
    /// In each process.
    pub(crate) tasks: usize,
    pub(crate) hold_ms: u64,
}

impl Setup {
    pub(crate) const fn new(processes: usize, tasks: usize, hold_ms: u64) -> Self {
        Self {
            processes,
            tasks,
            hold_ms,
        }
    }

    /// `tasks` shared out among `processes`.
    pub(crate) fn share(tasks: usize, processes: usize, hold_ms: u64) -> Result<Self, Failure> {
        if tasks.is_multiple_of(processes) {
            return Ok(Self::new(processes, tasks / processes, hold_ms));
        }
        Err(format!("{tasks} tasks cannot be shared out among {processes} processes").into())
    }

    pub(crate) fn hold(self) -> Duration {
        Duration::from_millis(self.hold_ms)
    }

    pub(crate) fn all_tasks(self) -> usize {
        self.processes * self.tasks
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            processes,
            tasks,
            hold_ms,
        } = self;
        write!(formatter, "{processes} x {tasks}, {hold_ms} ms")
    }
}
