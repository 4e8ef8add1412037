use std::fmt;

use clap::ValueEnum;
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};
use serde::Serialize;

use crate::Failure;

/// The server's processor, where it is told one.
const SERVERS: usize = 0;

/// Which processors the server and the clients may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    /// Any: the scheduler moves them as it likes.
    Free,
    /// The server on the first, the clients on all others.
    Apart,
    /// Both on the first.
    Together,
}

impl Place {
    /// Places the calling thread, and all it will start.
    ///
    /// # Errors
    ///
    /// There are not as many processors, or the system refuses.
    pub(crate) fn client(self, cores: usize) -> Result<(), Failure> {
        match self {
            Self::Free => Ok(()),
            Self::Apart if cores < 2 => Err("--place apart needs two processors".into()),
            Self::Apart => pin(Pid::from_raw(0), SERVERS + 1..cores),
            Self::Together => pin(Pid::from_raw(0), SERVERS..SERVERS + 1),
        }
    }

    /// Places the server, once it runs.
    ///
    /// # Errors
    ///
    /// The server is gone, or the system refuses.
    pub(crate) fn server(self, server: u32) -> Result<(), Failure> {
        match self {
            Self::Free => Ok(()),
            Self::Apart | Self::Together => pin(Pid::from_raw(server as i32), SERVERS..SERVERS + 1),
        }
    }
}

fn pin(thread: Pid, processors: std::ops::Range<usize>) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    for processor in processors {
        set.set(processor)?;
    }
    Ok(sched_setaffinity(thread, &set)?)
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Free => "server and clients on any processor",
            Self::Apart => "server on one processor, clients on the others",
            Self::Together => "server and clients on one processor",
        })
    }
}
