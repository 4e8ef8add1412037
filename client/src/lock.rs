//! One lock, and the terms on which it is wanted.

use std::time::Duration;

use ringfence_coordinator::{
    engine::{
        Acquire, AcquireError, Engine, Guard, Owner, ReplicaInspection, Wait, WaitObserver, Waiting,
    },
    name::{Label, Namespace},
    shard::{Holder, Inspection, LockMode},
};

use crate::{Key, terms::Terms};

/// One lock, and the terms on which it is wanted. Made by [`Client::lock`](crate::Client::lock).
///
/// It may be kept, cloned, and used from any task: it is a handle like the client, and borrows
/// nothing.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked for until it is acquired"]
pub struct Lock {
    engine: Engine,
    key: Key,
    mode: LockMode,
    preferred: bool,
    hold_for: Option<Duration>,
    tokens: u32,
    terms: Terms,
}

impl Lock {
    /// A lock of which each acquisition takes the share `mode`.
    pub(crate) fn new(engine: &Engine, key: Key, mode: LockMode) -> Self {
        Self {
            engine: engine.clone(),
            key,
            mode,
            preferred: false,
            hold_for: None,
            tokens: 1,
            terms: Terms::default(),
        }
    }

    /// Goes before waiters that are not preferred, or not.
    pub(crate) fn preferred(mut self, preferred: bool) -> Self {
        self.preferred = preferred;
        self
    }

    /// Uses `namespace` instead of `default`. An invalid name is reported by the acquisition.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.terms.namespace = Some(Namespace::new(namespace));
        self
    }

    /// Sets the lease, instead of the topology's longest (30 s by default): the time until the lock
    /// is free again if this process dies. The lease is renewed every third of its length.
    pub fn lease(mut self, length: Duration) -> Self {
        self.terms.lease = Some(length);
        self
    }

    /// Limits the hold to `length`, counted from the request: at least 100 ms, at most ten years. The lock is renewed
    /// until then, not after.
    pub fn hold_for(mut self, length: Duration) -> Self {
        self.hold_for = Some(length);
        self
    }

    /// Keeps the lock for at least `length` once it is acquired, also if its guard is released earlier:
    /// [`Guard::hold_at_least`].
    pub fn hold_at_least(mut self, length: Duration) -> Self {
        self.terms.hold_at_least = Some(length);
        self
    }

    /// Sets aside `count` fencing tokens, at most 8,192, for a holder outside of this process that hands the lock on among its
    /// own tasks: for [`Guard::detach`], with [`handoff`](crate::Builder::handoff) off. Default: 1.
    pub fn tokens(mut self, count: u32) -> Self {
        self.tokens = count;
        self
    }

    /// Limits the wait to `length`; default: wait indefinitely.
    pub fn wait(mut self, length: Duration) -> Self {
        self.terms.wait = Some(length);
        self
    }

    /// Acquires for `owner`, which may acquire again a lock that it holds: on the terms of the first acquisition. As a reader or writer of a read-write lock it enters
    /// again the side that it has, and as a writer also the readers' side; a reader that asks for the writer's side is
    /// refused: [`AcquireError::Upgrade`]. Permits of a semaphore have no owner: each acquisition takes its own.
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.terms.owner = Some(owner.clone());
        self
    }

    /// Sets the name shown to others, instead of the client's label.
    pub fn label(mut self, label: &str) -> Self {
        self.terms.label = Some(Label::new(label));
        self
    }

    /// Reports the reason to wait to `observe`: once if another task of this process comes first,
    /// and after every refusal that is waited out, about once per second. [`Waiting::is_same_as`]
    /// tells a new reason from an old one. `observe` runs in one of the engine's tasks, and must
    /// neither block nor panic.
    pub fn on_wait(mut self, observe: impl Fn(Waiting) + Send + Sync + 'static) -> Self {
        self.terms.observer = Some(WaitObserver::new(observe));
        self
    }

    /// Acquires the lock, and waits for it if necessary.
    ///
    /// While the lock is held, its lease is renewed in the background. At most one guard of a key
    /// is granted at a time; of a semaphore, or of the readers of a read-write lock, as many as there is room for. A process that was paused may still *believe* that it holds one: pass
    /// [`Guard::token`] to the resource, and have it refuse a token smaller than one it has seen.
    ///
    /// Name the guard, as `_guard` at least: `let _ = lock.acquire().await?` drops it, which releases the lock, at once.
    ///
    /// # Errors
    ///
    /// [`AcquireError`]: tells whether a repeat may succeed, and whether the shard may have granted
    /// the lock all the same. The call waits out every refusal that may pass by itself; then the
    /// wait ends with [`AcquireError::TimedOut`], which gives the reason.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases, in the background, a lock that it may have been granted.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        self.take(self.terms.wait.map_or(Wait::Forever, Wait::For))
            .await
    }

    /// Acquires the lock now, or fails.
    ///
    /// # Errors
    ///
    /// [`AcquireError`]; [`AcquireError::Held`] if another holder has the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases, in the background, a lock that it may have been granted.
    pub async fn try_acquire(&self) -> Result<Guard, AcquireError> {
        self.take(Wait::No).await
    }

    /// The holder of the lock and its waiters, as its shard knows them.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`], [`AcquireError::Shard`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn inspect(&self) -> Result<Inspection, AcquireError> {
        let namespace = self.terms.namespace()?;
        self.engine.inspect(namespace, self.key.as_bytes()).await
    }

    /// Each replica of the lock, as its shard knows it. In a namespace without replicas, a lock is its only one.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn inspect_replicas(&self) -> Result<Vec<ReplicaInspection>, AcquireError> {
        let namespace = self.terms.namespace()?;
        let key = self.key.as_bytes();
        self.engine.inspect_replicas(namespace, key).await
    }

    /// Takes the lock from all of its holders, and returns them by their tokens: none if it was free. The reason is logged.
    ///
    /// The former holders learn of it with their next renewals. A resource that checks tokens refuses
    /// a former holder as soon as the next holder has presented its token.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`], [`AcquireError::Shard`]: some holders may have lost the lock all the same; the log names them.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the lock released or not.
    pub async fn force_release(&self, reason: &str) -> Result<Vec<Holder>, AcquireError> {
        let namespace = self.terms.namespace()?;
        let key = self.key.as_bytes();
        self.engine.force_release(namespace, key, reason).await
    }

    async fn take(&self, wait: Wait) -> Result<Guard, AcquireError> {
        let namespace = self.terms.namespace()?;
        let ask = Acquire {
            hold_for: self.hold_for,
            preferred: self.preferred,
            tokens: self.tokens,
            ..self.terms.acquire(namespace, self.key.as_bytes(), wait)
        };
        let guard = self.engine.acquire_share(ask, self.mode).await?;
        if let Some(length) = self.terms.hold_at_least {
            guard.hold_at_least(length);
        }
        Ok(guard)
    }
}
