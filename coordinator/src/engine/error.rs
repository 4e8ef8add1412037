//! What can go wrong, and what to do then.

use std::time::Duration;

use crate::{
    limits::{HELD_MAX, LEASE_MIN, REENTRY_MAX},
    name::{Label, NameError},
    shard::{Effect, ShardError},
};

/// Why a lock was not granted.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The key or the namespace is not one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The lease is longer than the topology allows.
    #[error("lease {lease:?} is too long: at most {max:?} (the topology's max_lease)")]
    LeaseTooLong {
        /// Asked for.
        lease: Duration,
        /// Allowed.
        max: Duration,
    },
    /// The lease is too short to be kept.
    #[error("lease {0:?} is too short: at least {LEASE_MIN:?}")]
    LeaseTooShort(Duration),
    /// The fixed hold is too short to be of use.
    #[error("hold of {0:?} is too short: at least {LEASE_MIN:?}")]
    HoldTooShort(Duration),
    /// Somebody else holds it.
    #[error("held by {holder} for at most {remaining:?} more")]
    Held {
        /// The holder's label.
        holder: Label,
        /// Unless renewed.
        remaining: Duration,
    },
    /// Its slot is on its way, and it is held, or waited for, where it comes from.
    #[error("held at shard {shard}, or waited for there, while its slot is on its way")]
    Moving {
        /// The shard that said so last.
        shard: String,
    },
    /// The shard came back, or is new, and waits for the holders of before.
    #[error("{}shard {shard}{}: new locks in {retry_after:?}", if *.new { "new server: " } else { "" }, if *.new { "" } else { " came back" })]
    Grace {
        /// The shard.
        shard: String,
        /// Whether it joined the topology and never restarted since: locks from before it joined may still
        /// be held.
        new: bool,
        /// When it grants again.
        retry_after: Duration,
    },
    /// The wait is over.
    #[error("not acquired within {waited:?}: {because}")]
    TimedOut {
        /// As asked.
        waited: Duration,
        /// What it was waiting for.
        because: Box<AcquireError>,
    },
    /// As many wait for this lock as may, in this process or at the shard.
    #[error("too many wait for this lock: come back in {retry_after:?}")]
    TooManyWaiters {
        /// When a place may be free.
        retry_after: Duration,
    },
    /// This engine holds as many locks as it may.
    #[error("{0} locks are held by this process: at most {HELD_MAX}")]
    TooManyHeld(usize),
    /// The owner holds this lock as often as it may.
    #[error("entered {0} times by this owner: at most {REENTRY_MAX}")]
    TooManyEntries(usize),
    /// The map of slots was out of date; it is being refreshed.
    #[error("the key's slot moved")]
    Moved,
    /// The shard has no memory for new locks.
    #[error("shard {0} is out of memory: raise its maxmemory, or add a shard")]
    OutOfMemory(String),
    /// The shard has used up its tokens and waits for a new epoch.
    #[error("shard {0} waits for a new token epoch")]
    NoTokens(String),
    /// Something that is not a lock lies under the key's name.
    #[error("shard {0} has something that is not a lock under this key: another prefix is needed")]
    Foreign(String),
    /// The grant came when its deadline had passed already. It is given back.
    #[error("granted too late to be used")]
    TooLate,
    /// The shard gave no answer. What it may have done is undone in the background.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The engine was closed.
    #[error("the client is closed")]
    Closed,
}

impl AcquireError {
    /// Whether the same call may succeed if made again.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Held { .. }
            | Self::Moving { .. }
            | Self::Grace { .. }
            | Self::TimedOut { .. }
            | Self::TooManyWaiters { .. }
            | Self::TooManyHeld(_)
            | Self::Moved
            | Self::OutOfMemory(_)
            | Self::NoTokens(_)
            | Self::TooLate => true,
            Self::Name(_)
            | Self::LeaseTooLong { .. }
            | Self::LeaseTooShort(_)
            | Self::HoldTooShort(_)
            | Self::TooManyEntries(_)
            | Self::Foreign(_)
            | Self::Closed => false,
            Self::Shard(error) => error.is_retryable(),
        }
    }

    /// Whether the shard may have granted the lock all the same. If so it is given back in the
    /// background, and ends with its lease at the latest.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Shard(error) => error.effect(),
            Self::TimedOut { because, .. } => because.effect(),
            Self::TooLate => Effect::Unknown,
            Self::Name(_)
            | Self::LeaseTooLong { .. }
            | Self::LeaseTooShort(_)
            | Self::HoldTooShort(_)
            | Self::Held { .. }
            | Self::Moving { .. }
            | Self::Grace { .. }
            | Self::TooManyWaiters { .. }
            | Self::TooManyHeld(_)
            | Self::TooManyEntries(_)
            | Self::Moved
            | Self::OutOfMemory(_)
            | Self::NoTokens(_)
            | Self::Foreign(_)
            | Self::Closed => Effect::None,
        }
    }

    /// When to ask again at the earliest, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Grace { retry_after, .. } | Self::TooManyWaiters { retry_after } => {
                Some(*retry_after)
            }
            Self::TimedOut { because, .. } => because.retry_after(),
            Self::Shard(error) => error.retry_after(),
            _ => None,
        }
    }
}

/// What a release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// The lock was held until now.
    Held,
    /// It was lost before.
    Lost,
    /// No answer came: it is given back in the background, or ends with its lease.
    Unknown,
}

/// Why a guard is in danger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// A renewal failed; it is tried again until the deadline.
    RenewalFailed,
    /// Less than a third of the lease is left.
    NearDeadline,
    /// The server's wall clock stepped since the last renewal: another process may be granted the lock before this guard's
    /// deadline. Only the fencing token protects until the next renewal.
    ClockStepped,
}

/// The lock is no longer held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock is no longer held")]
pub struct LockLost;
