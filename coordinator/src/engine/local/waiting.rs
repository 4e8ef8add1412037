//! The reason why an acquisition waits, for an observer.

use std::{fmt, sync::Arc, time::Duration};

use ringfence_ring::ShardId;

use super::AcquireError;
use crate::name::Label;

/// The reason why a lock is not granted yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Waiting {
    /// Another holder has it.
    Held {
        /// The holder's label.
        holder: Label,
        /// The rest of the holder's lease, unless it is renewed.
        remaining: Duration,
        /// How many other requests come first, at most. None: not known yet.
        ahead: Option<u32>,
    },
    /// Its shard came back, or is new: previous holders have time to re-register their locks.
    Grace {
        /// The shard.
        shard: ShardId,
        /// Whether it joined the topology and has not restarted since.
        new: bool,
        /// How long ago it was armed.
        since: Duration,
        /// New locks are granted after this.
        left: Duration,
    },
    /// Its shard cannot answer, or cannot grant. This may pass.
    Trouble {
        /// The shard.
        shard: ShardId,
        /// The error of the last request.
        error: AcquireError,
    },
}

impl Waiting {
    /// The reason that corresponds to `refusal` by `shard`, with a recovery period of length
    /// `grace`.
    pub(crate) fn new(refusal: &AcquireError, shard: &ShardId, grace: Duration) -> Self {
        match refusal {
            AcquireError::Held {
                holder,
                remaining,
                ahead,
            } => Self::Held {
                holder: holder.clone(),
                remaining: *remaining,
                ahead: *ahead,
            },
            AcquireError::Grace {
                new, retry_after, ..
            } => Self::Grace {
                shard: shard.clone(),
                new: *new,
                since: grace.saturating_sub(*retry_after),
                left: *retry_after,
            },
            other => Self::Trouble {
                shard: shard.clone(),
                error: other.clone(),
            },
        }
    }

    /// The same for a waiter that has `more` others before it, in this process.
    pub(crate) fn behind(mut self, more: usize) -> Self {
        if let Self::Held {
            ahead: Some(ahead), ..
        } = &mut self
        {
            *ahead = ahead.saturating_add(more as u32);
        }
        self
    }

    /// Whether `other` is the same reason, regardless of the time passed, and of the others that come first.
    pub fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Held { holder, .. }, Self::Held { holder: other, .. }) => holder == other,
            (Self::Grace { shard, .. }, Self::Grace { shard: other, .. }) => shard == other,
            (
                Self::Trouble { shard, error },
                Self::Trouble {
                    shard: other_shard,
                    error: other,
                },
            ) => shard == other_shard && error.to_string() == other.to_string(),
            _ => false,
        }
    }
}

impl fmt::Display for Waiting {
    /// For people: `held by host/1234 (5 s left)`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held {
                holder, remaining, ..
            } => {
                let left = remaining.as_secs_f64().ceil();
                let holder = match holder.as_str() {
                    "" => "a holder without a label",
                    label => label,
                };
                write!(formatter, "held by {holder} ({left} s left)")
            }
            Self::Grace {
                shard,
                new,
                since,
                left,
            } => {
                let (since, left) = (since.as_secs(), left.as_secs_f64().ceil());
                match new {
                    true => write!(
                        formatter,
                        "new server: shard {shard}: first locks in {left} s"
                    ),
                    false => write!(
                        formatter,
                        "shard {shard} came back {since} s ago: new locks in {left} s"
                    ),
                }
            }
            Self::Trouble {
                shard,
                error: AcquireError::Shard(error),
            } => write!(formatter, "shard {shard}: {error}"),
            Self::Trouble { error, .. } => write!(formatter, "{error}"),
        }
    }
}

/// Receives the reason why a lock is not granted yet: after every refusal that is waited out, about
/// once per second. It runs in one of the engine's tasks, and must neither block nor panic.
#[derive(Clone)]
pub struct WaitObserver(Arc<dyn Fn(Waiting) + Send + Sync>);

impl WaitObserver {
    /// Calls `observe` with every reason.
    pub fn new(observe: impl Fn(Waiting) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    pub(crate) fn tell(&self, waiting: Waiting) {
        (self.0)(waiting);
    }
}

impl fmt::Debug for WaitObserver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WaitObserver")
    }
}
