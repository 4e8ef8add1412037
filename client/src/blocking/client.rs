//! The entry point of callers without tokio.

use std::{future::Future, sync::Arc};

use ringfence_coordinator::name::NameError;

use super::{Counters, Election, Latch, Lock, MultiLock, RwLock, Semaphore, reactor::Reactor};
use crate::{BuildError, Builder, Key, LatchError};

/// Gives access to locks, for callers without tokio. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Client {
    // Dropped first: the runtime outlives its client.
    client: crate::Client,
    reactor: Arc<Reactor>,
}

impl Client {
    /// Configures where the shards are. [`build`](Self::build) starts the client.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a client, and its thread: [`Builder::build`].
    ///
    /// # Errors
    ///
    /// [`BuildError`]; [`BuildError::Thread`] if the thread cannot be started.
    pub fn build(builder: Builder) -> Result<Self, BuildError> {
        let reactor = Reactor::start().map_err(|error| BuildError::Thread(Arc::new(error)))?;
        let client = reactor.wait(builder.build())?;
        Ok(Self {
            client,
            reactor: Arc::new(reactor),
        })
    }

    /// The lock called `key`: [`Client::lock`](crate::Client::lock).
    pub fn lock(&self, key: impl Into<Key>) -> Lock {
        Lock::new(self.client.lock(key), &self.reactor)
    }

    /// The semaphore called `key`: [`Client::semaphore`](crate::Client::semaphore).
    pub fn semaphore(&self, key: impl Into<Key>, permits: u32) -> Semaphore {
        Semaphore::new(self.client.semaphore(key, permits), &self.reactor)
    }

    /// The read-write lock called `key`: [`Client::rw_lock`](crate::Client::rw_lock).
    pub fn rw_lock(&self, key: impl Into<Key>) -> RwLock {
        RwLock::new(self.client.rw_lock(key), &self.reactor)
    }

    /// The locks called `keys`, to be held together or not at all:
    /// [`Client::multi_lock`](crate::Client::multi_lock).
    pub fn multi_lock(&self, keys: impl IntoIterator<Item = impl Into<Key>>) -> MultiLock {
        MultiLock::new(self.client.multi_lock(keys), &self.reactor)
    }

    /// The election called `name`: [`Client::election`](crate::Client::election).
    ///
    /// # Examples
    ///
    /// ```
    /// use ringfence_client::blocking::Client;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::build(Client::builder().embedded(1))?;
    /// let election = client.election("scheduler").label("node-1");
    /// let leadership = election.campaign()?;
    /// let leader = election.leader()?.expect("there is one");
    /// assert_eq!(leader.token, leadership.token());
    /// drop(leadership); // or `leadership.resign()`, which waits for the answer
    /// # client.close();
    /// # Ok(())
    /// # }
    /// ```
    pub fn election(&self, name: impl Into<Key>) -> Election {
        Election::new(self.client.election(name), &self.reactor)
    }

    /// The latch called `name`: [`Client::latch`](crate::Client::latch).
    ///
    /// # Errors
    ///
    /// The name is empty, or too long.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringfence_client::{blocking::Client, counter::Durability};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::build(Client::builder().embedded(1))?;
    /// let latch = client.latch("import/2026-11-25")?;
    /// latch.set(1, Durability::Memory)?;
    /// latch.count_down(&client.counters().request("part-1")?)?;
    /// latch.opened()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn latch(&self, name: &str) -> Result<Latch, LatchError> {
        Ok(Latch::new(self.client.latch(name)?, &self.reactor))
    }

    /// The counters of the namespace `default`: [`Client::counters`](crate::Client::counters).
    ///
    /// # Examples
    ///
    /// ```
    /// use ringfence_client::{blocking::Client, counter::{Amount, Terms}};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::build(Client::builder().embedded(1))?;
    /// let counters = client.counters();
    /// let coins = counters.create("coins/42", Terms::on_disk(), 1)?;
    /// coins.deposit(&counters.request("gift-1")?, Amount::new(100)?)?;
    /// assert_eq!(coins.exact_balance()?.available, 100);
    /// # Ok(())
    /// # }
    /// ```
    pub fn counters(&self) -> Counters {
        Counters::new(self.client.counters(), &self.reactor)
    }

    /// The counters of `namespace`.
    ///
    /// # Errors
    ///
    /// [`NameError::Namespace`].
    pub fn counters_of(&self, namespace: &str) -> Result<Counters, NameError> {
        let counters = self.client.counters_of(namespace)?;
        Ok(Counters::new(counters, &self.reactor))
    }

    /// Waits for a call of the asynchronous API, for all that this module has no method for. Blocks
    /// this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringfence_client::blocking::Client;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::build(Client::builder().embedded(1))?;
    /// let shards = client.block_on(client.asynchronous().shards());
    /// assert_eq!(shards.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn block_on<F: Future>(&self, call: F) -> F::Output {
        self.reactor.wait(call)
    }

    /// The client whose calls [`block_on`](Self::block_on) waits for.
    pub fn asynchronous(&self) -> &crate::Client {
        &self.client
    }

    /// Sends the releases of dropped guards, waits for them for up to 5 s, and ends every task:
    /// [`Client::close`](crate::Client::close). Returns how many releases could not be sent.
    pub fn close(&self) -> usize {
        self.reactor.wait(self.client.close())
    }
}
