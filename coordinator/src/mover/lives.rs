//! The lives of the two shards of a migration.

use crate::{
    ids::{Epoch, Life},
    topology::{ShardName, Topology},
};

/// The lives of two shards and the epochs that they are armed with, according to a record.
pub(super) type Lives = [(Life, Epoch); 2];

/// The lives of `from` and `to`. The epoch counts too: holders may put locks back at a shard that was armed anew, as at
/// one that came back.
pub(super) fn lives(record: &Topology, from: &ShardName, to: &ShardName) -> Option<Lives> {
    let life = |name: &ShardName| {
        let entry = record.shard(&name.0)?;
        Some((entry.life.clone(), entry.epoch))
    };
    Some([life(from)?, life(to)?])
}
