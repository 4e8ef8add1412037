//! The reasons why a set of locks was not granted.

use std::time::Duration;

use ringfence_coordinator::{
    engine::AcquireError,
    limits::MULTI_LOCK_KEYS_MAX,
    name::{LockKey, NameError},
    shard::Effect,
};

/// The reason why a set of locks was not granted. None of the set is held.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MultiLockError {
    /// The set is empty.
    #[error("no keys: a multi-lock has 1 to {MULTI_LOCK_KEYS_MAX}")]
    NoKeys,
    /// The set is too large.
    #[error("{0} different keys: a multi-lock has at most {MULTI_LOCK_KEYS_MAX}")]
    TooManyKeys(usize),
    /// A key or the namespace is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A lock of the set was not granted.
    #[error("{key}: {error}")]
    NotAcquired {
        /// The key of that lock.
        key: LockKey,
        /// The reason.
        error: AcquireError,
    },
    /// A lock of the set was lost while the others were acquired.
    #[error("{key} was lost while the others were acquired")]
    Lost {
        /// The key of that lock.
        key: LockKey,
    },
}

impl MultiLockError {
    /// Whether a repeat of the same call may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NotAcquired { error, .. } => error.is_retryable(),
            Self::Lost { .. } => true,
            Self::NoKeys | Self::TooManyKeys(_) | Self::Name(_) => false,
        }
    }

    /// Whether a shard may have granted a lock all the same. If so, the lock is released in the
    /// background, and ends with its lease at the latest.
    pub fn effect(&self) -> Effect {
        match self {
            Self::NotAcquired { error, .. } => error.effect(),
            Self::NoKeys | Self::TooManyKeys(_) | Self::Name(_) | Self::Lost { .. } => Effect::None,
        }
    }

    /// The earliest time to ask again, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotAcquired { error, .. } => error.retry_after(),
            _ => None,
        }
    }
}
