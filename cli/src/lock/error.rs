//! What can go wrong, and its exit code.

use std::{
    ffi::{OsStr, OsString},
    io,
    time::Duration,
};

use humantime::format_duration;
use nix::sys::signal::Signal;
use ringfence_client::{AcquireError, BuildError, TopologyError, limits::LEASE_MIN};

use super::Args;
use crate::{UNAVAILABLE, USAGE, seeds::SeedsError};

/// `EX_TEMPFAIL` of `sysexits.h`, which `flock` exits with too.
pub(super) const NOT_ACQUIRED: u8 = 75;
/// `EX_OSERR` of `sysexits.h`.
const SYSTEM: u8 = 71;
const LOST: u8 = 80;
/// As shells have them.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
const SIGNALLED: u8 = 128;

/// Why the command did not run to its own end. Its source says more, where there is one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    #[error("{0}")]
    Usage(String),
    #[error("{0}: embedded shards exclude no other process")]
    NoServer(SeedsError),
    #[error("--ttl {} is too long: at most {} (the topology's max_lease)", format_duration(*.ttl), format_duration(*.max))]
    TtlTooLong { ttl: Duration, max: Duration },
    #[error("--ttl {} is too short: at least {}", format_duration(*.0), format_duration(LEASE_MIN))]
    TtlTooShort(Duration),
    #[error("not acquired within {}: {key}{because}{}", format_duration(*.wait), new_server(.because))]
    NotAcquired {
        /// With a colon, if there is more than one.
        key: String,
        wait: Duration,
        because: AcquireError,
    },
    #[error("servers misconfigured: {0}")]
    Unusable(AcquireError),
    #[error("servers unreachable or misconfigured: {shown}")]
    NoTopology { shown: String, error: BuildError },
    /// The command founds one.
    #[error(
        "these servers have no topology: they are new, or were emptied; to found one, once: {0} (or give --found)"
    )]
    NoTopologyYet(String),
    #[error("interrupted by {0} while waiting for the lock")]
    Interrupted(Signal),
    #[error("the lock was lost: its lease was not renewed in time, or it was taken away")]
    Lost,
    #[error("the command was killed by {0}")]
    Killed(Signal),
    #[error("{} is not found{}", .0.display(), in_a_shell(.0))]
    NotFound(OsString),
    #[error("{} cannot be executed", .program.display())]
    NotExecutable {
        program: OsString,
        source: io::Error,
    },
    #[error("operating system error: {0}")]
    System(#[from] io::Error),
}

/// What to know of a server that never held a lock.
pub(super) const NEW_SERVER: &str =
    " (none, if it never held a lock and --servers-are-new says so at the founding)";

/// Advice where a program's name reads like a command of a shell.
fn in_a_shell(program: &OsStr) -> String {
    match program.to_str() {
        Some(text) if text.contains([' ', '&', '|', ';', '$', '>']) => {
            format!("; CMD is not run by a shell: for one, name it: -- sh -c '{text}'")
        }
        _ => String::new(),
    }
}

fn new_server(because: &AcquireError) -> &'static str {
    match because {
        AcquireError::Grace { new: true, .. } => NEW_SERVER,
        _ => "",
    }
}

impl LockError {
    /// Whether another process held the lock until the wait was over.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(
            self,
            Self::NotAcquired {
                because: AcquireError::Held { .. },
                ..
            }
        )
    }

    /// What to exit with.
    pub(crate) fn code(&self, args: &Args) -> u8 {
        match self {
            Self::Usage(_) | Self::NoServer(_) | Self::TtlTooLong { .. } | Self::TtlTooShort(_) => {
                USAGE
            }
            Self::NotAcquired { .. } if self.is_conflict() => args.conflict_exit_code,
            Self::NotAcquired { .. } => NOT_ACQUIRED,
            Self::Unusable(_) | Self::NoTopology { .. } | Self::NoTopologyYet(_) => UNAVAILABLE,
            Self::Interrupted(signal) | Self::Killed(signal) => SIGNALLED + *signal as u8,
            Self::Lost => LOST,
            Self::NotFound(_) => NOT_FOUND,
            Self::NotExecutable { .. } => NOT_EXECUTABLE,
            Self::System(_) => SYSTEM,
        }
    }

    /// The meaning of `error` for a caller that waited for `wait`. The exit codes differ by whether
    /// a server answered for the lock, so that a later attempt is worthwhile.
    pub(super) fn refused(error: AcquireError, wait: Duration, key: String) -> Self {
        let because = match error {
            AcquireError::TimedOut { because, .. } => *because,
            other => other,
        };
        match because {
            AcquireError::NoMajority { ref shards, .. }
                if shards.iter().any(|(_, error)| has_answered(error)) =>
            {
                Self::NotAcquired { key, wait, because }
            }
            AcquireError::Held { .. }
            | AcquireError::Grace { .. }
            | AcquireError::Moving { .. }
            | AcquireError::Moved
            | AcquireError::Declaring(_)
            | AcquireError::OtherKind { .. }
            | AcquireError::TooManyWaiters { .. }
            | AcquireError::TooLate => Self::NotAcquired { key, wait, because },
            AcquireError::Coordinator(ref error) if error.is_answer => {
                Self::NotAcquired { key, wait, because }
            }
            _ => Self::Unusable(because),
        }
    }

    /// Whether the command did not start.
    pub(super) fn is_before_start(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::NotExecutable { .. })
    }

    /// What the failure to start `program` is.
    pub(super) fn not_started(program: &OsStr, source: io::Error) -> Self {
        let program = program.to_owned();
        if source.kind() == io::ErrorKind::NotFound {
            Self::NotFound(program)
        } else {
            Self::NotExecutable { program, source }
        }
    }
}

impl From<SeedsError> for LockError {
    fn from(error: SeedsError) -> Self {
        match error {
            SeedsError::None => Self::NoServer(error),
            other => Self::Usage(crate::chain(&other)),
        }
    }
}

/// Whether servers that met `error` may yet do better.
pub(super) fn may_pass(error: &BuildError) -> bool {
    use TopologyError::{RecoverNeeded, Unreachable};
    match error {
        BuildError::Topology(Unreachable { .. } | RecoverNeeded { .. }) => true,
        BuildError::Coordinators(error) => error.is_retryable,
        _ => false,
    }
}

/// Whether `error` is an answer about the lock, and not trouble on the way to it.
pub(super) fn has_answered(error: &AcquireError) -> bool {
    match error {
        AcquireError::Shard(_) => false,
        AcquireError::Coordinator(error) => error.is_answer,
        _ => true,
    }
}
