//! Why a call on a segmented lock failed.

use std::time::Duration;

use super::LockError;
use crate::{Account, Effect, ManifestError, NameError, StorageError};

/// Why a call on a segmented lock failed. Nothing is held by it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentedLockError {
    /// The name is not one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The record cannot be changed so, or is not one.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// It was not created; or its record was lost in an event beyond its durability.
    #[error("segmented lock {name} does not exist")]
    NoLock {
        /// Its name.
        name: Account,
    },
    /// There is no such sub-lock.
    #[error("segment is {segment}, must be less than {made}: no more were ever made")]
    NoSegment {
        /// The number refused.
        segment: u32,
        /// How many there are.
        made: u32,
    },
    /// Somebody else has it.
    #[error("segment {segment} is held")]
    Held {
        /// Which.
        segment: u32,
    },
    /// None was free.
    #[error("none of {looked_at} segments was free")]
    NoneFree {
        /// How many were looked at.
        looked_at: usize,
    },
    /// A sub-lock was not granted, or not in time.
    #[error("segment {segment}: {error}")]
    NotAcquired {
        /// Which.
        segment: u32,
        /// Why.
        error: LockError,
    },
    /// A sub-lock was lost while the others were taken. All are given back.
    #[error("segment {segment} was lost while the others were taken")]
    Lost {
        /// Which.
        segment: u32,
    },
    /// The wait was over before the record's shard had answered.
    #[error("no answer from the segments within {waited:?}")]
    TimedOut {
        /// As asked.
        waited: Duration,
        /// Whether the record may have been changed.
        effect: Effect,
    },
    /// Others changed the record again and again.
    #[error("gave up after {rounds} concurrent changes of the record")]
    Contended {
        /// How often it was tried.
        rounds: u32,
    },
    /// The record's storage gave no answer.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl SegmentedLockError {
    /// Whether the same call may succeed if made again.
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

    /// Whether what was asked for may have been applied all the same. A lock that was granted unheard is given back
    /// in the background.
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

    /// The earliest time to try again, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotAcquired { error, .. } => error.retry_after,
            Self::Storage(error) => error.retry_after(),
            _ => None,
        }
    }

    /// The same, of a request that does nothing to what was asked for.
    pub(super) fn aside(self) -> Self {
        match self {
            Self::Storage(error) => Self::Storage(error.aside()),
            error => error,
        }
    }
}
