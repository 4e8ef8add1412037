//! The provider of locks for a segmented lock.

use std::{error::Error, fmt, future::Future, sync::Arc, time::Duration};

use crate::{Account, Effect};

/// The reason why a lock was not granted.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{source}")]
pub struct LockError {
    /// Whether it may have been granted all the same. If so, it is released without the caller.
    pub effect: Effect,
    /// Whether the same call may succeed if it is repeated.
    pub is_retryable: bool,
    /// The earliest time for another attempt, if it is known.
    pub retry_after: Option<Duration>,
    /// The cause.
    pub source: Arc<dyn Error + Send + Sync>,
}

impl LockError {
    /// Whether the same call may succeed if it is repeated.
    pub fn is_retryable(&self) -> bool {
        self.is_retryable
    }

    /// Whether the lock may have been granted all the same.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// The earliest time for another attempt, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// A granted lock, and whether the caller had to wait.
#[derive(Debug)]
pub struct Waited<G> {
    /// The guard.
    pub guard: G,
    /// Whether the lock was not free at once.
    pub had_to_wait: bool,
}

/// Locks by key.
///
/// # Contract
///
/// * A key has one holder at a time. The token of each grant is greater than all earlier tokens of the key.
/// * Waiters for a key get it in the order in which they came.
/// * A dropped call leaves nothing held.
pub trait Locks: fmt::Debug + Send + Sync + 'static {
    /// The guard of a grant. Dropping it releases the lock.
    type Guard: Held;

    /// Chooses the places of `more` sub-locks of `name`, given those at `taken`: see [`spread`](crate::spread).
    fn place(&self, name: &Account, taken: &[u32], more: u32) -> Vec<u32>;

    /// Acquires `key` now; `None` if another holder has it.
    fn try_acquire(
        &self,
        key: &str,
    ) -> impl Future<Output = Result<Option<Self::Guard>, LockError>> + Send;

    /// Acquires `key`, and waits for at most the given time, indefinitely by default. Waits out temporary errors too.
    fn acquire(
        &self,
        key: &str,
        wait: Option<Duration>,
    ) -> impl Future<Output = Result<Waited<Self::Guard>, LockError>> + Send;
}

/// A held lock, renewed by its provider.
pub trait Held: fmt::Debug + Send + Sync + 'static {
    /// The answer to a release.
    type Released: fmt::Debug + Send;

    /// The fencing token.
    fn token(&self) -> u64;

    /// Whether the lock is held now.
    fn is_held(&self) -> bool;

    /// Waits until the lock is no longer held, for any reason.
    fn lost(&self) -> impl Future<Output = ()> + Send;

    /// Releases the lock. If this is dropped before its end, the lock is released in the background.
    fn release(self) -> impl Future<Output = Self::Released> + Send;
}
