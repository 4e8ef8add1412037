//! Acquires every sub-lock at once.

use std::time::Duration;

use super::{
    AllGuard, Deadline, Held, Locks, SegmentGuard, SegmentedLock, SegmentedLockError, Split,
};
use crate::{Effect, limits::ROUNDS_MAX};

/// A request for every sub-lock, with its options. Made by [`SegmentedLock::all`].
#[derive(Debug)]
#[must_use = "nothing is asked for until it is acquired"]
pub struct All<'a, L> {
    lock: &'a SegmentedLock<L>,
    wait: Option<Duration>,
}

impl<'a, L: Locks> All<'a, L> {
    pub(super) fn of(lock: &'a SegmentedLock<L>) -> Self {
        Self { lock, wait: None }
    }

    /// Waits at most `length`, for all of them together. Default: waits indefinitely.
    pub fn wait(mut self, length: Duration) -> Self {
        self.wait = Some(length);
        self
    }

    /// Acquires every sub-lock that was ever made, in order, and waits for each if necessary. While they are held, no
    /// other holder has any of them, and no further ones are made.
    ///
    /// It takes as many round trips as there are sub-locks, and two.
    ///
    /// # Errors
    ///
    /// [`SegmentedLockError`]: has whether to try again, and the possible effects.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases, in the background, all locks that it may have been granted.
    pub async fn acquire(&self) -> Result<AllGuard<L::Guard>, SegmentedLockError> {
        let deadline = Deadline::within(self.wait);
        let taken = self.take(Some(deadline));
        deadline.bounds(Effect::None, taken).await
    }

    /// Acquires all of them now, or none.
    ///
    /// # Errors
    ///
    /// As for [`acquire`](Self::acquire); [`SegmentedLockError::Held`] if another holder has one.
    ///
    /// # Cancel safety
    ///
    /// As for [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<AllGuard<L::Guard>, SegmentedLockError> {
        self.take(None).await
    }

    /// The steps that the module's documentation describes.
    async fn take(&self, wait: Option<Deadline>) -> Result<AllGuard<L::Guard>, SegmentedLockError> {
        let mut held = Vec::new();
        let known = self.lock.known().await?;
        self.take_rest(&mut held, &known.manifest, wait).await?;
        for _ in 0..ROUNDS_MAX {
            let read = self.lock.newest().await?;
            self.take_rest(&mut held, &read.manifest, wait).await?;
            let first = held.first().expect("there is a sub-lock 0");
            let confirmed = read.manifest.shown(first.token());
            let confirmed = confirmed.map_err(|_| SegmentedLockError::Lost { segment: 0 })?;
            let swapped = self.lock.swap(&read, confirmed).await;
            if swapped.map_err(SegmentedLockError::aside)? {
                return match held.iter().find(|guard| !guard.is_held()) {
                    None => Ok(AllGuard::new(held)),
                    Some(lost) => Err(SegmentedLockError::Lost {
                        segment: lost.segment(),
                    }),
                };
            }
        }
        Err(SegmentedLockError::Contended { rounds: ROUNDS_MAX })
    }

    /// Acquires the sub-locks after those `held`.
    async fn take_rest(
        &self,
        held: &mut Vec<SegmentGuard<L::Guard>>,
        split: &Split,
        wait: Option<Deadline>,
    ) -> Result<(), SegmentedLockError> {
        let first = u32::try_from(held.len()).expect("no more than there may be segments");
        for segment in first..split.made() {
            held.push(self.lock.take(split, segment, wait).await?);
        }
        Ok(())
    }
}
