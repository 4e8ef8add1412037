//! Shards at the addresses that the record spells.

use std::sync::Arc;

use ringfence_ring::ShardId;

use super::RedisTopology;
use crate::{
    shard::{Shard, ShardError, redis::RedisShard},
    topology::{Dial, ShardEntry},
};

impl Dial for RedisTopology {
    fn dial(&self, _id: &ShardId, entry: &ShardEntry) -> Result<Arc<dyn Shard>, ShardError> {
        let options = self.options(&entry.address);
        let options = options.map_err(|error| ShardError::Unusable {
            reason: error.to_string(),
        })?;
        Ok(Arc::new(RedisShard::new(options)))
    }
}
