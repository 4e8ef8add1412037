//! Migrating slots: a mover's requests, and the scripts' answers.

use std::{iter::once, time::Duration};

use redis::{Cmd, Value};
use ringfence_ring::Slot;

use super::{
    Connection,
    answers::{integers, unexpected},
    inspect::{ENDS, literal},
    scripts,
};
use crate::{
    limits::SCAN_PAGE,
    name::LockKey,
    shard::{Cursor, HeldStill, Scan, ScanPage, ShardError, StillHeld},
};

/// Slots as the scripts read them: 4 bytes per slot.
pub(super) fn packed(slots: &[Slot]) -> Vec<u8> {
    let bytes = slots.iter().map(|slot| (slot.index() as u32).to_be_bytes());
    bytes.flatten().collect()
}

/// Slots as the scripts return them.
pub(super) fn slots(what: &'static str, parts: &[Value]) -> Result<Vec<Slot>, ShardError> {
    let slot = |part: &Value| {
        let index = match part {
            Value::Int(index) => u32::try_from(*index).ok(),
            _ => None,
        };
        let slot = index.and_then(|index| Slot::new(index).ok());
        slot.ok_or_else(|| unexpected(what, part))
    };
    parts.iter().map(slot).collect()
}

/// Requests a page of the held keys of sealed slots.
pub(super) fn scan(Connection { keys, server, .. }: &Connection, scan: &Scan) -> Cmd {
    let from = scan.after.as_ref().map_or(ENDS, |cursor| &cursor.0);
    // After the prefix, a record's name has its slot; all other names have a word.
    let pattern = format!("{}:{{*", literal(&keys.prefix));
    let mut command = server.call(&scripts::SCAN, 2);
    command
        .arg(&keys.state)
        .arg(&keys.slots)
        .arg(&server.replid)
        .arg(scan.epoch.0);
    command
        .arg(from)
        .arg(format!("{}:", keys.prefix))
        .arg(pattern)
        .arg(SCAN_PAGE);
    command
}

/// Reads the answer to [`scan`].
pub(super) fn scanned(parts: &[Value]) -> Result<ScanPage, ShardError> {
    let [_, grace_left_ms] = integers("scan", parts)?;
    let [_, _, Value::BulkString(cursor), keys @ ..] = parts else {
        return Err(unexpected("scan", &Value::Array(parts.to_vec())));
    };
    Ok(ScanPage {
        grace_left: Duration::from_millis(grace_left_ms),
        held: keys.iter().filter_map(key).collect(),
        next: (cursor != ENDS).then(|| Cursor(cursor.clone())),
    })
}

/// A key by its text. `None` if it is not a key of Ringfence.
fn key(text: &Value) -> Option<LockKey> {
    match text {
        Value::BulkString(text) => LockKey::parse(text),
        _ => None,
    }
}

/// Requests the keys that are still held, about [`SCAN_PAGE`] keys per call, with the state of the slots in each
/// call: if the slots are sealed, or shut, throughout, a key that one answer calls free stays free.
pub(super) fn still_held<'a>(
    Connection { keys, server, .. }: &Connection,
    still: &'a StillHeld,
) -> Vec<(&'a [LockKey], Cmd)> {
    let slots = packed(&still.slots);
    let ask = |some: &'a [LockKey]| {
        let mut command = server.call(&scripts::STILL_HELD, 2 + some.len());
        command.arg(&keys.state).arg(&keys.slots);
        for key in some {
            command.arg(keys.record(key));
        }
        command.arg(&server.replid).arg(still.epoch.0).arg(&slots);
        (some, command)
    };
    if still.keys.is_empty() {
        return once(&still.keys[..]).map(ask).collect();
    }
    still.keys.chunks(SCAN_PAGE).map(ask).collect()
}

/// The keys that are still held, before the first answer.
pub(super) const NOTHING_HELD: HeldStill = HeldStill {
    grace_left: Duration::ZERO,
    keys: Vec::new(),
    refused: Vec::new(),
};

/// Adds an answer to [`still_held`], about `keys`.
pub(super) fn add_held(
    found: &mut HeldStill,
    keys: &[LockKey],
    parts: &[Value],
) -> Result<(), ShardError> {
    let [_, grace_left_ms] = integers("still_held", parts)?;
    let [_, _, Value::Array(held), Value::Array(refused)] = parts else {
        return Err(unexpected("still_held", &Value::Array(parts.to_vec())));
    };
    found.grace_left = Duration::from_millis(grace_left_ms);
    for place in held {
        let key = match place {
            Value::Int(place) => keys.get(*place as usize - 1),
            _ => None,
        };
        found
            .keys
            .push(key.ok_or_else(|| unexpected("still_held", place))?.clone());
    }
    for slot in slots("still_held", refused)? {
        if !found.refused.contains(&slot) {
            found.refused.push(slot);
        }
    }
    Ok(())
}
