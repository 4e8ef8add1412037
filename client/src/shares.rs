//! Semaphores and read-write locks: several holders of one key.

use ringfence_coordinator::{engine::Engine, shard::LockMode};

use crate::{Key, Lock};

/// A number of permits, each of which has one holder at a time. Made by
/// [`Client::semaphore`](crate::Client::semaphore).
///
/// Waiters are served first come, first served: one that wants few permits does not go before one that wants many. Each
/// guard has its own lease: if a process dies, its permits are free again when their leases end, and no others.
///
/// The number of permits is that of each request. While processes use different numbers, each keeps to its own: a
/// smaller one takes effect as permits are given back.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked for until permits are acquired"]
pub struct Semaphore {
    engine: Engine,
    key: Key,
    capacity: u32,
}

/// Many readers, or one writer. Made by [`Client::rw_lock`](crate::Client::rw_lock).
///
/// Waiters are served first come, first served: a reader does not go before a writer that waits, so writers do not
/// starve. [`prefer`](Self::prefer) changes that. A writer's token is greater than the tokens of all earlier readers and
/// writers.
///
/// Within a process, on equal terms, readers have one lease together, until the process learns that another one waits: within
/// the time of a message. Writers hand theirs on to each other, as holders of a [`Lock`] do; once another process or a reader
/// waits, for as often and as long as [`Builder::handoff`](crate::Builder::handoff) allows, also before preferred requests.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked for until one side is acquired"]
pub struct RwLock {
    engine: Engine,
    key: Key,
    prefers: Option<Preference>,
}

/// A side of a read-write lock whose requests go before other waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// Readers come in while readers hold the lock, though a writer waits, and go before it when a writer releases the lock. As
    /// long as readers keep coming, no writer gets the lock.
    Readers,
    /// A writer goes before readers that wait. As long as writers keep coming, no reader gets the lock.
    Writers,
}

impl Preference {
    /// Whether it prefers requests of this `mode`.
    pub(crate) fn is_for(self, mode: LockMode) -> bool {
        match self {
            Self::Readers => mode == LockMode::Read,
            Self::Writers => mode == LockMode::Write,
        }
    }
}

impl Semaphore {
    pub(crate) fn new(engine: &Engine, key: Key, capacity: u32) -> Self {
        Self {
            engine: engine.clone(),
            key,
            capacity,
        }
    }

    /// `count` permits, all or none of them, and the terms on which they are wanted. None, or more than there are, is
    /// reported by the acquisition: [`AcquireError::Permits`](crate::AcquireError::Permits).
    pub fn permits(&self, count: u32) -> Lock {
        let capacity = self.capacity;
        let mode = LockMode::Permits { count, capacity };
        Lock::new(&self.engine, self.key.clone(), mode)
    }

    /// One permit.
    pub fn permit(&self) -> Lock {
        self.permits(1)
    }
}

impl RwLock {
    pub(crate) fn new(engine: &Engine, key: Key) -> Self {
        Self {
            engine: engine.clone(),
            key,
            prefers: None,
        }
    }

    /// Lets the requests of one side go before all waiters that are not preferred, instead of behind them. Preferred requests are
    /// served first come, first served among themselves.
    ///
    /// This holds for each request that is made by this handle, and no shard stores it. Let all users of a key prefer the
    /// same side. If one process prefers readers and another one writers, its readers and the other's writers are served in
    /// the order in which they come, and all others wait behind them.
    pub fn prefer(mut self, side: Preference) -> Self {
        self.prefers = Some(side);
        self
    }

    /// The side of the readers, who hold the lock together.
    pub fn read(&self) -> Lock {
        self.side(LockMode::Read)
    }

    /// The side of the writers, who hold it alone. [`Guard::downgrade`](crate::Guard::downgrade) makes a writer a reader.
    pub fn write(&self) -> Lock {
        self.side(LockMode::Write)
    }

    fn side(&self, mode: LockMode) -> Lock {
        let lock = Lock::new(&self.engine, self.key.clone(), mode);
        lock.preferred(self.prefers.is_some_and(|side| side.is_for(mode)))
    }
}
