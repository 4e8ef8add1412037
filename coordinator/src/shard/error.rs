//! Why a shard gave no answers.

use std::time::Duration;

use ringfence_segment_lock::{Effect, impl_failure};

/// Why a shard gave no answers. Cheap to clone: one error answers a whole batch.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// There is no connection, or the server takes no requests now. Nothing was applied.
    #[error("shard unavailable: {reason}")]
    Unreachable {
        /// What the last attempt to connect met, or the server's words.
        reason: String,
    },
    /// Too much is waiting for the shard already. Nothing was sent.
    #[error("{waiting} requests wait for the shard: at most {max}")]
    Overloaded {
        /// How many wait.
        waiting: usize,
        /// How many may.
        max: usize,
    },
    /// The request was sent and no answer came.
    #[error("no answer from the shard: {reason}")]
    NoReply {
        /// What came instead.
        reason: String,
    },
    /// This life of the shard has no state, or the connection outlived its life. Nothing was
    /// written. Shake hands, have it armed, try again.
    #[error("the shard restarted and is not active yet")]
    Unarmed,
    /// The sender's topology record is older than the shard's fence. Nothing was written.
    #[error("the shard has seen a newer topology (fence {fence})")]
    Stale {
        /// The fence.
        fence: String,
    },
    /// The shard cannot be used as it is set up. The message says what mends it.
    #[error("{reason}")]
    Unusable {
        /// The problem, and the command that solves it.
        reason: String,
    },
    /// The shard answered what nobody asked: a defect here or there.
    #[error("the shard refused {what}: {reason}")]
    Refused {
        /// The operation.
        what: &'static str,
        /// The shard's words.
        reason: String,
    },
}

impl ShardError {
    /// Whether the request may have taken effect.
    pub fn effect(&self) -> Effect {
        match self {
            Self::NoReply { .. } | Self::Refused { .. } => Effect::Unknown,
            Self::Unreachable { .. }
            | Self::Overloaded { .. }
            | Self::Unarmed
            | Self::Stale { .. }
            | Self::Unusable { .. } => Effect::None,
        }
    }

    /// Whether the same request may succeed if made again.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Overloaded { .. }
            | Self::NoReply { .. }
            | Self::Unarmed
            | Self::Stale { .. } => true,
            Self::Unusable { .. } | Self::Refused { .. } => false,
        }
    }

    /// Whether a link that met it is dead; otherwise the server said no, and the link goes on.
    pub fn ends_link(&self) -> bool {
        match self {
            Self::NoReply { .. } | Self::Unarmed | Self::Refused { .. } => true,
            Self::Unreachable { .. }
            | Self::Overloaded { .. }
            | Self::Stale { .. }
            | Self::Unusable { .. } => false,
        }
    }

    /// When trying again makes sense at the earliest, where the shard can tell.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Overloaded { .. } => Some(Duration::from_millis(10)),
            _ => None,
        }
    }
}

impl_failure!(ShardError);
