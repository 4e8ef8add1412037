//! Shards at the addresses that the record spells.

use std::sync::Arc;

use ringfence_ring::ShardId;

use super::ServerTopology;
use crate::{
    shard::{Shard, ShardError},
    topology::{Dial, ShardEntry},
};

impl Dial for ServerTopology {
    fn dial(&self, _id: &ShardId, entry: &ShardEntry) -> Result<Arc<dyn Shard>, ShardError> {
        let shard = self.caller.members.shard(&entry.address);
        shard.map_err(|error| ShardError::Unusable {
            reason: error.to_string(),
        })
    }
}
