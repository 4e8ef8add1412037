//! The reasons why a call on a segmented lock failed.

use std::time::Duration;

use super::LockError;
use crate::{Account, Effect, ManifestError, NameError, StorageError};

/// The reason why a call on a segmented lock failed. It holds nothing.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentedLockError {
    /// The name is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The record does not allow this change, or is malformed.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The segmented lock was not created; or its record was lost in a failure beyond its durability.
    #[error("segmented lock {name} does not exist")]
    NoLock {
        /// Its name.
        name: Account,
    },
    /// The sub-lock does not exist.
    #[error("segment is {segment}, must be less than {made}: no more were ever made")]
    NoSegment {
        /// The refused number.
        segment: u32,
        /// The number of sub-locks.
        made: u32,
    },
    /// Another holder has it.
    #[error("segment {segment} is held")]
    Held {
        /// The sub-lock.
        segment: u32,
    },
    /// None was free.
    #[error("none of {looked_at} segments was free")]
    NoneFree {
        /// The number of tries.
        looked_at: usize,
    },
    /// A sub-lock was not granted, or not in time.
    #[error("segment {segment}: {error}")]
    NotAcquired {
        /// The sub-lock.
        segment: u32,
        /// The cause.
        error: LockError,
    },
    /// A sub-lock was lost while the others were acquired. All are released.
    #[error("segment {segment} was lost while the others were taken")]
    Lost {
        /// The sub-lock.
        segment: u32,
    },
    /// The wait ended before the record's shard answered.
    #[error("no answer from the segments within {waited:?}")]
    TimedOut {
        /// The requested length.
        waited: Duration,
        /// Whether the record may have been changed.
        effect: Effect,
    },
    /// Other processes changed the record during each attempt.
    #[error("gave up after {rounds} concurrent changes of the record")]
    Contended {
        /// The number of attempts.
        rounds: u32,
    },
    /// The record's storage gave no answer.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl SegmentedLockError {
    /// Whether the same call may succeed if it is repeated.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Held { .. }
            | Self::NoneFree { .. }
            | Self::Lost { .. }
            | Self::TimedOut { .. }
            | Self::Contended { .. } => true,
            Self::Name(_) | Self::Manifest(_) | Self::NoLock { .. } | Self::NoSegment { .. } => {
                false
            }
            Self::NotAcquired { error, .. } => error.is_retryable,
            Self::Storage(error) => error.is_retryable,
        }
    }

    /// Whether the call may have been applied all the same. A lock whose grant did not arrive is released in the
    /// background.
    pub fn effect(&self) -> Effect {
        match self {
            Self::TimedOut { effect, .. } => *effect,
            Self::NotAcquired { error, .. } => error.effect,
            Self::Storage(error) => error.effect,
            Self::Name(_)
            | Self::Manifest(_)
            | Self::NoLock { .. }
            | Self::NoSegment { .. }
            | Self::Held { .. }
            | Self::NoneFree { .. }
            | Self::Lost { .. }
            | Self::Contended { .. } => Effect::None,
        }
    }

    /// The earliest time for another attempt, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotAcquired { error, .. } => error.retry_after,
            Self::Storage(error) => error.retry_after(),
            _ => None,
        }
    }

    /// The same error of a request that changes nothing.
    pub(super) fn aside(self) -> Self {
        match self {
            Self::Storage(error) => Self::Storage(error.aside()),
            error => error,
        }
    }
}
