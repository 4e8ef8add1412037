//! The reason why a request about a counter got no answer.

use std::sync::Arc;

use ringfence_ring::ShardId;
use ringfence_segment_lock::{Effect, ManifestError, StorageError};

use crate::{
    name::{NameError, Namespace},
    shard::{CounterReply, ShardError},
};

/// The reason why a request about a counter got no answer: the source of a
/// [`StorageError`](ringfence_segment_lock::StorageError).
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CounterFault {
    /// The account's name makes no valid key.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The ring has a shard that keeps none.
    #[error(
        "shard {shard}, {address}, keeps locks, and neither counters nor segmented locks: they need a topology with \
         shards on Redis alone"
    )]
    LocksOnly {
        /// The shard.
        shard: ShardId,
        /// Its address.
        address: String,
    },
    /// The namespace is for locks with replicas.
    #[error(
        "namespace {namespace} is for locks with replicas, and an account there would have one copy: use another namespace, \
         and durability replicas:N for copies of the account"
    )]
    Replicated {
        /// The namespace.
        namespace: Namespace,
    },
    /// The shard that has it gave no answer.
    #[error("shard {shard}: {error}")]
    Shard {
        /// The shard.
        shard: ShardId,
        /// The error of the last request.
        error: ShardError,
    },
    /// Its slot is migrating, or the picture of the ring is out of date.
    #[error("the account's slot is migrating from or to shard {shard}")]
    Moves {
        /// The last shard asked.
        shard: ShardId,
    },
    /// The account requires every change to be on the disk.
    #[error(
        "the account's durability is disk, and the server of shard {shard} does not sync every write, has not begun its \
         log, or does not say so (ACL: +config|get); run there: redis-cli CONFIG SET appendonly yes appendfsync always \
         no-appendfsync-on-rewrite no, then CONFIG REWRITE, so that a restart keeps this, and repeat when INFO persistence \
         has aof_rewrite_in_progress:0 and aof_rewrite_scheduled:0; a managed server has these settings in its parameter \
         group"
    )]
    NotOnDisk {
        /// The shard.
        shard: ShardId,
    },
    /// Too few replicas have acknowledged the change.
    #[error("{replicas} replicas of shard {shard} have the change, must be {required}")]
    TooFewReplicas {
        /// The shard.
        shard: ShardId,
        /// How many certainly have it.
        replicas: u64,
        /// How many are required.
        required: u64,
    },
    /// The shard has no memory for it.
    #[error("shard {shard} has no memory left for counters")]
    OutOfMemory {
        /// The shard.
        shard: ShardId,
    },
    /// The place is in use for something else.
    #[error("shard {shard} has a foreign value under the counter's name")]
    Foreign {
        /// The shard.
        shard: ShardId,
    },
    /// The account's manifest is invalid.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The client reaches no shard.
    #[error("a client of coordinators has no segmented locks: use one that reaches the shards")]
    NoShards,
    /// The engine was closed.
    #[error("the engine is closed")]
    Closed,
    /// The shard runs another release.
    #[error("unexpected answer to {request}: {reply}")]
    Unexpected {
        /// The request.
        request: &'static str,
        /// The shard's answer.
        reply: String,
    },
}

impl CounterFault {
    pub(super) fn unexpected(request: &'static str, reply: &CounterReply) -> Self {
        Self::Unexpected {
            request,
            reply: format!("{reply:?}"),
        }
    }

    /// Whether a repeat of the same request may be answered.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::Shard { error, .. } => error.is_retryable(),
            Self::Moves { .. } | Self::TooFewReplicas { .. } | Self::OutOfMemory { .. } => true,
            Self::Name(_)
            | Self::LocksOnly { .. }
            | Self::Replicated { .. }
            | Self::NotOnDisk { .. }
            | Self::Foreign { .. }
            | Self::Manifest(_)
            | Self::NoShards
            | Self::Closed
            | Self::Unexpected { .. } => false,
        }
    }

    /// Whether the request may have taken effect.
    pub(super) fn effect(&self) -> Effect {
        match self {
            Self::Shard { error, .. } => error.effect(),
            Self::TooFewReplicas { .. } | Self::Closed | Self::Unexpected { .. } => Effect::Unknown,
            Self::Name(_)
            | Self::LocksOnly { .. }
            | Self::Replicated { .. }
            | Self::Moves { .. }
            | Self::NotOnDisk { .. }
            | Self::OutOfMemory { .. }
            | Self::Foreign { .. }
            | Self::NoShards
            | Self::Manifest(_) => Effect::None,
        }
    }
}

impl From<CounterFault> for StorageError {
    fn from(fault: CounterFault) -> Self {
        Self {
            effect: fault.effect(),
            is_retryable: fault.is_retryable(),
            source: Arc::new(fault),
        }
    }
}
