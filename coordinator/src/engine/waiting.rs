//! Why somebody waits, for whoever wants to know meanwhile.

use std::{fmt, sync::Arc, time::Duration};

use ringfence_ring::ShardId;

use super::AcquireError;
use crate::name::Label;

/// Why a lock is not granted yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Waiting {
    /// Somebody else holds it.
    Held {
        /// The holder's label.
        holder: Label,
        /// What is left of the holder's lease, unless it is renewed.
        remaining: Duration,
    },
    /// Its shard came back, or is new: the holders of before have their time to put their locks
    /// back.
    Grace {
        /// The shard.
        shard: ShardId,
        /// Whether it joined the topology and never restarted since.
        new: bool,
        /// How long ago it was armed.
        since: Duration,
        /// New locks are granted after this.
        left: Duration,
    },
    /// Its shard cannot answer, or cannot grant. That may pass.
    Trouble {
        /// The shard.
        shard: ShardId,
        /// What the last request met.
        error: AcquireError,
    },
}

impl Waiting {
    /// The reason that `refusal` by `shard` is, where a grace lasts `grace`.
    pub(super) fn new(refusal: &AcquireError, shard: &ShardId, grace: Duration) -> Self {
        match refusal {
            AcquireError::Held { holder, remaining } => Self::Held {
                holder: holder.clone(),
                remaining: *remaining,
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

    /// Whether `other` is the same reason, however much time has passed.
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
            Self::Held { holder, remaining } => {
                let left = remaining.as_secs_f64().ceil();
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

/// Is told why a lock is not granted yet: after every refusal that is waited out, about once a
/// second. It runs in one of the engine's tasks, and must neither block nor panic.
#[derive(Clone)]
pub struct WaitObserver(Arc<dyn Fn(Waiting) + Send + Sync>);

impl WaitObserver {
    /// Calls `observe` with every reason.
    pub fn new(observe: impl Fn(Waiting) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    pub(super) fn tell(&self, waiting: Waiting) {
        (self.0)(waiting);
    }
}

impl fmt::Debug for WaitObserver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WaitObserver")
    }
}
