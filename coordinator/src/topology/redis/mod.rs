//! The topology on Redis: the record at one server, its home; a pointer to it and a copy of it at
//! the others.
//!
//! ```text
//! connect ─► Survey: every seed's Trace ─► Asking: each topology's home ─► RedisTopology
//!                └─ none anywhere ─► claim at the home ─► join the others ─► active
//! ```
//!
//! The record is *usable* while its home lives the life it was written in, and has not seen a later
//! incarnation. Whoever hands a record out has made sure first that another member has a copy.

mod answers;
mod ask;
mod first_use;
mod founding;
mod home;
mod member;
mod members;
mod ops;
mod publish;
mod scripts;
mod stored;
mod survey;
#[cfg(all(test, feature = "spawn"))]
mod tests;
mod warnings;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::sleep;

pub use first_use::{Joined, connect};
pub use founding::{Founding, Observer, Step};

use self::{answers::Swapped, member::Member, members::Members, publish::Published};
use super::{Swap, Topology, TopologyError, TopologyStore, Version, store::check_next};
use crate::{
    random::Random,
    shard::redis::{AddressError, RedisOptions},
};

/// The topology record at its home on Redis. [`connect`] makes one.
#[derive(Debug)]
pub struct RedisTopology {
    id: String,
    /// As the record spells it.
    address: String,
    home: Arc<Member>,
    members: Arc<Members>,
    watch_every: Duration,
    random: Arc<Random>,
    last: Mutex<Option<Arc<Topology>>>,
    published: Mutex<Published>,
}

impl RedisTopology {
    fn new(
        topology: &Topology,
        home: Arc<Member>,
        members: Arc<Members>,
        watch_every: Duration,
        random: Arc<Random>,
    ) -> Self {
        let (last, published) = (Mutex::default(), Mutex::default());
        let (id, address) = (topology.id.clone(), topology.home.address.clone());
        Self {
            id,
            address,
            home,
            members,
            watch_every,
            random,
            last,
            published,
        }
    }

    /// The home's address, without credentials, as the record spells it.
    pub fn home(&self) -> &str {
        &self.address
    }

    /// How the shard at `address` is reached, `address` being as the record spells it: like the
    /// seed that named it, or else like the first seed.
    ///
    /// # Errors
    ///
    /// [`AddressError`]: it is not a server's address.
    pub fn options(&self, address: &str) -> Result<RedisOptions, AddressError> {
        self.members.options(address)
    }

    /// The record at the home, if it is usable. Nothing may be done in its name yet.
    async fn look(&self) -> Result<Arc<Topology>, TopologyError> {
        let known = self.last.lock().clone();
        let read = self.home.repeated(|| self.home.read(known.as_deref()));
        let (server, found) = read.await?;
        let record = self.usable(&server.life, found, known)?;
        *self.last.lock() = Some(record.clone());
        Ok(record)
    }

    /// Compares and swaps, and no more: copies are still to be made.
    async fn compare_and_swap(
        &self,
        expected: Version,
        next: &Topology,
    ) -> Result<Swap, TopologyError> {
        check_next(expected, next)?;
        if next.id != self.id || next.home.address != self.address {
            let reason = format!(
                "topology {} at {} is another one",
                next.id, next.home.address
            );
            return Err(TopologyError::Malformed(reason));
        }
        match self.home.swap(expected, next).await? {
            Swapped::Done => Ok(Swap::Done),
            Swapped::Newer(record) => Ok(Swap::Newer(record)),
            Swapped::Unusable(reason) => Err(self.recover_needed(&reason)),
        }
    }
}

#[async_trait]
impl TopologyStore for RedisTopology {
    async fn load(&self) -> Result<Arc<Topology>, TopologyError> {
        let topology = self.look().await?;
        self.publish(&topology).await?;
        Ok(topology)
    }

    async fn swap(&self, expected: Version, next: &Topology) -> Result<Swap, TopologyError> {
        let swap = self.compare_and_swap(expected, next).await?;
        match &swap {
            Swap::Done => self.publish(next).await?,
            Swap::Newer(newer) => self.publish(newer).await?,
        }
        Ok(swap)
    }

    async fn watch(&self, known: Version) -> Result<Arc<Topology>, TopologyError> {
        loop {
            let topology = self.look().await?;
            if topology.version() > known {
                self.publish(&topology).await?;
                return Ok(topology);
            }
            sleep(self.random.jitter(self.watch_every)).await;
        }
    }
}
