//! A set of locks, all or nothing, over keys on any shards.
//!
//! One try of all keys at once, which joins no queue. If a key is held, the locks before it in the
//! order (slot, namespace, key) are kept, the others are released, and the rest is acquired one
//! after the other. So a caller that waits for a key holds only keys before it: no set of callers
//! waits in a circle.

mod error;
mod guard;
mod set;

use std::{iter, time::Duration};

use futures_util::future::{join_all, select_all};
use ringfence_coordinator::{
    engine::{Acquire, AcquireError, Engine, Guard, Owner, Wait, WaitObserver, Waiting},
    name::{Label, LockKey, NameError, Namespace},
    shard::LockMode,
};
use tokio::time::{Instant, timeout_at};

pub use error::MultiLockError;
pub use guard::MultiGuard;
use set::KeySet;

use crate::{Client, Key, Preference, terms::Terms};

/// A set of locks, and the terms on which they are wanted. Made by [`Client::multi_lock`].
#[derive(Clone, Debug)]
#[must_use = "nothing is asked for until it is acquired"]
pub struct MultiLock {
    engine: Engine,
    /// With the namespace, unless it is that of the set.
    keys: Vec<(Option<Result<Namespace, NameError>>, Key)>,
    mode: LockMode,
    prefers: Option<Preference>,
    terms: Terms,
}

impl Client {
    /// The locks called `keys`, to be held together or not at all. A key may be given more than
    /// once. At most [64](crate::limits::MULTI_LOCK_KEYS_MAX) different keys.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ringfence_client::Client;
    ///
    /// let client = Client::builder().embedded(3).build().await?;
    /// let both = client.multi_lock(["account/1", "account/2"]).acquire().await?;
    /// let [from, to] = both.tokens()[..] else { unreachable!("two keys") };
    /// both.run_while_held(async { println!("transfer, with tokens {from} and {to}") }).await?;
    /// both.release().await;
    /// # client.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_lock(&self, keys: impl IntoIterator<Item = impl Into<Key>>) -> MultiLock {
        MultiLock {
            engine: self.engine.clone(),
            keys: keys.into_iter().map(|key| (None, key.into())).collect(),
            mode: LockMode::Exclusive,
            prefers: None,
            terms: Terms::default(),
        }
    }
}

impl MultiLock {
    /// Uses `namespace` instead of `default`. An invalid name is reported by the acquisition.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.terms.namespace = Some(Namespace::new(namespace));
        self
    }

    /// Adds `key` of another namespace.
    pub fn with(mut self, namespace: &str, key: impl Into<Key>) -> Self {
        self.keys
            .push((Some(Namespace::new(namespace)), key.into()));
        self
    }

    /// Takes the readers' side of each key, as a [read-write lock](crate::RwLock).
    pub fn read(mut self) -> Self {
        self.mode = LockMode::Read;
        self
    }

    /// Takes the writers' side of each key, as a [read-write lock](crate::RwLock).
    pub fn write(mut self) -> Self {
        self.mode = LockMode::Write;
        self
    }

    /// Lets readers, or writers, go before waiters that are not preferred, as [`RwLock::prefer`](crate::RwLock::prefer)
    /// does, at each key. Without effect on locks that are no read-write locks.
    pub fn prefer(mut self, side: Preference) -> Self {
        self.prefers = Some(side);
        self
    }

    /// Takes `count` permits of each key, as a [semaphore](crate::Semaphore) with `capacity` permits.
    pub fn permits(mut self, count: u32, capacity: u32) -> Self {
        self.mode = LockMode::Permits { count, capacity };
        self
    }

    /// Sets the lease of each lock, as [`Lock::lease`](crate::Lock::lease) does.
    pub fn lease(mut self, length: Duration) -> Self {
        self.terms.lease = Some(length);
        self
    }

    /// Keeps the locks for at least `length` once all are acquired, as [`Lock::hold_at_least`](crate::Lock::hold_at_least)
    /// does.
    pub fn hold_at_least(mut self, length: Duration) -> Self {
        self.terms.hold_at_least = Some(length);
        self
    }

    /// Limits the wait for all of them together to `length`; default: wait indefinitely.
    pub fn wait(mut self, length: Duration) -> Self {
        self.terms.wait = Some(length);
        self
    }

    /// Acquires for `owner`, which may acquire again locks that it holds. An owner that waits for a
    /// set while it holds other locks can wait in a circle with another such owner: set a
    /// [`wait`](Self::wait).
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.terms.owner = Some(owner.clone());
        self
    }

    /// Sets the name shown to others, instead of the client's label.
    pub fn label(mut self, label: &str) -> Self {
        self.terms.label = Some(Label::new(label));
        self
    }

    /// Reports the reason to wait, as [`Lock::on_wait`](crate::Lock::on_wait) does, for the key
    /// that is waited for.
    pub fn on_wait(mut self, observe: impl Fn(Waiting) + Send + Sync + 'static) -> Self {
        self.terms.observer = Some(WaitObserver::new(observe));
        self
    }

    /// Acquires all the locks, and waits for them if necessary.
    ///
    /// If all are free, it takes one round trip, to all shards at once, or two for a shard with
    /// several of the keys. While it waits for a key, it holds the keys before it, and so delays
    /// others that want them.
    ///
    /// # Errors
    ///
    /// [`MultiLockError`]: tells whether a repeat may succeed. Nothing of the set stays held. If a
    /// lock that is held already is lost during the wait for another one, the call ends with
    /// [`MultiLockError::Lost`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases, in the background, all locks that it may have been granted.
    pub async fn acquire(&self) -> Result<MultiGuard, MultiLockError> {
        let until = self
            .terms
            .wait
            .and_then(|length| Instant::now().checked_add(length));
        let set = self.set()?;
        let mut held = match set.keys() {
            // The wait is a try as well.
            [_] => Vec::new(),
            _ => self.try_all(&set, until).await,
        };
        while held.len() < set.keys().len() {
            held.push(self.next(&set, &held, until).await?);
        }
        self.guard(set, held)
    }

    /// Acquires all the locks now, or none.
    ///
    /// # Errors
    ///
    /// [`MultiLockError`]; [`MultiLockError::NotAcquired`] with [`AcquireError::Held`] if another
    /// holder has one of them.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases, in the background, all locks that it may have been granted.
    pub async fn try_acquire(&self) -> Result<MultiGuard, MultiLockError> {
        let set = self.set()?;
        let mut held = Vec::new();
        for ((key, _), tried) in iter::zip(set.keys(), self.tries(&set).await) {
            held.push(tried.map_err(|error| not_acquired(key, error))?);
        }
        self.guard(set, held)
    }

    fn guard(&self, set: KeySet, held: Vec<Guard>) -> Result<MultiGuard, MultiLockError> {
        let guard = set.guard(held)?;
        if let Some(length) = self.terms.hold_at_least {
            guard.hold_at_least(length);
        }
        Ok(guard)
    }

    /// Tries all keys at once, and keeps the locks before the first that was refused.
    async fn try_all(&self, set: &KeySet, until: Option<Instant>) -> Vec<Guard> {
        let tries = self.tries(set);
        let tried = match until {
            None => tries.await,
            // Then the wait for the first key tells the reason.
            Some(until) => timeout_at(until, tries).await.unwrap_or_default(),
        };
        // What is behind the first refusal is released here, before the wait.
        tried.into_iter().map_while(Result::ok).collect()
    }

    async fn tries(&self, set: &KeySet) -> Vec<Result<Guard, AcquireError>> {
        let tries = set.keys().iter().map(|key| self.take(key, Wait::No));
        join_all(tries).await
    }

    /// Waits for the next key, while the locks before it are `held`.
    async fn next(
        &self,
        set: &KeySet,
        held: &[Guard],
        until: Option<Instant>,
    ) -> Result<Guard, MultiLockError> {
        let wait = match until {
            None => Wait::Forever,
            Some(until) => Wait::For(until.saturating_duration_since(Instant::now())),
        };
        let key = &set.keys()[held.len()];
        let taken = self.take(key, wait);
        let taken = match held {
            [] => taken.await,
            held => tokio::select! {
                biased;
                ((), index, _) = select_all(held.iter().map(|guard| Box::pin(guard.lost()))) => {
                    let key = set.keys()[index].0.clone();
                    return Err(MultiLockError::Lost { key });
                }
                taken = taken => taken,
            },
        };
        taken.map_err(|error| match (error, self.terms.wait) {
            // The wait of the whole call, not the part that was left for this key.
            (AcquireError::TimedOut { because, .. }, Some(waited)) => {
                not_acquired(&key.0, AcquireError::TimedOut { waited, because })
            }
            (error, _) => not_acquired(&key.0, error),
        })
    }

    async fn take(
        &self,
        (key, namespace): &(LockKey, Namespace),
        wait: Wait,
    ) -> Result<Guard, AcquireError> {
        let ask = Acquire {
            preferred: self.prefers.is_some_and(|side| side.is_for(self.mode)),
            ..self.terms.acquire(namespace, key.key(), wait)
        };
        self.engine.acquire_share(ask, self.mode).await
    }

    fn set(&self) -> Result<KeySet, MultiLockError> {
        let keys = self.keys.iter().map(|(namespace, key)| {
            let namespace = match namespace {
                Some(namespace) => namespace.clone()?,
                None => self.terms.namespace()?.clone(),
            };
            Ok((self.engine.key(&namespace, key.as_bytes())?, namespace))
        });
        KeySet::new(keys.collect::<Result<_, NameError>>()?)
    }
}

fn not_acquired(key: &LockKey, error: AcquireError) -> MultiLockError {
    let key = key.clone();
    MultiLockError::NotAcquired { key, error }
}
