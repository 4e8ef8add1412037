//! What a library does that has no more than a map: it changes the map.

use redis::Pipeline;
use ringfence_client::{LockKey, Namespace, Weight};
use ringfence_coordinator::{spawn::RedisServer, topology::shard_id};
use ringfence_ring::{Membership, SlotCount, Table};
use serde::Serialize;

use super::held::key;
use crate::Failure;

/// Locks in one round trip.
const BATCH: usize = 1_000;

/// Locks plainly taken, asked for again by another map.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Naive {
    /// Locks held when the map was changed.
    pub(crate) held: usize,
    /// Granted to somebody else while they were held.
    pub(crate) held_twice: usize,
}

impl Naive {
    /// Takes `count` locks by a map of all servers but the last, asks for all by a map of all.
    pub(crate) async fn count(servers: &[RedisServer], count: usize) -> Result<Self, Failure> {
        let before = table(servers.len() - 1)?;
        let after = before
            .plan(table(servers.len())?.membership())?
            .table()
            .clone();
        let held = take(servers, &before, count, "first").await?;
        let held_twice = take(servers, &after, count, "second").await?;
        Ok(Self { held, held_twice })
    }
}

fn table(shards: usize) -> Result<Table, Failure> {
    let shards = (0..shards).map(|index| (shard_id(index), Weight::ONE));
    let membership = Membership::new(SlotCount::DEFAULT, shards)?;
    Ok(Table::bootstrap(&membership))
}

/// Takes each of `count` locks at its shard, if nobody has it there. How many it got.
async fn take(
    servers: &[RedisServer],
    table: &Table,
    count: usize,
    holder: &str,
) -> Result<usize, Failure> {
    let mut keys = vec![Vec::new(); servers.len()];
    for number in 0..count {
        let key = key(number);
        let slot = LockKey::new(&Namespace::default(), key.as_bytes(), table.slots())?.slot();
        keys[table.owner_index(slot)].push(format!("naive/{key}"));
    }
    let mut granted = 0;
    for (server, keys) in servers.iter().zip(keys) {
        let client = redis::Client::open(server.url())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        for batch in keys.chunks(BATCH) {
            let mut pipeline = Pipeline::new();
            for key in batch {
                let set = pipeline.cmd("SET").arg(key).arg(holder);
                set.arg("NX").arg("PX").arg(600_000);
            }
            let answers: Vec<Option<String>> = pipeline.query_async(&mut connection).await?;
            granted += answers.iter().flatten().count();
        }
    }
    Ok(granted)
}
