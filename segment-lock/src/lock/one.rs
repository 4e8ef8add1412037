//! Acquires a given sub-lock.

use std::time::Duration;

use super::{Deadline, Locks, SegmentGuard, SegmentedLock, SegmentedLockError};
use crate::Effect;

/// A request for a given sub-lock, with its options. Made by [`SegmentedLock::at`].
#[derive(Debug)]
#[must_use = "nothing is asked for until it is acquired"]
pub struct One<'a, L> {
    lock: &'a SegmentedLock<L>,
    segment: u32,
    wait: Option<Duration>,
}

impl<'a, L: Locks> One<'a, L> {
    pub(super) fn of(lock: &'a SegmentedLock<L>, segment: u32) -> Self {
        Self {
            lock,
            segment,
            wait: None,
        }
    }

    /// Waits at most `length`. Default: waits indefinitely.
    pub fn wait(mut self, length: Duration) -> Self {
        self.wait = Some(length);
        self
    }

    /// Acquires it, and waits for it if necessary. It need not be in use: every sub-lock that was ever made can be
    /// acquired.
    ///
    /// # Errors
    ///
    /// [`SegmentedLockError`]: has whether to try again, and the possible effects.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases, in the background, a lock that it may have been granted.
    pub async fn acquire(&self) -> Result<SegmentGuard<L::Guard>, SegmentedLockError> {
        let deadline = Deadline::within(self.wait);
        deadline
            .bounds(Effect::None, self.take(Some(deadline)))
            .await
    }

    /// Acquires it now or not at all.
    ///
    /// # Errors
    ///
    /// As for [`acquire`](Self::acquire); [`SegmentedLockError::Held`] if another holder has it.
    ///
    /// # Cancel safety
    ///
    /// As for [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<SegmentGuard<L::Guard>, SegmentedLockError> {
        self.take(None).await
    }

    async fn take(
        &self,
        wait: Option<Deadline>,
    ) -> Result<SegmentGuard<L::Guard>, SegmentedLockError> {
        let mut record = self.lock.known().await?;
        if self.segment >= record.manifest.made() {
            record = self.lock.newest().await?;
        }
        self.lock.take(&record.manifest, self.segment, wait).await
    }
}
