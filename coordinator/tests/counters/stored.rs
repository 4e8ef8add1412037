//! What a server has stored of a segment.

use redis::aio::MultiplexedConnection;
use ringfence_coordinator::{
    name::LockKey,
    shard::stored::{Fields, Kind, LOG, PARTS, Stored, chunk, effects, is_always_said, place},
};

/// The name of a part of a group.
pub(crate) fn part_of(group: &LockKey, part: &str) -> Vec<u8> {
    [b"ringfence:#", group.text(), b":", part.as_bytes()].concat()
}

/// The group of `key`, read part by part; lists record by record, and effect by effect.
pub(crate) async fn stored(raw: &mut MultiplexedConnection, key: &LockKey) -> Stored {
    let mut stored = Stored::default();
    for part in PARTS {
        let name = part_of(key, part.name);
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
                let records: Vec<Vec<u8>> = match part {
                    LOG => {
                        let effects = values.iter().flat_map(|chunk| effects(chunk).unwrap());
                        effects.map(|effect| chunk(&effect)).collect()
                    }
                    _ => {
                        let records = values.iter().flat_map(|chunk| chunk[12..].chunks(27));
                        records.map(<[u8]>::to_vec).collect()
                    }
                };
                let placed = records.into_iter().enumerate();
                placed.map(|(nth, record)| (place(nth), record)).collect()
            }
            Kind::Hash | Kind::Sorted => command.query_async(raw).await.unwrap(),
        };
        // One that is 0 again stays.
        let is_said = |(name, value): &(Vec<u8>, Vec<u8>)| {
            let is_always = || std::str::from_utf8(name).is_ok_and(is_always_said);
            part.name != "seg" || !matches!(&value[..], b"0" | b"") || is_always()
        };
        let fields: Vec<_> = fields.into_iter().filter(is_said).collect();
        if !fields.is_empty() {
            stored.0.insert(part.name, Fields::from_iter(fields));
        }
    }
    stored
}
