//! The requirements of a segmented lock on a provider of locks.

use std::{error::Error, fmt, future::Future, sync::Arc, time::Duration};

use crate::{Account, Effect};

/// Why a lock was not granted.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{source}")]
pub struct LockError {
    /// Whether it may have been granted all the same. If so, it is given back by itself.
    pub effect: Effect,
    /// Whether the same call may succeed if made again.
    pub is_retryable: bool,
    /// The earliest time to try again, if it is known.
    pub retry_after: Option<Duration>,
    /// What went wrong.
    pub source: Arc<dyn Error + Send + Sync>,
}

impl LockError {
    /// Whether the same call may succeed if made again.
    pub fn is_retryable(&self) -> bool {
        self.is_retryable
    }

    /// Whether the lock may have been granted all the same.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// The earliest time to try again, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// A lock that was waited for, if need be.
#[derive(Debug)]
pub struct Waited<G> {
    /// The holder's side of it.
    pub guard: G,
    /// Whether it was not to be had at once.
    pub had_to_wait: bool,
}

/// Locks, by their keys.
///
/// # Contract
///
/// * A key has one holder at a time, and each grant of it a greater token than all earlier ones.
/// * Waiters for a key get it in the order in which they came.
/// * A dropped call leaves nothing held.
pub trait Locks: fmt::Debug + Send + Sync + 'static {
    /// The holder's side of a grant. Dropping it gives the lock back.
    type Guard: Held;

    /// Where `more` sub-locks of `name` are to be, beside those at `taken`: see [`spread`](crate::spread).
    fn place(&self, name: &Account, taken: &[u32], more: u32) -> Vec<u32>;

    /// Takes `key` now; none if somebody else has it.
    fn try_acquire(
        &self,
        key: &str,
    ) -> impl Future<Output = Result<Option<Self::Guard>, LockError>> + Send;

    /// Takes `key`, waiting as long as is said, for ever if it is not. What may pass by itself is waited out.
    fn acquire(
        &self,
        key: &str,
        wait: Option<Duration>,
    ) -> impl Future<Output = Result<Waited<Self::Guard>, LockError>> + Send;
}

/// A held lock, renewed by its provider.
pub trait Held: fmt::Debug + Send + Sync + 'static {
    /// What a release found.
    type Released: fmt::Debug + Send;

    /// The fencing token.
    fn token(&self) -> u64;

    /// Whether the lock is held now.
    fn is_held(&self) -> bool;

    /// Waits until the lock is no longer held, for any reason.
    fn lost(&self) -> impl Future<Output = ()> + Send;

    /// Gives the lock back. Dropped half way, it is given back in the background.
    fn release(self) -> impl Future<Output = Self::Released> + Send;
}
