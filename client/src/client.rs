//! The entry point: ask for a lock, get a guard.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use ringfence_coordinator::{
    engine::{
        AccountNames, AcquireError, DetachedLease, Engine, EngineMetrics, LeaseRef, Locks,
        ReleaseAnswer, ShardStatus,
    },
    name::{LockKey, NameError, Namespace},
    shard::{LockMode, memory::Faults},
    topology::Topology,
};
use ringfence_ring::ShardId;

use crate::{Builder, Key, Lock, Ring, RwLock, Semaphore, builder::Grounds, latch::Latches};

/// How long [`Client::close`] waits for the releases of dropped guards.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Gives access to locks. Cheap to clone; clones share everything.
///
/// On Redis, dropping the last handle (clients, their locks and guards) sends the unanswered releases from
/// a thread, and blocks for that: a few milliseconds, at most 250. So does the end of the runtime.
/// A process that returns from `main`, fails or panics leaves no lock behind. A process that calls
/// [`std::process::exit`], or is killed, leaves its locks until their leases end.
#[derive(Clone)]
pub struct Client {
    pub(crate) engine: Engine,
    pub(crate) grounds: Grounds,
    pub(crate) warnings: Vec<String>,
    pub(crate) latches: Latches,
    /// The coordinators, if it reaches no shard.
    #[cfg(feature = "service")]
    pub(crate) reach: Option<Arc<crate::service::Reach>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topology = self.topology();
        formatter
            .debug_struct("Client")
            .field("topology", &topology.id)
            .field(
                "shards",
                &topology
                    .shards
                    .keys()
                    .map(|name| name.0.as_str())
                    .collect::<Vec<_>>(),
            )
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Configures where the shards are, and starts a client.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The lock called `key`: text, bytes, an integer, or a tuple of these (see [`Key`]).
    ///
    /// Nothing is sent until it is [acquired](Lock::acquire).
    pub fn lock(&self, key: impl Into<Key>) -> Lock {
        Lock::new(&self.engine, key.into(), LockMode::Exclusive)
    }

    /// The semaphore called `key`, of which at most `permits` permits are held at a time.
    ///
    /// Nothing is sent until permits are acquired.
    pub fn semaphore(&self, key: impl Into<Key>, permits: u32) -> Semaphore {
        Semaphore::new(&self.engine, key.into(), permits)
    }

    /// The read-write lock called `key`.
    ///
    /// Nothing is sent until one side of it is acquired.
    pub fn rw_lock(&self, key: impl Into<Key>) -> RwLock {
        RwLock::new(&self.engine, key.into())
    }

    /// The shard that owns `key` of `namespace` now.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Name`].
    pub fn shard_of(
        &self,
        namespace: &Namespace,
        key: impl AsRef<[u8]>,
    ) -> Result<ShardId, AcquireError> {
        self.engine.shard_of(namespace, key.as_ref())
    }

    /// `key` of `namespace`, with its slot.
    ///
    /// # Errors
    ///
    /// [`NameError`].
    pub fn key(&self, namespace: &str, key: &[u8]) -> Result<LockKey, NameError> {
        self.engine.key(&Namespace::new(namespace)?, key)
    }

    /// Takes up a held lock, which another client may have been granted, and renews it: see
    /// [`Guard::detach`](crate::Guard::detach). None: it is not held any more. While the shard is in
    /// doubt, it is asked again for `wait`.
    ///
    /// # Errors
    ///
    /// [`AcquireError`]: it is not known whether the lock is held. In the recovery period of its
    /// shard, and while its slot migrates, only a client that holds it can renew it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the lock renewed or not.
    pub async fn resume(
        &self,
        lease: &LeaseRef,
        wait: Duration,
    ) -> Result<Option<DetachedLease>, AcquireError> {
        self.engine.resume(lease, wait).await
    }

    /// Releases a lock that another client may have been granted, and returns whether it was held
    /// until now.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TooManyHeld`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock in the background.
    pub async fn release(&self, lease: &LeaseRef) -> Result<ReleaseAnswer, AcquireError> {
        self.engine.release(lease).await
    }

    /// The topology in use.
    pub fn topology(&self) -> Arc<Topology> {
        self.engine.topology()
    }

    /// The ring, to be resized.
    pub fn ring(&self) -> Ring<'_> {
        Ring(self)
    }

    /// The state of every shard, requested now.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn shards(&self) -> BTreeMap<ShardId, ShardStatus> {
        self.engine.shards().await
    }

    /// The held locks, of `namespace` or of all namespaces, page by page, with their holders and
    /// the number of waiters.
    ///
    /// # Errors
    ///
    /// [`NameError::Namespace`].
    pub fn locks(&self, namespace: Option<&str>) -> Result<Locks, NameError> {
        let namespace = namespace.map(Namespace::new).transpose()?;
        Ok(self.engine.locks(namespace))
    }

    /// The names of the accounts of all namespaces, page by page. A client of coordinators finds none.
    pub fn accounts(&self) -> AccountNames {
        self.engine.accounts(None)
    }

    /// Warnings for a person, from when the client was built.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Fault injection for embedded shards, for tests and simulation. Empty on Redis.
    pub fn faults(&self) -> BTreeMap<ShardId, Faults> {
        match &self.grounds {
            Grounds::Embedded(shards) => shards.faults(),
            Grounds::Servers(_) => BTreeMap::new(),
        }
    }

    /// The numbers of this client: acquisitions, holds, renewals, per shard. With the feature
    /// `metrics`, `register_metrics` gives them to Prometheus.
    pub fn metrics(&self) -> EngineMetrics {
        self.engine.metrics()
    }

    /// Sends the releases of dropped guards, waits for them for up to 5 s, and ends every task.
    /// Held guards are not released here, but when they and the last handle are dropped.
    ///
    /// Returns how many releases could not be sent; their locks expire.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the client open.
    pub async fn close(&self) -> usize {
        self.engine.close(CLOSE_GRACE).await
    }
}
