//! Where a caller starts: ask for a lock, get a guard.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ringfence_coordinator::{
    engine::{AcquireError, Engine, Locks, ShardStatus},
    name::{NameError, Namespace},
    shard::memory::Faults,
    topology::Topology,
};
use ringfence_ring::ShardId;

use crate::{Builder, Lock, Ring, builder::Grounds};

/// How long [`Client::close`] waits for the releases of dropped guards.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Hands out locks. Cheap to clone; clones share everything.
///
/// On Redis, dropping the last handle (clients, and guards of theirs) sends the releases that are not answered yet, from
/// a thread of its own, and blocks for that: a few milliseconds, and 250 at most. So does the end of the runtime. A process
/// that returns from `main`, fails or panics leaves no lock behind; one that calls [`std::process::exit`], or is killed,
/// leaves its locks until their leases end.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) engine: Engine,
    pub(crate) grounds: Grounds,
    pub(crate) warnings: Vec<String>,
}

impl Client {
    /// Says where the shards are, and starts a client.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The lock called `key`: 1 to 512 bytes, any of them.
    ///
    /// Nothing is sent until it is [acquired](Lock::acquire).
    pub fn lock<'a>(&'a self, key: &'a (impl AsRef<[u8]> + ?Sized)) -> Lock<'a> {
        Lock::new(&self.engine, key.as_ref())
    }

    /// Which shard `key` of `namespace` is on now.
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

    /// The topology in use.
    pub fn topology(&self) -> Arc<Topology> {
        self.engine.topology()
    }

    /// The ring, to be resized.
    pub fn ring(&self) -> Ring<'_> {
        Ring(self)
    }

    /// Every shard's state, asked for now.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn shards(&self) -> BTreeMap<ShardId, ShardStatus> {
        self.engine.shards().await
    }

    /// The locks that are held, of `namespace` or of all, page by page: by whom, and how many wait.
    ///
    /// # Errors
    ///
    /// [`NameError::Namespace`].
    pub fn locks(&self, namespace: Option<&str>) -> Result<Locks, NameError> {
        let namespace = namespace.map(Namespace::new).transpose()?;
        Ok(self.engine.locks(namespace))
    }

    /// What was found worth a person's look when the client was built.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What can be done to the embedded shards, for tests and simulation. Empty on Redis.
    pub fn faults(&self) -> BTreeMap<ShardId, Faults> {
        match &self.grounds {
            Grounds::Embedded(shards) => shards.faults(),
            Grounds::Redis(_) => BTreeMap::new(),
        }
    }

    /// Sends the releases of dropped guards, waits for them for up to 5 s, and ends every task.
    /// Guards still held are not released: that is done when they are dropped, and the last handle is.
    ///
    /// Answers how many releases could not be sent; their locks expire.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the client open.
    pub async fn close(&self) -> usize {
        self.engine.close(CLOSE_GRACE).await
    }
}
