//! Changes the number of sub-locks in use.

use std::time::Duration;

use super::{Deadline, Held, Locks, SegmentedLock, SegmentedLockError};
use crate::{Effect, limits::ROUNDS_MAX};

/// A request for another number of sub-locks in use, with its options. Made by [`SegmentedLock::resize`].
#[derive(Debug)]
#[must_use = "nothing is changed until it is run"]
pub struct Resize<'a, L> {
    lock: &'a SegmentedLock<L>,
    segments: u32,
    wait: Option<Duration>,
}

impl<'a, L: Locks> Resize<'a, L> {
    pub(super) fn of(lock: &'a SegmentedLock<L>, segments: u32) -> Self {
        Self {
            lock,
            segments,
            wait: None,
        }
    }

    /// Waits at most `length`. Default: waits indefinitely.
    pub fn wait(mut self, length: Duration) -> Self {
        self.wait = Some(length);
        self
    }

    /// Changes the number. To make more than ever existed, it acquires sub-lock 0, so it waits for a holder of all.
    /// Other processes choose among the new number within about a second; processes that still use fewer do no harm.
    ///
    /// # Errors
    ///
    /// [`SegmentedLockError`]: has whether to try again, and whether the number may have changed all the same.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the number changed, or not; nothing stays locked.
    pub async fn run(&self) -> Result<(), SegmentedLockError> {
        let deadline = Deadline::within(self.wait);
        deadline
            .bounds(Effect::Unknown, self.change(deadline))
            .await
    }

    async fn change(&self, deadline: Deadline) -> Result<(), SegmentedLockError> {
        let mut first = None;
        for _ in 0..ROUNDS_MAX {
            let read = self.lock.newest().await?;
            let split = &read.manifest;
            if split.used() == self.segments {
                return Ok(());
            }
            let mut resized = split.resized(self.segments, self.lock.place())?;
            if resized.made() > split.made() {
                let Some(guard) = &first else {
                    first = Some(self.lock.take(split, 0, Some(deadline)).await?);
                    continue;
                };
                let shown = resized.shown(Held::token(&**guard));
                resized = shown.map_err(|_| SegmentedLockError::Lost { segment: 0 })?;
            }
            if self.lock.swap(&read, resized).await? {
                return self.lock.newest().await.map(drop);
            }
        }
        Err(SegmentedLockError::Contended { rounds: ROUNDS_MAX })
    }
}
