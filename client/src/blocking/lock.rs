//! Locks of callers without tokio.

use std::{sync::Arc, time::Duration};

use ringfence_coordinator::{
    engine::{AcquireError, Owner, Waiting},
    shard::{Holder, Inspection},
};

use super::{Guard, MultiGuard, reactor::Reactor};
use crate::{Key, MultiLockError, Preference};

/// The methods that both kinds of locks have.
macro_rules! lock {
    ($(#[$documentation:meta])* $lock:ident, $guard:ident, $error:ident) => {
        $(#[$documentation])*
        #[derive(Clone, Debug)]
        #[must_use = "nothing is asked for until it is acquired"]
        pub struct $lock {
            // Dropped first: it may be the last handle of its client.
            lock: crate::$lock,
            reactor: Arc<Reactor>,
        }

        impl $lock {
            pub(super) fn new(lock: crate::$lock, reactor: &Arc<Reactor>) -> Self {
                let reactor = reactor.clone();
                Self { lock, reactor }
            }

            /// Uses `namespace` instead of `default`. An invalid name is reported by the acquisition.
            pub fn namespace(mut self, namespace: &str) -> Self {
                self.lock = self.lock.namespace(namespace);
                self
            }

            /// Sets the lease, instead of the topology's longest.
            pub fn lease(mut self, length: Duration) -> Self {
                self.lock = self.lock.lease(length);
                self
            }

            /// Keeps it for at least `length` once it is acquired, also if its guard is released earlier.
            pub fn hold_at_least(mut self, length: Duration) -> Self {
                self.lock = self.lock.hold_at_least(length);
                self
            }

            /// Limits the wait to `length`; default: wait indefinitely.
            pub fn wait(mut self, length: Duration) -> Self {
                self.lock = self.lock.wait(length);
                self
            }

            /// Acquires for `owner`, which may acquire again a lock that it holds.
            pub fn owner(mut self, owner: &Owner) -> Self {
                self.lock = self.lock.owner(owner);
                self
            }

            /// Sets the name shown to others, instead of the client's label.
            pub fn label(mut self, label: &str) -> Self {
                self.lock = self.lock.label(label);
                self
            }

            /// Reports the reason to wait to `observe`, on the client's thread: it must neither block nor panic.
            pub fn on_wait(mut self, observe: impl Fn(Waiting) + Send + Sync + 'static) -> Self {
                self.lock = self.lock.on_wait(observe);
                self
            }

            /// Acquires it, and waits for it if necessary.
            ///
            /// # Errors
            ///
            /// Those of the asynchronous call.
            pub fn acquire(&self) -> Result<$guard, $error> {
                let guard = self.reactor.wait(self.lock.acquire())?;
                Ok($guard::new(guard, &self.reactor))
            }

            /// Acquires it now, or fails.
            ///
            /// # Errors
            ///
            /// Those of the asynchronous call.
            pub fn try_acquire(&self) -> Result<$guard, $error> {
                let guard = self.reactor.wait(self.lock.try_acquire())?;
                Ok($guard::new(guard, &self.reactor))
            }
        }
    };
}

lock! {
    /// One lock: [`Lock`](crate::Lock). Made by [`Client::lock`](super::Client::lock).
    Lock, Guard, AcquireError
}

lock! {
    /// A set of locks: [`MultiLock`](crate::MultiLock). Made by [`Client::multi_lock`](super::Client::multi_lock).
    MultiLock, MultiGuard, MultiLockError
}

impl Lock {
    /// Limits the hold to `length`, counted from the request.
    pub fn hold_for(mut self, length: Duration) -> Self {
        self.lock = self.lock.hold_for(length);
        self
    }

    /// The holder of the lock and its waiters, as its shard knows them.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`], [`AcquireError::Shard`].
    pub fn inspect(&self) -> Result<Inspection, AcquireError> {
        self.reactor.wait(self.lock.inspect())
    }

    /// Takes the lock from all of its holders, and returns them by their tokens. The reason is logged.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`], [`AcquireError::Shard`].
    pub fn force_release(&self, reason: &str) -> Result<Vec<Holder>, AcquireError> {
        self.reactor.wait(self.lock.force_release(reason))
    }
}

impl MultiLock {
    /// Adds `key` of another namespace.
    pub fn with(mut self, namespace: &str, key: impl Into<Key>) -> Self {
        self.lock = self.lock.with(namespace, key);
        self
    }

    /// Takes the readers' side of each key: [`MultiLock::read`](crate::MultiLock::read).
    pub fn read(mut self) -> Self {
        self.lock = self.lock.read();
        self
    }

    /// Takes the writers' side of each key: [`MultiLock::write`](crate::MultiLock::write).
    pub fn write(mut self) -> Self {
        self.lock = self.lock.write();
        self
    }

    /// Lets one side go before other waiters: [`MultiLock::prefer`](crate::MultiLock::prefer).
    pub fn prefer(mut self, side: Preference) -> Self {
        self.lock = self.lock.prefer(side);
        self
    }

    /// Takes `count` permits of each key: [`MultiLock::permits`](crate::MultiLock::permits).
    pub fn permits(mut self, count: u32, capacity: u32) -> Self {
        self.lock = self.lock.permits(count, capacity);
        self
    }
}
