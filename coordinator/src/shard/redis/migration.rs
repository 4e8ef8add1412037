//! Migrating slots: a mover's requests, and the scripts' answers.

use std::{iter::once, time::Duration};

use redis::{Cmd, Value};
use ringfence_ring::Slot;

use super::{
    Connection, Script,
    answers::{integers, unexpected},
    connection::Server,
    inspect::{ENDS, literal},
    scripts,
};
use crate::{
    ids::{Epoch, Incarnation, Token},
    limits::SCAN_PAGE,
    name::LockKey,
    shard::{Cursor, HeldStill, Listing, Scan, ScanPage, ShardError, Step, Stepped, StillHeld},
};

/// Slots as the scripts read them: 4 bytes per slot.
pub(super) fn packed(slots: &[Slot]) -> Vec<u8> {
    let bytes = slots.iter().map(|slot| (slot.index() as u32).to_be_bytes());
    bytes.flatten().collect()
}

/// Slots as a bit set in whole words of 4 bytes, up to the last slot.
pub(super) fn bits(slots: impl Iterator<Item = Slot>) -> Vec<u8> {
    let mut bits = Vec::new();
    for slot in slots {
        let (byte, bit) = (slot.index() / 8, slot.index() % 8);
        if byte >= bits.len() {
            bits.resize(byte / 4 * 4 + 4, 0);
        }
        bits[byte] |= 0x80 >> bit;
    }
    bits
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

/// Requests a change of slots on behalf of a record, by `script`: its keys, of which `more` are the last, and the first of
/// its arguments.
pub(super) fn change(
    Connection { keys, server, .. }: &Connection,
    script: &Script,
    more: &[&String],
    incarnation: Incarnation,
    copy: &(u64, String),
) -> Cmd {
    let mut command = server.call(script, 8 + more.len());
    command
        .arg(&keys.quiet)
        .arg(&keys.state)
        .arg(&keys.slots)
        .arg(&keys.open)
        .arg(&keys.ctr)
        .arg(&keys.fence)
        .arg(&keys.copy)
        .arg(&keys.lives)
        .arg(more);
    push_record(&mut command, server, incarnation, copy);
    command
}

/// Appends the first arguments of a request on behalf of a record: the life, and the record.
pub(super) fn push_record(
    command: &mut Cmd,
    server: &Server,
    incarnation: Incarnation,
    (version, record): &(u64, String),
) {
    command
        .arg(&server.replid)
        .arg(server.life.as_str())
        .arg(incarnation.to_string())
        .arg(version)
        .arg(record);
}

/// Requests a step of a migration.
pub(super) fn step(connection: &Connection, step: &Step) -> Cmd {
    let mut command = change(
        connection,
        &scripts::STEP,
        &[],
        step.incarnation,
        &step.copy,
    );
    command
        .arg(step.epoch.0)
        .arg(&[step.mode.letter()])
        .arg(packed(&step.slots))
        .arg(step.above.epoch().0)
        .arg(step.above.counter())
        .arg(step.map.0)
        .arg(format!("{}:aside:", connection.keys.prefix));
    command
}

/// Reads the answer to [`step`].
pub(super) fn stepped(parts: &[Value]) -> Result<Stepped, ShardError> {
    let [_, te, counter, grace_left_ms] = integers("step", parts)?;
    Ok(Stepped {
        last_token: Token::new(Epoch(te), counter),
        grace_left: Duration::from_millis(grace_left_ms),
        refused: slots("step", &parts[4..])?,
    })
}

/// Requests a page of the held keys of sealed slots.
pub(super) fn scan(Connection { keys, server, .. }: &Connection, scan: &Scan) -> Cmd {
    let from = scan.after.as_ref().map_or(ENDS, |cursor| &cursor.0);
    // After the prefix, a record's name has its slot; all other names have a word.
    let pattern = format!("{}:{{*", literal(&keys.prefix));
    let mut command = server.call(&scripts::SCAN, 3);
    command
        .arg(&keys.state)
        .arg(&keys.slots)
        .arg(&keys.open)
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

/// Lists the keys that are held elsewhere.
pub(super) fn take_list(Connection { keys, server, .. }: &Connection, listing: &Listing) -> Cmd {
    let mut command = server.call(&scripts::TAKE_LIST, 2 + listing.held.len());
    command.arg(&keys.state).arg(&keys.slots);
    for key in &listing.held {
        command.arg(keys.record(key));
    }
    command
        .arg(&server.replid)
        .arg(listing.epoch.0)
        .arg(packed(&listing.complete));
    command
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
