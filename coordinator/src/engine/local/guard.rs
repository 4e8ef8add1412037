//! A holder's side of a grant.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use super::{
    super::{Danger, LockLost, ReleaseAnswer},
    Handle, LiveReplicas, LocalQueues,
    grant::Grant,
};
use crate::{
    clock::{Instant, sleep_until},
    ids::Token,
    metrics::Holding,
};

/// A held lock.
///
/// Dropping it releases the lock in the background: the drop neither waits nor fails nor blocks,
/// unless it is the engine's last handle or the runtime has ended (see
/// [`Parts::shared`](super::super::Parts::shared)). If the process is killed first, the grant ends with
/// its lease.
///
/// A guard may be sent to another task. The clock decides whether the lock is still held, not a
/// timer: [`is_held`](Self::is_held) is right even after the machine was suspended.
#[must_use = "dropping the guard releases the lock"]
pub struct Guard {
    grant: Arc<Grant>,
    queues: Arc<Handle>,
    /// Whether this guard still counts as one of the grant's.
    counted: bool,
    /// Whether it was not granted at once.
    has_waited: bool,
    /// For the metrics.
    holding: Option<Holding>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, token) = (&self.grant.lease().key, self.grant.token);
        write!(formatter, "Guard({key:?}, token {token})")
    }
}

impl Guard {
    /// A guard that is counted already.
    pub(crate) fn new(grant: Arc<Grant>, queues: Arc<Handle>, has_waited: bool) -> Self {
        Self {
            grant,
            queues,
            counted: true,
            has_waited,
            holding: None,
        }
    }

    /// Its parts. The guard itself releases nothing any more.
    pub(super) fn take_apart(mut self) -> (Arc<Grant>, Arc<Handle>, Option<Holding>) {
        self.counted = false;
        (self.grant.clone(), self.queues.clone(), self.holding.take())
    }

    /// Whether it was not granted at once: another holder or waiter came first, or the shard could not grant yet.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Counts this hold until its end.
    pub(crate) fn count(&mut self, holding: Holding) {
        self.holding = Some(holding);
    }

    /// The fencing token: pass it to the resource that the lock protects, and have the resource
    /// refuse a token smaller than one it has seen (Kleppmann, "How to do distributed locking",
    /// 2016).
    pub fn token(&self) -> Token {
        self.grant.token
    }

    /// Makes a writer of a read-write lock a reader. Returns whether the guard was a writer's. Stop writing before: other
    /// readers may hold the lock from now on. They come in when the shard knows, which is told at once, and again with
    /// each renewal; under a fixed hold that is not renewed any more, at its end. The token stays.
    ///
    /// A reader cannot become a writer: two readers would wait for each other. Release the guard, and acquire a writer's.
    pub fn downgrade(&self) -> bool {
        let was_writer = self.queues.downgrade(self.grant.lease());
        if was_writer {
            self.grant.shared().renew();
        }
        was_writer
    }

    /// The time until which the lock is certainly held, on the engine's
    /// [`clock`](super::super::Engine::clock). Renewals move it.
    pub fn deadline(&self) -> Instant {
        self.grant.lease().deadline()
    }

    /// How long the lock is certainly held from now on; zero once it is not.
    pub fn remaining(&self) -> Duration {
        if self.is_held() {
            self.deadline().since(self.queues.now())
        } else {
            Duration::ZERO
        }
    }

    /// The time when the lock comes into danger, on the engine's clock: a third of the lease is
    /// left, or, with leased removal, a third of the view lease. Until the first renewal after a
    /// turn, a third of the rest of that turn. Renewals and confirmations move this time; in normal
    /// operation each leaves more than that.
    pub fn danger_at(&self) -> Instant {
        self.grant.lease().danger_at()
    }

    /// Whether the lock is held now.
    pub fn is_held(&self) -> bool {
        self.grant.lease().is_held(self.queues.now())
    }

    /// The replicas of the lock, and how many of them have it. Each of them lasts on its own; the lock is held while a
    /// majority does.
    pub fn replicas(&self) -> LiveReplicas {
        self.grant.shared().replicas(self.queues.now())
    }

    /// Waits until the lock is in danger: a renewal failed, the server's clock stepped, no more than a bare majority of
    /// its replicas has it, or the end is [near](Self::danger_at). Returns at once if the lock is in danger or lost already.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn danger(&self) -> Danger {
        loop {
            let changed = self.grant.lease().changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.grant.lease().is_by_a_stepped_clock() {
                return Danger::ClockStepped;
            }
            if self.grant.lease().has_failed_renewal() {
                return Danger::RenewalFailed;
            }
            if self.grant.lease().is_thin() {
                return Danger::Thin;
            }
            let near = self.danger_at();
            if self.queues.now() >= near || !self.is_held() {
                return Danger::NearDeadline;
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(&*self.queues.clock, near) => {}
            }
        }
    }

    /// Waits until the lock is no longer held, for any reason; at the latest until the deadline.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn lost(&self) {
        loop {
            let changed = self.grant.lease().changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self.is_held() {
                return;
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(&*self.queues.clock, self.deadline()) => {}
            }
        }
    }

    /// Runs `work` while the lock is held, and drops it as soon as the lock is not.
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

    /// Keeps the lock for at least `length` from now on: a guard that is released or dropped earlier leaves it held, and
    /// renewed, until then. So a short job runs once, although the clocks that start it on several machines differ. The
    /// lock ends with its lease if this process ends or [closes](super::super::Engine::close) the engine earlier. Call it in
    /// a tokio runtime.
    pub fn hold_at_least(&self, length: Duration) {
        // An owner that entered as often as it may keeps the lock by its other guards.
        if self.grant.enter().is_err() {
            return;
        }
        let until = self.queues.now() + length;
        let kept = Self::new(self.grant.clone(), self.queues.clone(), self.has_waited);
        #[expect(
            clippy::disallowed_methods,
            reason = "close() does not wait for it: the lock ends with its lease then"
        )]
        tokio::spawn(async move {
            tokio::select! {
                () = kept.lost() => {}
                () = sleep_until(&*kept.queues.clock, until) => {}
            }
        });
    }

    /// Releases the lock, and returns whether it was held until now. If the owner entered more than
    /// once, only the last guard releases it.
    ///
    /// Releasing a lost lock is not an error: the answer says so.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock in the background, as dropping the guard does.
    pub async fn release(mut self) -> ReleaseAnswer {
        let now = self.queues.now();
        let held = self.grant.lease().is_held(now);
        self.counted = false;
        if let Some(holding) = self.holding.take() {
            holding.end(now, held);
        }
        if self.grant.leave() {
            self.queues.release(&self.grant, now).await
        } else if held {
            ReleaseAnswer::Held
        } else {
            ReleaseAnswer::Lost
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(holding) = self.holding.take() {
            let now = self.queues.now();
            holding.end(now, self.grant.lease().is_held(now));
        }
        if self.counted && self.grant.leave() {
            self.queues.release_in_background(&self.grant);
        }
    }
}

impl LocalQueues {
    /// Ends `grant` after its last guard: the lock goes to the next waiter in this process, or back
    /// to the authority. `now` is the time of the request.
    async fn release(&self, grant: &Grant, now: Instant) -> ReleaseAnswer {
        let held = grant.lease().is_held(now);
        let Some(mut due) = self.released(grant.lease(), now) else {
            return ReleaseAnswer::Lost;
        };
        let yields = due.effects.yields;
        let given_back = due.effects.give_back.take();
        let releasing = given_back.and_then(|lease| lease.release(yields, held));
        // The request for the next waiter goes behind it.
        self.perform(due);
        match releasing {
            Some(releasing) => releasing.await,
            None if held => ReleaseAnswer::Held,
            None => ReleaseAnswer::Lost,
        }
    }

    /// Ends `grant` without waiting.
    fn release_in_background(&self, grant: &Grant) {
        if let Some(due) = self.released(grant.lease(), self.now()) {
            self.perform(due);
        }
    }
}
