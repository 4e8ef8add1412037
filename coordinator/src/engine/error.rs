//! Errors of locks, and whether a repeat may help.

use std::time::Duration;

use ringfence_ring::{Replicas, ShardId};
use ringfence_segment_lock::{impl_failure, invalid_input};

use super::remote::CoordinatorError;
use crate::{
    limits::{HELD_MAX, HOLD_MAX, LEASE_MIN, PERMITS_MAX, REENTRY_MAX},
    name::{Label, NameError, Namespace},
    shard::{Effect, LockKind, ShardError},
};

/// The reason why a lock was not granted.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The key or the namespace is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Locks of the namespace have several replicas, and the call is not for such locks.
    #[error("namespace {namespace} has {replicas} replicas: its locks are mutexes")]
    Replicated {
        /// The namespace.
        namespace: Namespace,
        /// Its replicas.
        replicas: Replicas,
    },
    /// The locks of the namespace are about to have several replicas. That takes some seconds.
    #[error("namespace {0} is being declared, and no lock in it is granted meanwhile")]
    Declaring(Namespace),
    /// The lease is longer than the topology allows.
    #[error("lease {lease:?} is too long: at most {max:?} (the topology's max_lease)")]
    LeaseTooLong {
        /// The requested lease.
        lease: Duration,
        /// The longest lease allowed.
        max: Duration,
    },
    /// The lease is too short to be kept.
    #[error("lease {0:?} is too short: at least {LEASE_MIN:?}")]
    LeaseTooShort(Duration),
    /// The fixed hold is too short to be of use.
    #[error("hold of {0:?} is too short: at least {LEASE_MIN:?}")]
    HoldTooShort(Duration),
    /// The fixed hold is longer than any: without one, the lock is held until its release.
    #[error("hold of {0:?} is too long: at most {HOLD_MAX:?}")]
    HoldTooLong(Duration),
    /// No semaphore has so many permits, or none are taken.
    #[error("{count} of {capacity} permits: take at least 1, of at most {PERMITS_MAX}")]
    Permits {
        /// How many to take.
        count: u32,
        /// How many there are.
        capacity: u32,
    },
    /// Another holder has it; or too few of its shares are free, or others wait for them.
    #[error("{}", held(holder, *.remaining))]
    Held {
        /// The holder's label. Of shares: empty.
        holder: Label,
        /// The rest of the lease, unless renewed. Of shares: about the time until the first of the leases ends.
        remaining: Duration,
        /// How many other requests are before this one in the queue, at most. None: it has no place there.
        ahead: Option<u32>,
    },
    /// The slot is migrating, and the key is held, or waited for, at the shard that the slot
    /// leaves.
    #[error("held at shard {shard}, or waited for there, while its slot is migrating")]
    Moving {
        /// The shard that said so last.
        shard: String,
    },
    /// The shard came back, or is new, and waits for previous holders to re-register.
    #[error("{}shard {shard}{}: new locks in {:?}", if *.new { "new server: " } else { "" }, if *.new { "" } else { " is recovering" }, rounded(*.retry_after))]
    Grace {
        /// The shard.
        shard: String,
        /// Whether it joined the topology and has not restarted since: locks from before it joined
        /// may still be held.
        new: bool,
        /// The time until it grants again.
        retry_after: Duration,
    },
    /// The wait is over.
    #[error("not acquired within {:?}: {because}", rounded(*.waited))]
    TimedOut {
        /// The requested length of the wait.
        waited: Duration,
        /// The reason for the wait.
        because: Box<AcquireError>,
    },
    /// Too few replicas of the lock can grant it: these shards cannot, or have not answered, and the others are no
    /// majority.
    #[error("no majority of its {replicas} replicas: {}", listed(.shards))]
    NoMajority {
        /// The replicas of the lock.
        replicas: Replicas,
        /// The shards that did not grant, each with the reason.
        shards: Vec<(ShardId, AcquireError)>,
    },
    /// The maximum number of waiters for this lock is reached, in this process or at the shard.
    #[error("too many waiters for this lock: retry in {:?}", rounded(*.retry_after))]
    TooManyWaiters {
        /// The time until a place may be free.
        retry_after: Duration,
    },
    /// This engine holds the maximum number of locks.
    #[error("{0} locks are held by this process: at most {HELD_MAX}")]
    TooManyHeld(usize),
    /// The owner holds this lock the maximum number of times.
    #[error("acquired {0} times by this owner: at most {REENTRY_MAX}")]
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
    /// The key's name is in use for something else than a lock.
    #[error("shard {0} has a foreign value under this key: use another prefix")]
    Foreign(String),
    /// The key is held as a lock of another kind.
    #[error("a {asked} was asked for, and the key is held as a {held}: use another key")]
    OtherKind {
        /// The kind of the request.
        asked: LockKind,
        /// The kind of the present holders.
        held: LockKind,
    },
    /// Its owner is a reader, and cannot become a writer: two readers that try would wait for each other.
    #[error(
        "a reader cannot become a writer: release the reader's side, then acquire the writer's"
    )]
    Upgrade,
    /// The grant came after its deadline. It is released.
    #[error("granted too late to be used")]
    TooLate,
    /// The shard gave no answer. Anything it may have done is undone in the background.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The coordinator refused the request, or none answered.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
    /// The engine was closed.
    #[error("the client is closed")]
    Closed,
}

impl AcquireError {
    /// Whether a repeat of the same call may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Held { .. }
            | Self::Moving { .. }
            | Self::Grace { .. }
            | Self::TimedOut { .. }
            | Self::NoMajority { .. }
            | Self::TooManyWaiters { .. }
            | Self::TooManyHeld(_)
            | Self::Moved
            | Self::Declaring(_)
            | Self::OutOfMemory(_)
            | Self::NoTokens(_)
            | Self::TooLate => true,
            Self::Name(_)
            | Self::Replicated { .. }
            | Self::LeaseTooLong { .. }
            | Self::LeaseTooShort(_)
            | Self::HoldTooShort(_)
            | Self::HoldTooLong(_)
            | Self::Permits { .. }
            | Self::TooManyEntries(_)
            | Self::Foreign(_)
            | Self::OtherKind { .. }
            | Self::Upgrade
            | Self::Closed => false,
            Self::Shard(error) => error.is_retryable(),
            Self::Coordinator(error) => error.is_retryable,
        }
    }

    /// Whether the shard may have granted the lock all the same. If so, the lock is released in the
    /// background, and ends with its lease at the latest.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Shard(error) => error.effect(),
            Self::Coordinator(error) => error.effect,
            Self::TimedOut { because, .. } => because.effect(),
            Self::NoMajority { shards, .. } => {
                let is_unknown = |(_, error): &(_, Self)| error.effect() == Effect::Unknown;
                match shards.iter().any(is_unknown) {
                    true => Effect::Unknown,
                    false => Effect::None,
                }
            }
            Self::TooLate => Effect::Unknown,
            Self::Name(_)
            | Self::Replicated { .. }
            | Self::Declaring(_)
            | Self::LeaseTooLong { .. }
            | Self::LeaseTooShort(_)
            | Self::HoldTooShort(_)
            | Self::HoldTooLong(_)
            | Self::Permits { .. }
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
            | Self::OtherKind { .. }
            | Self::Upgrade
            | Self::Closed => Effect::None,
        }
    }

    /// The earliest time to ask again, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Grace { retry_after, .. } | Self::TooManyWaiters { retry_after } => {
                Some(*retry_after)
            }
            Self::TimedOut { because, .. } => because.retry_after(),
            Self::Shard(error) => error.retry_after(),
            Self::Coordinator(error) => error.retry_after,
            _ => None,
        }
    }
}

/// The state of the lock when it was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// The lock was held until now.
    Held,
    /// It was lost before.
    Lost,
    /// No answer came: the lock is released in the background, or ends with its lease.
    Unknown,
}

/// The reason why a guard is in danger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// A renewal failed; it is repeated until the deadline.
    RenewalFailed,
    /// Less than a third of the lease is left.
    NearDeadline,
    /// No more than a bare majority of the lock's replicas has it, for a sixth of the lease or longer: the lock is lost
    /// if one more of their shards fails.
    Thin,
    /// The server's wall clock stepped since the last renewal: another process may be granted the lock before this guard's
    /// deadline. Only the fencing token protects until the next renewal.
    ClockStepped,
}

/// The lock is no longer held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock is no longer held")]
pub struct LockLost;

impl LockLost {
    /// Always true: acquire the lock again.
    pub fn is_retryable(&self) -> bool {
        true
    }

    /// Always unknown: the work was interrupted, and may be done in part.
    pub fn effect(&self) -> Effect {
        Effect::Unknown
    }

    /// Always none.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

invalid_input!(NameError);
impl_failure!(AcquireError, LockLost);

/// The errors of shards, in one line.
fn listed(shards: &[(ShardId, AcquireError)]) -> String {
    let of_shard = |(id, error): &(ShardId, AcquireError)| match error {
        AcquireError::Shard(error) => format!("shard {id}: {error}"),
        // It names its shard.
        other => other.to_string(),
    };
    let errors: Vec<String> = shards.iter().map(of_shard).collect();
    errors.join("; ")
}

/// Who has the lock, and for how long.
fn held(holder: &Label, remaining: Duration) -> String {
    let remaining = rounded(remaining);
    match holder.as_str() {
        "" => format!(
            "held or waited for by others; the first lease ends in {remaining:?} unless renewed"
        ),
        holder => format!("held by {holder} for at most {remaining:?} more"),
    }
}

/// `duration`, rounded for a message: seconds from ten seconds on, otherwise milliseconds.
fn rounded(duration: Duration) -> Duration {
    let step_ms = match duration {
        long if long >= Duration::from_secs(10) => 1000,
        _ => 1,
    };
    let ms = u64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
    Duration::from_millis(ms.div_ceil(step_ms).saturating_mul(step_ms))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::rounded;

    #[test]
    fn durations_of_messages_are_short() {
        let shown = |us| format!("{:?}", rounded(Duration::from_micros(us)));
        assert_eq!(shown(0), "0ns");
        assert_eq!(shown(1), "1ms");
        assert_eq!(shown(1_999_873), "2s");
        assert_eq!(shown(1_234_567), "1.235s");
        assert_eq!(shown(29_400_001), "30s");
    }
}
