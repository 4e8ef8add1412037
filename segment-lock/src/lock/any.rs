//! Acquires any free sub-lock.

use std::time::Duration;

use super::{
    Deadline, Locks, SegmentGuard, SegmentedLock, SegmentedLockError, Split, choice::Choice,
    knowledge::Presence,
};
use crate::Effect;

/// A request for any free sub-lock, with its options. Made by [`SegmentedLock::any`].
#[derive(Debug)]
#[must_use = "nothing is asked for until it is acquired"]
pub struct Any<'a, L> {
    lock: &'a SegmentedLock<L>,
    wait: Option<Duration>,
}

impl<'a, L: Locks> Any<'a, L> {
    pub(super) fn of(lock: &'a SegmentedLock<L>) -> Self {
        Self { lock, wait: None }
    }

    /// Waits at most `length`. Default: waits indefinitely.
    pub fn wait(mut self, length: Duration) -> Self {
        self.wait = Some(length);
        self
    }

    /// Acquires a free one. If none is free, waits for the least loaded one, as far as this process knows. It then
    /// keeps its place there, even if another one becomes free.
    ///
    /// # Errors
    ///
    /// [`SegmentedLockError`]: has whether to try again, and the possible effects. An unreachable shard is no error as
    /// long as other shards have sub-locks.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases, in the background, a lock that it may have been granted.
    pub async fn acquire(&self) -> Result<SegmentGuard<L::Guard>, SegmentedLockError> {
        let deadline = Deadline::within(self.wait);
        let taken = async {
            let split = &self.lock.known().await?.manifest;
            match self.try_each(split).await? {
                Tried::Taken(guard) => Ok(guard),
                Tried::NoneFree { least, .. } => self.wait_for(split, least, deadline).await,
            }
        };
        deadline.bounds(Effect::None, taken).await
    }

    /// Acquires one that is free now, or none.
    ///
    /// # Errors
    ///
    /// As for [`acquire`](Self::acquire); [`SegmentedLockError::NoneFree`] if none was free.
    ///
    /// # Cancel safety
    ///
    /// As for [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<SegmentGuard<L::Guard>, SegmentedLockError> {
        let split = &self.lock.known().await?.manifest;
        match self.try_each(split).await? {
            Tried::Taken(guard) => Ok(guard),
            Tried::NoneFree { error, .. } => Err(error),
        }
    }

    /// Tries the sub-locks that seem free, one after the other.
    async fn try_each(&self, split: &Split) -> Result<Tried<L>, SegmentedLockError> {
        let mut tried = Vec::new();
        let mut trouble = None;
        loop {
            let (choice, presence) = self.lock.0.knowledge.choose(split.used(), &tried);
            let segment = match choice {
                Choice::Try(segment) => segment,
                Choice::Wait(_) => {
                    let looked_at = split.used() as usize;
                    let error = trouble.unwrap_or(SegmentedLockError::NoneFree { looked_at });
                    let least = presence;
                    return Ok(Tried::NoneFree { least, error });
                }
            };
            let key = self.lock.key(split, segment)?;
            match self.lock.0.locks.try_acquire(&key).await {
                Ok(Some(guard)) => {
                    presence.granted(false);
                    presence.is_last();
                    return Ok(Tried::Taken(SegmentGuard::new(guard, presence)));
                }
                Ok(None) => presence.refused(),
                Err(error) => {
                    let is_retryable = error.is_retryable;
                    let error = SegmentedLockError::NotAcquired { segment, error };
                    if !is_retryable {
                        return Err(error);
                    }
                    presence.troubled();
                    trouble = Some(error);
                }
            }
            tried.push(segment);
        }
    }

    async fn wait_for(
        &self,
        split: &Split,
        presence: Presence,
        deadline: Deadline,
    ) -> Result<SegmentGuard<L::Guard>, SegmentedLockError> {
        let segment = presence.segment;
        let key = self.lock.key(split, segment)?;
        let taken = self.lock.0.locks.acquire(&key, deadline.left()).await;
        let taken = taken.map_err(|error| SegmentedLockError::NotAcquired { segment, error })?;
        presence.granted(taken.had_to_wait);
        presence.is_last();
        Ok(SegmentGuard::new(taken.guard, presence))
    }
}

/// The result of the tries.
enum Tried<L: Locks> {
    Taken(SegmentGuard<L::Guard>),
    /// None was free: the caller waits at the least loaded one.
    NoneFree {
        least: Presence,
        error: SegmentedLockError,
    },
}
