//! The servers of a topology, by address.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::member::Member;
use crate::{
    ids::ClientId,
    random::Random,
    shard::{ServerAddress, ServerAddressError, ServerOptions, Shard},
    topology::TopologyError,
};

/// The servers contacted so far. Servers that no seed named are reached with the credentials of the first seed
/// of their kind, or else of another server of it: the servers of a topology share them.
#[derive(Debug)]
pub(super) struct Members {
    seeds: Vec<ServerOptions>,
    engine: ClientId,
    random: Arc<Random>,
    known: Mutex<HashMap<String, Arc<Member>>>,
}

impl Members {
    /// No servers yet; later ones are reached like `seeds`.
    pub(super) fn new(seeds: Vec<ServerOptions>, engine: ClientId, random: Arc<Random>) -> Self {
        Self {
            seeds,
            engine,
            random,
            known: Mutex::default(),
        }
    }

    /// The server that `options` name.
    pub(super) fn with(&self, options: ServerOptions) -> Arc<Member> {
        let mut known = self.known.lock();
        let entry = known.entry(options.address().to_owned());
        entry
            .or_insert_with(|| Arc::new(Member::new(options, &self.random)))
            .clone()
    }

    /// The server at `address`, which a record or a pointer names.
    pub(super) fn at(&self, address: &str) -> Result<Arc<Member>, TopologyError> {
        if let Some(member) = self.known.lock().get(address) {
            return Ok(member.clone());
        }
        let malformed = |error: ServerAddressError| TopologyError::Malformed(error.to_string());
        Ok(self.with(self.options(address).map_err(malformed)?))
    }

    /// The server at `address`, which names its login, reached like the first seed of its kind.
    pub(super) fn home(&self, address: ServerAddress) -> Arc<Member> {
        let mut same = self.seeds.iter().filter_map(|seed| seed.at(&address));
        let options = same.next();
        self.with(options.unwrap_or_else(|| self.stranger(address)))
    }

    /// The options to reach the server at `address`.
    pub(super) fn options(&self, address: &str) -> Result<ServerOptions, ServerAddressError> {
        let known = self.known.lock();
        if let Some(member) = known.get(address) {
            return Ok(member.options());
        }
        let others = known.values().map(|member| member.options());
        for like in self.seeds.iter().cloned().chain(others) {
            if let Some(options) = like.sibling(address)? {
                return Ok(options);
            }
        }
        Ok(self.stranger(address.parse()?))
    }

    /// The server at `address`: no seed is of its kind.
    fn stranger(&self, address: ServerAddress) -> ServerOptions {
        let first = self.seeds.first().expect("a topology is found by seeds");
        ServerOptions::new(address, self.engine, first.prefix().clone())
    }

    /// The shard on the server at `address`.
    pub(super) fn shard(&self, address: &str) -> Result<Arc<dyn Shard>, ServerAddressError> {
        let member = self.with(self.options(address)?);
        Ok(member.shard(&self.random))
    }
}
