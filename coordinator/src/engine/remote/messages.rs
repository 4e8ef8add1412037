//! What a process and a coordinator tell each other, as values.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use ringfence_segment_lock::impl_failure;
use tokio::sync::mpsc;

use super::super::{AcquireError, Locks, ReleaseAnswer};
use crate::{
    ids::{Nonce, Token},
    name::{Label, LockKey, Namespace},
    shard::{Effect, Holder, Inspection, LockMode},
};

/// Reaches the coordinators of a service.
///
/// # Contract
///
/// Every method may be dropped at any await. A stream that ends, for whatever reason, is not used again. A session
/// renews its locks as the Session call of the service does.
#[async_trait]
pub trait Coordinators: fmt::Debug + Send + Sync + 'static {
    /// Opens a session at the first of them that answers, beginning with another one than last time. Its locks have
    /// this lease and label.
    async fn open(&self, lease: Duration, label: &Label) -> Result<Connection, CoordinatorError>;

    /// Whether there are more than one.
    fn has_others(&self) -> bool;

    /// The same, with connections of their own on the runtime that calls it: the former one may be gone. They begin with
    /// the coordinator of the latest session.
    ///
    /// # Errors
    ///
    /// Certificates cannot be read any more.
    fn afresh(&self) -> Result<Arc<dyn Coordinators>, CoordinatorError>;

    /// The holders of a lock, and its waiters. Their nonces mean nothing.
    async fn inspect(&self, key: &LockKey) -> Result<Inspection, AcquireError>;

    /// Takes a lock from its holders, and returns them by their tokens.
    async fn force_release(&self, key: &LockKey, reason: &str)
    -> Result<Vec<Holder>, AcquireError>;

    /// The held locks.
    fn locks(&self, namespace: Option<Namespace>) -> Locks;
}

/// A session with a coordinator.
pub struct Connection {
    /// Takes asks, which leave in this order.
    pub asks: mpsc::Sender<Vec<Ask>>,
    /// What the coordinator tells; an error, or none, is its end.
    pub answers: BoxStream<'static, Result<Vec<Told>, CoordinatorError>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Connection")
    }
}

/// Something that the process asks for. Every ask of a session has an id of its own, which rises.
#[derive(Clone, Debug)]
pub enum Ask {
    /// A lock.
    Acquire {
        /// Of the ask.
        id: u64,
        /// The same in each ask for this acquisition.
        nonce: Nonce,
        /// The key.
        key: LockKey,
        /// Which share of it.
        mode: LockMode,
        /// How many tokens to set aside: a process that hands the lock on among its own tasks gives each the next one.
        tokens: u32,
        /// Goes before waiters that are not preferred.
        preferred: bool,
        /// The length of a fixed hold.
        hold_for: Option<Duration>,
        /// Waits for as long as it takes; otherwise it is answered at once.
        queues: bool,
    },
    /// A lock that another session was granted.
    Resume {
        /// Of the ask.
        id: u64,
        /// Of the grant.
        handle: Vec<u8>,
    },
    /// The end of a lock or of a wait.
    Release {
        /// Of the ask.
        id: u64,
        /// Of the ask for the lock.
        lock: u64,
    },
    /// A writer becomes a reader.
    Downgrade {
        /// Of the ask.
        id: u64,
        /// Of the ask for the lock.
        lock: u64,
    },
    /// A renewal of all locks of the session.
    Ping {
        /// Of the ask.
        id: u64,
    },
}

/// Something that the coordinator tells.
#[derive(Clone, Debug)]
pub enum Told {
    /// The lock is held.
    Granted {
        /// Of the ask.
        id: u64,
        /// Identifies the grant at every coordinator.
        handle: Vec<u8>,
        /// The fencing token.
        token: Token,
        /// How many tokens there are, from `token` on.
        tokens: u32,
        /// The rest of the lease, counted from the send of the ask `counted_from`.
        valid_for: Duration,
        /// The latest ask that the coordinator had received.
        counted_from: u64,
    },
    /// The lock is not granted yet.
    Waits {
        /// Of the ask.
        id: u64,
        /// Why.
        because: AcquireError,
    },
    /// Another caller waits for the lock.
    Contended {
        /// Of the ask for the lock.
        id: u64,
    },
    /// The lock is not held any more.
    Lost {
        /// Of the ask for the lock.
        id: u64,
    },
    /// The lock is released.
    Released {
        /// Of the ask for the release.
        id: u64,
        /// Whether it was held until then.
        answer: ReleaseAnswer,
    },
    /// The lock is a reader's.
    Downgraded {
        /// Of the ask for the downgrade.
        id: u64,
        /// Identifies the grant from now on.
        handle: Vec<u8>,
    },
    /// The locks are renewed.
    Pong {
        /// Of the ping.
        id: u64,
        /// The rest of the lease of every lock that is not `behind`, counted from the send of the ping.
        valid_for: Option<Duration>,
        /// Locks with less, by the ids of their asks.
        behind: Vec<(u64, Duration)>,
    },
    /// The ask failed.
    Refused {
        /// Of the ask.
        id: u64,
        /// The reason.
        error: AcquireError,
    },
    /// The coordinator stops.
    Drains,
}

/// A coordinator refused a request, or none answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CoordinatorError {
    /// The reason, for people.
    pub message: String,
    /// Whether a repeat of the same call may succeed.
    pub is_retryable: bool,
    /// Whether the request may have taken effect.
    pub effect: Effect,
    /// The earliest time to ask again, if it is known.
    pub retry_after: Option<Duration>,
    /// Whether this is an answer about the lock, and not trouble on the way to it.
    pub is_answer: bool,
    /// Whether a request that waits is repeated after it.
    pub passes: bool,
}

impl CoordinatorError {
    /// A request that was refused before it was sent.
    pub fn refused(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_retryable: false,
            effect: Effect::None,
            retry_after: None,
            is_answer: false,
            passes: false,
        }
    }

    /// No coordinator answered.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self {
            is_retryable: true,
            effect: Effect::Unknown,
            passes: true,
            ..Self::refused(message)
        }
    }

    /// Whether a repeat of the same call may succeed.
    pub fn is_retryable(&self) -> bool {
        self.is_retryable
    }

    /// Whether the request may have taken effect.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// The earliest time to ask again, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl_failure!(CoordinatorError);
