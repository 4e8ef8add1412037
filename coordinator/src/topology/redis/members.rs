//! The servers of a topology, by address.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::member::Member;
use crate::{
    shard::redis::{AddressError, RedisOptions},
    topology::TopologyError,
};

/// The servers contacted so far. Servers that no seed named are reached with the first seed's
/// credentials: the servers of a topology share them.
#[derive(Debug)]
pub(super) struct Members {
    like: RedisOptions,
    known: Mutex<HashMap<String, Arc<Member>>>,
}

impl Members {
    /// No servers yet; later ones are reached like `like`.
    pub(super) fn new(like: RedisOptions) -> Self {
        Self {
            like,
            known: Mutex::default(),
        }
    }

    /// The server that `options` name.
    pub(super) fn with(&self, options: RedisOptions) -> Arc<Member> {
        let mut known = self.known.lock();
        let member = known.entry(options.address.as_str().to_owned());
        member
            .or_insert_with(|| Arc::new(Member::new(options)))
            .clone()
    }

    /// The server at `address`, which a record or a pointer names.
    pub(super) fn at(&self, address: &str) -> Result<Arc<Member>, TopologyError> {
        if let Some(member) = self.known.lock().get(address) {
            return Ok(member.clone());
        }
        let malformed = |error: AddressError| TopologyError::Malformed(error.to_string());
        Ok(self.with(self.options(address).map_err(malformed)?))
    }

    /// The options to reach the server at `address`.
    pub(super) fn options(&self, address: &str) -> Result<RedisOptions, AddressError> {
        if let Some(member) = self.known.lock().get(address) {
            return Ok(member.options().clone());
        }
        Ok(RedisOptions {
            address: self.like.address.sibling(address)?,
            ..self.like.clone()
        })
    }
}
