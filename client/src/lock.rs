//! One lock, and how it is wanted.

use std::time::Duration;

use ringfence_coordinator::{
    engine::{Acquire, AcquireError, Engine, Guard, Owner, Wait, WaitObserver, Waiting},
    name::{Label, NameError, Namespace},
    shard::{Holder, Inspection},
};

/// One lock, and how it is wanted. Made by [`Client::lock`](crate::Client::lock).
#[derive(Clone, Debug)]
#[must_use = "nothing is asked for until it is acquired"]
pub struct Lock<'a> {
    engine: &'a Engine,
    key: &'a [u8],
    /// None if it is not named.
    namespace: Option<Result<Namespace, NameError>>,
    lease: Option<Duration>,
    hold_for: Option<Duration>,
    wait: Option<Duration>,
    owner: Option<Owner>,
    label: Option<Label>,
    observer: Option<WaitObserver>,
}

impl<'a> Lock<'a> {
    pub(crate) fn new(engine: &'a Engine, key: &'a [u8]) -> Self {
        Self {
            engine,
            key,
            namespace: None,
            lease: None,
            hold_for: None,
            wait: None,
            owner: None,
            label: None,
            observer: None,
        }
    }

    /// In `namespace` instead of `default`. A name that is none is reported when acquiring.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(Namespace::new(namespace));
        self
    }

    /// With a lease of `length`, instead of the topology's longest (30 s): how soon the lock is
    /// free again if this process dies. It is renewed every third of it.
    pub fn lease(mut self, length: Duration) -> Self {
        self.lease = Some(length);
        self
    }

    /// For `length` at most, counted from when it was asked for; renewed until then, not after.
    pub fn hold_for(mut self, length: Duration) -> Self {
        self.hold_for = Some(length);
        self
    }

    /// Waiting for `length` at most, instead of for ever.
    pub fn wait(mut self, length: Duration) -> Self {
        self.wait = Some(length);
        self
    }

    /// For `owner`, who may enter again what it holds.
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.owner = Some(owner.clone());
        self
    }

    /// Shown to others as `label`, instead of as the client is.
    pub fn label(mut self, label: &str) -> Self {
        self.label = Some(Label::new(label));
        self
    }

    /// Telling `observe` why, while it waits: once it is behind another task of this process, and after every refusal
    /// that is waited out, about once a second; [`Waiting::is_same_as`] tells a new reason from an old one. It is called in
    /// one of the engine's tasks, and must neither block nor panic.
    pub fn on_wait(mut self, observe: impl Fn(Waiting) + Send + Sync + 'static) -> Self {
        self.observer = Some(WaitObserver::new(observe));
        self
    }

    /// Takes the lock, waiting for it if need be.
    ///
    /// While it is held its lease is renewed in the background. At most one guard of a key is
    /// granted at a time; a process that was paused may still *believe* it holds one: pass
    /// [`Guard::token`] to the resource, and have it refuse a smaller one than it has seen.
    ///
    /// # Errors
    ///
    /// [`AcquireError`]: says whether to try again, and whether the shard may have granted it all
    /// the same. While waiting, everything that may pass by itself is waited for; the wait ends
    /// with [`AcquireError::TimedOut`], which says why.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives back, in the background, whatever it may have been granted.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        self.take(self.wait.map_or(Wait::Forever, Wait::For)).await
    }

    /// Takes the lock now or not at all.
    ///
    /// # Errors
    ///
    /// [`AcquireError`]; [`AcquireError::Held`] if somebody else has it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives back, in the background, whatever it may have been granted.
    pub async fn try_acquire(&self) -> Result<Guard, AcquireError> {
        self.take(Wait::No).await
    }

    /// Who holds the lock, if anybody, and who waits for it, as its shard knows.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`], [`AcquireError::Shard`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn inspect(&self) -> Result<Inspection, AcquireError> {
        self.engine.inspect(self.its_namespace()?, self.key).await
    }

    /// Takes the lock from whoever holds it, and says whom. The reason is logged.
    ///
    /// The former holder learns of it with its next renewal; a resource that checks tokens refuses
    /// it as soon as the next holder has been there.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`], [`AcquireError::Shard`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the lock released or not.
    pub async fn force_release(&self, reason: &str) -> Result<Option<Holder>, AcquireError> {
        let namespace = self.its_namespace()?;
        self.engine.force_release(namespace, self.key, reason).await
    }

    async fn take(&self, wait: Wait) -> Result<Guard, AcquireError> {
        let ask = Acquire {
            namespace: self.its_namespace()?,
            key: self.key,
            lease: self.lease,
            hold_for: self.hold_for,
            wait,
            owner: self.owner.as_ref(),
            label: self.label.clone(),
            observer: self.observer.as_ref(),
        };
        self.engine.acquire(ask).await
    }

    fn its_namespace(&self) -> Result<&Namespace, NameError> {
        match &self.namespace {
            None => Ok(Namespace::unnamed()),
            Some(namespace) => namespace.as_ref().map_err(NameError::clone),
        }
    }
}
