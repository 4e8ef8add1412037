//! What a server has stored of a segment.

use redis::aio::MultiplexedConnection;
use ringfence_coordinator::{
    name::LockKey,
    shard::stored::{Fields, Kind, PARTS, Stored, place},
};

/// The group of `key`, read part by part.
pub(crate) async fn stored(raw: &mut MultiplexedConnection, key: &LockKey) -> Stored {
    let mut stored = Stored::default();
    for part in PARTS {
        let name = [b"ringfence:#", key.text(), b":", part.name.as_bytes()].concat();
        let command = match part.kind {
            Kind::Hash => redis::cmd("HGETALL").arg(name).to_owned(),
            Kind::List => redis::cmd("LRANGE").arg(name).arg(0).arg(-1).to_owned(),
            Kind::Sorted => {
                let mut range = redis::cmd("ZRANGE");
                range.arg(name).arg(0).arg(-1).arg("WITHSCORES").to_owned()
            }
        };
        let fields: Vec<(Vec<u8>, Vec<u8>)> = match part.kind {
            Kind::List => {
                let values: Vec<Vec<u8>> = command.query_async(raw).await.unwrap();
                let placed = values.into_iter().enumerate();
                placed.map(|(nth, value)| (place(nth), value)).collect()
            }
            Kind::Hash | Kind::Sorted => command.query_async(raw).await.unwrap(),
        };
        if !fields.is_empty() {
            stored.0.insert(part.name, Fields::from_iter(fields));
        }
    }
    stored
}
