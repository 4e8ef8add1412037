//! The guards of one sub-lock, and of all.

use std::{future::Future, ops::Deref};

use futures_util::future::{join_all, select_all};

use super::{Held, knowledge::Presence};

/// A held sub-lock: the lock's own guard, and the number. Dropping it releases the lock.
#[derive(Debug)]
#[must_use = "dropping the guard releases the lock"]
pub struct SegmentGuard<G> {
    guard: G,
    presence: Presence,
}

impl<G: Held> SegmentGuard<G> {
    pub(super) fn new(guard: G, presence: Presence) -> Self {
        Self { guard, presence }
    }

    /// The number of the sub-lock, from 0.
    pub fn segment(&self) -> u32 {
        self.presence.segment
    }

    /// Releases it, as the lock's own guard does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases it in the background.
    pub async fn release(self) -> G::Released {
        self.guard.release().await
    }
}

impl<G> Deref for SegmentGuard<G> {
    type Target = G;

    fn deref(&self) -> &G {
        &self.guard
    }
}

/// Every sub-lock that was ever made, held: no other holder has any of them, and no further ones are made meanwhile.
/// Dropping it releases them.
#[derive(Debug)]
#[must_use = "dropping the guard releases the locks"]
pub struct AllGuard<G>(Vec<SegmentGuard<G>>);

impl<G: Held> AllGuard<G> {
    pub(super) fn new(guards: Vec<SegmentGuard<G>>) -> Self {
        Self(guards)
    }

    /// The guards, in order. Each has its own token.
    pub fn segments(&self) -> &[SegmentGuard<G>] {
        &self.0
    }

    /// Whether all are held now.
    pub fn is_held(&self) -> bool {
        self.0.iter().all(|guard| guard.is_held())
    }

    /// Waits until one of them is no longer held, for any reason.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn lost(&self) {
        select_all(self.0.iter().map(|guard| Box::pin(guard.lost()))).await;
    }

    /// Runs `work` as long as all are held, and drops it at once when one is lost: then there is no output.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`. The locks stay held.
    pub async fn run_while_held<F: Future>(&self, work: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            () = self.lost() => None,
            output = work => Some(output),
        }
    }

    /// Releases all, and returns the answer to each release.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases them in the background.
    pub async fn release(self) -> Vec<G::Released> {
        join_all(self.0.into_iter().map(SegmentGuard::release)).await
    }
}
