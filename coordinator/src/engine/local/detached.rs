//! A held lock whose holder is outside of this process, such as a caller of the service.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use super::{
    super::{LockLost, ReleaseAnswer},
    Guard, Handle, Lease, Receiver,
};
use crate::{
    clock::{Instant, sleep_until},
    ids::{Nonce, Token},
    metrics::{End, Holding},
    name::{Label, LockKey},
    shard::LockMode,
    sync::Mutex,
};

/// A renewal that left within this share of the lease counts as a new one: callers cannot flood a
/// shard with renewals.
const LATELY: u32 = 12;

/// A held lock whose holder is outside of this process, and may go on with it at another engine.
///
/// It is renewed when the holder asks for that. It is released only by [`release`](Self::release):
/// dropping it, or its end here, leaves the record at the shard until the record expires, because
/// another engine may have renewed it.
#[must_use = "dropping it leaves the lock held until its lease ends"]
pub struct DetachedLease {
    lease: Arc<dyn Lease>,
    token: Token,
    queues: Arc<Handle>,
    /// For the metrics.
    holding: Mutex<Option<Holding>>,
}

/// Identifies a held lock to every engine of its topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRef {
    /// The key.
    pub key: LockKey,
    /// The acquisition.
    pub nonce: Nonce,
    /// The acquisitions at its replicas, in the order of their ranks. None for a lock with one replica.
    pub replicas: Vec<Nonce>,
    /// The fencing token.
    pub token: Token,
    /// How many tokens are the holder's, from `token` on.
    pub tokens: u32,
    /// Which share of the key it takes.
    pub mode: LockMode,
    /// The holder's name shown to others.
    pub label: Label,
    /// The lease.
    pub lease: Duration,
    /// The rest of a fixed hold, which renewals do not extend.
    pub hold_for: Option<Duration>,
}

impl DetachedLease {
    pub(crate) fn new(
        lease: Arc<dyn Lease>,
        token: Token,
        queues: Arc<Handle>,
        holding: Option<Holding>,
    ) -> Self {
        lease.detach();
        let mut table = queues.table(&lease.state().key).lock();
        for nonce in nonces(&*lease) {
            table.detached.insert(nonce, Arc::downgrade(&lease));
        }
        drop(table);
        Self {
            lease,
            token,
            queues,
            holding: Mutex::new(holding),
        }
    }

    /// Identifies it to every engine of the topology.
    pub fn reference(&self) -> LeaseRef {
        let state = self.lease.state();
        let now = self.queues.now();
        LeaseRef {
            key: state.key.clone(),
            nonce: state.nonce,
            replicas: self.lease.replica_nonces(),
            token: self.token,
            tokens: self.tokens(),
            mode: state.mode(),
            label: state.terms.label.clone(),
            lease: state.terms.lease,
            hold_for: state.ends().map(|ends| ends.since(now)),
        }
    }

    /// The acquisition.
    pub fn nonce(&self) -> Nonce {
        self.lease.state().nonce
    }

    /// The fencing token.
    pub fn token(&self) -> Token {
        self.token
    }

    /// How many fencing tokens are the holder's: [`token`](Self::token) and those that follow it. It may hand the lock on among
    /// its own tasks, and give each the next one.
    pub fn tokens(&self) -> u32 {
        self.lease.state().tokens_granted()
    }

    /// The time until which the lock is certainly held, on the engine's
    /// [`clock`](super::super::Engine::clock).
    pub fn deadline(&self) -> Instant {
        self.lease.state().deadline()
    }

    /// How long the lock is certainly held from now on; zero once it is not.
    pub fn remaining(&self) -> Duration {
        match self.is_held() {
            true => self.deadline().since(self.queues.now()),
            false => Duration::ZERO,
        }
    }

    /// Whether the lock is certainly held now.
    pub fn is_held(&self) -> bool {
        self.lease.state().is_held(self.queues.now())
    }

    /// Whether another process has waited for the lock.
    pub fn is_contended(&self) -> bool {
        self.lease.state().is_contended()
    }

    /// Renews the lock at its shard, and waits for the answer. It holds for at least eleven twelfths of
    /// the lease then, or until the end of a fixed hold.
    ///
    /// # Errors
    ///
    /// [`LockLost`]: it is not certainly held any more.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect on the renewal.
    pub async fn renew(&self) -> Result<(), LockLost> {
        let lately = self.lease.state().terms.lease / LATELY;
        self.renewed_since(self.queues.now() - lately).await
    }

    /// Makes a writer of a read-write lock a reader, as [`Guard::downgrade`] does, and waits for the shard's answer. A
    /// repeat has no effect, nor has it another kind of holder.
    ///
    /// # Errors
    ///
    /// [`LockLost`]: it is not certainly held any more.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect on the change.
    pub async fn downgrade(&self) -> Result<(), LockLost> {
        self.queues.downgrade(self.lease.state());
        self.renewed_since(self.queues.now()).await
    }

    /// Waits for a renewal that leaves at `since` or later.
    async fn renewed_since(&self, since: Instant) -> Result<(), LockLost> {
        let state = self.lease.state();
        state.want_renewal(since);
        if state.is_to_be_renewed() {
            self.lease.clone().renew();
        }
        loop {
            let changed = state.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self.is_held() {
                return Err(LockLost);
            }
            if state.is_final() || state.is_renewed_since(since) {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(&*self.queues.clock, self.deadline()) => {}
            }
        }
    }

    /// Waits until the lock is not certainly held any more.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn lost(&self) {
        self.until(|| !self.is_held()).await;
    }

    /// Waits until another process waits for the lock, or until it is not certainly held any more.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn contended(&self) {
        self.until(|| self.is_contended() || !self.is_held()).await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        let state = self.lease.state();
        loop {
            let changed = state.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if is_so() {
                return;
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(&*self.queues.clock, self.deadline()) => {}
            }
        }
    }

    /// Releases the lock, and returns whether it was held here until now.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock in the background.
    pub async fn release(&self) -> ReleaseAnswer {
        let held = self.end_holding();
        match self.lease.clone().release(false, held) {
            Some(releasing) => releasing.await,
            None => ReleaseAnswer::Lost,
        }
    }
}

impl DetachedLease {
    /// Counts the hold, once. Returns whether the lock is held.
    fn end_holding(&self) -> bool {
        let (now, state) = (self.queues.now(), self.lease.state());
        let held = state.is_held(now);
        let end = match held {
            true => End::Released,
            false if state.has_failed_renewal() || now < state.deadline() => End::Lost,
            false => End::Left,
        };
        if let Some(holding) = self.holding.lock().take() {
            holding.end_as(now, end);
        }
        held
    }
}

impl Guard {
    /// Gives the lock to a holder outside of this process. Other readers lose a lease that they have together with this
    /// guard; an engine that hands nothing on has none of these. Waiters of this process request it anew;
    /// other guards of the same owner do not release it.
    pub fn detach(self) -> DetachedLease {
        let (grant, queues, holding) = self.take_apart();
        let lease = DetachedLease::new(grant.shared(), grant.token, queues.clone(), holding);
        queues.over(grant.lease());
        lease
    }
}

impl Drop for DetachedLease {
    fn drop(&mut self) {
        self.end_holding();
        let state = self.lease.state();
        let mut table = self.queues.table(&state.key).lock();
        // Another value may stand for the same lock.
        let of =
            |lease: &Weak<dyn Lease>| std::ptr::addr_eq(lease.as_ptr(), Arc::as_ptr(&self.lease));
        for nonce in nonces(&*self.lease) {
            if table.detached.get(&nonce).is_some_and(of) {
                table.detached.remove(&nonce);
            }
        }
        drop(table);
        self.lease.clone().leave();
    }
}

/// All that messages of shards may name `lease` by.
fn nonces(lease: &dyn Lease) -> impl Iterator<Item = Nonce> {
    [lease.state().nonce]
        .into_iter()
        .chain(lease.replica_nonces())
}

impl fmt::Debug for DetachedLease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, token) = (&self.lease.state().key, self.token);
        write!(formatter, "DetachedLease({key:?}, token {token})")
    }
}
