//! The entry point of callers without tokio.

use std::{future::Future, sync::Arc};

use super::{Lock, MultiLock, RwLock, Semaphore, reactor::Reactor};
use crate::{BuildError, Builder, Key};

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

    /// Waits for a call of the asynchronous API, for all that this module has no method for. Blocks
    /// this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringfence_client::{blocking::Client, counter::{Amount, Terms}};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::build(Client::builder().embedded(1))?;
    /// let counters = client.asynchronous().counters();
    /// let coins = client.block_on(counters.create("coins/42", Terms::default(), 1))?;
    /// let gift = counters.request("gift-1")?;
    /// client.block_on(coins.deposit(&gift, Amount::new(100)?))?;
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
