//! The guard of a set of locks.

use std::{future::Future, time::Duration};

use futures_util::future::{join_all, select_all};
use ringfence_coordinator::{
    clock::Instant,
    engine::{Danger, Guard, LockLost, ReleaseAnswer},
    ids::Token,
};

/// A set of held locks, with a fencing token for each key. Dropping it releases all of them in the
/// background, as [`Guard`] does.
#[derive(Debug)]
#[must_use = "dropping the guard releases the locks"]
pub struct MultiGuard {
    /// In the order of acquisition; at least one.
    guards: Vec<Guard>,
    /// For each key as it was given, the index of its guard.
    given: Vec<usize>,
}

impl MultiGuard {
    pub(super) fn new(guards: Vec<Guard>, given: Vec<usize>) -> Self {
        Self { guards, given }
    }

    /// The fencing token of each key, in the order in which the keys were given. A key that was
    /// given twice has its token twice. Pass each to the resource that its lock protects.
    pub fn tokens(&self) -> Vec<Token> {
        let given = self.given.iter();
        given.map(|index| self.guards[*index].token()).collect()
    }

    /// The time until which all the locks are certainly held: the earliest of their deadlines.
    pub fn deadline(&self) -> Instant {
        self.earliest(Guard::deadline)
    }

    /// The time when the first of the locks comes into danger.
    pub fn danger_at(&self) -> Instant {
        self.earliest(Guard::danger_at)
    }

    /// How long all are certainly held from now on; zero once one is not.
    pub fn remaining(&self) -> Duration {
        let remaining = self.guards.iter().map(Guard::remaining);
        remaining.min().unwrap_or_default()
    }

    /// Whether all are held now.
    pub fn is_held(&self) -> bool {
        self.guards.iter().all(Guard::is_held)
    }

    /// Waits until one of the locks is in danger, as [`Guard::danger`] does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn danger(&self) -> Danger {
        let dangers = self.guards.iter().map(|guard| Box::pin(guard.danger()));
        select_all(dangers).await.0
    }

    /// Waits until one of the locks is no longer held, for any reason; at the latest until the
    /// [deadline](Self::deadline). The others stay held until this guard is released.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn lost(&self) {
        select_all(self.guards.iter().map(|guard| Box::pin(guard.lost()))).await;
    }

    /// Runs `work` while all are held, and drops it as soon as one is not.
    ///
    /// # Errors
    ///
    /// [`LockLost`]: `work` was dropped unfinished.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the guard stays.
    pub async fn run_while_held<F: Future>(&self, work: F) -> Result<F::Output, LockLost> {
        tokio::select! {
            biased;
            () = self.lost() => Err(LockLost),
            output = work => Ok(output),
        }
    }

    /// Keeps all for at least `length` from now on, as [`Guard::hold_at_least`] does.
    pub fn hold_at_least(&self, length: Duration) {
        self.guards
            .iter()
            .for_each(|guard| guard.hold_at_least(length));
    }

    /// Releases all, and returns whether all were held until now: [`ReleaseAnswer::Lost`] if one was
    /// not, otherwise [`ReleaseAnswer::Unknown`] if a release got no answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases them in the background.
    pub async fn release(self) -> ReleaseAnswer {
        let answers = join_all(self.guards.into_iter().map(Guard::release)).await;
        let worst = [ReleaseAnswer::Lost, ReleaseAnswer::Unknown];
        let worst = worst.into_iter().find(|answer| answers.contains(answer));
        worst.unwrap_or(ReleaseAnswer::Held)
    }

    fn earliest(&self, time: impl Fn(&Guard) -> Instant) -> Instant {
        let times = self.guards.iter().map(time);
        times.min().unwrap_or_default()
    }
}
