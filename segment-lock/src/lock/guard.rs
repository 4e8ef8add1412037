//! A holder's side of one sub-lock, or of all.

use std::{future::Future, ops::Deref};

use futures_util::future::{join_all, select_all};

use super::{Held, knowledge::Presence};

/// A held sub-lock: what the lock's own guard is, and which it is. Dropping it gives it back.
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

    /// Which sub-lock it is, from 0.
    pub fn segment(&self) -> u32 {
        self.presence.segment
    }

    /// Gives it back, as the lock's own guard does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives it back in the background.
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

/// Every sub-lock that was ever made, held: nobody else has any of them, and no more are made meanwhile. Dropping it
/// gives them back.
#[derive(Debug)]
#[must_use = "dropping the guard releases the locks"]
pub struct AllGuard<G>(Vec<SegmentGuard<G>>);

impl<G: Held> AllGuard<G> {
    pub(super) fn new(guards: Vec<SegmentGuard<G>>) -> Self {
        Self(guards)
    }

    /// The guards, in order: each has a token of its own.
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

    /// Runs `work` for as long as all are held, and drops it the moment one is not: then there is no output.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the guard goes on.
    pub async fn run_while_held<F: Future>(&self, work: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            () = self.lost() => None,
            output = work => Some(output),
        }
    }

    /// Gives all back, and says of each what its release found.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives them back in the background.
    pub async fn release(self) -> Vec<G::Released> {
        join_all(self.0.into_iter().map(SegmentGuard::release)).await
    }
}
