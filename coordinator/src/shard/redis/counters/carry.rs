//! Moves groups with their slots: a mover's requests, and the scripts' answers.

use redis::{Cmd, Value};
use ringfence_ring::Slot;

use super::{
    super::{
        Connection,
        answers::{text, unexpected},
        connection::Keys,
        migration::{packed, slots},
        scripts::{self, Script},
    },
    name, origin,
};
use crate::{
    ids::{Epoch, Life},
    limits::{ACCOUNTS_PAGE, ASIDE_FOR, COPY_ROWS, GROUPS_PAGE},
    name::LockKey,
    shard::{
        Arrival, Arrive, AskGroups, Block, CopyIn, CopyOf, CopyOut, Cursor, DropGroups, Dropped,
        Excerpt, Group, Groups, Piece, PutAside, Row, ShardError, Stamp, When,
    },
};

/// The number, from 1, of the first part of a group that is a sorted set. Its rows have scores.
const SORTED: i16 = 10;

/// Rows in one command.
const ROWS_MAX: usize = 1_000;

/// The start of a group: its first part, and the start of that. The start of slots: the index of the first one, and its
/// start.
const START: (u64, &[u8]) = (1, b"0");

/// Asks for some of the groups in slots.
pub(in super::super) fn groups(
    connection: &Connection,
    is_synced: bool,
    ask: &AskGroups,
) -> Result<Cmd, ShardError> {
    let Connection { keys, server, .. } = connection;
    let (what, most, after) = match &ask.when {
        When::Sealed => (0, GROUPS_PAGE, None),
        When::Before(after) => (1, GROUPS_PAGE, after.as_ref()),
        When::Here(after) => (2, ACCOUNTS_PAGE, after.as_ref()),
    };
    let (from, cursor) = after.map_or(Ok(START), place_of)?;
    let mut command = server.call(&scripts::GROUPS, 2 + ask.slots.len());
    command.arg(&keys.state).arg(&keys.slots);
    for slot in &ask.slots {
        command.arg(keys.counters(*slot));
    }
    command
        .arg(&server.replid)
        .arg(ask.epoch.0)
        .arg(packed(&ask.slots))
        .arg(most)
        .arg(what)
        .arg(from)
        .arg(cursor)
        .arg(&keys.prefix)
        .arg(origin(connection, is_synced));
    Ok(command)
}

/// Reads the answer to [`groups`].
pub(in super::super) fn found(parts: &[Value]) -> Result<Groups, ShardError> {
    let wrong = || unexpected("groups", &Value::Array(parts.to_vec()));
    let [
        _,
        Value::Array(refused),
        Value::Array(groups),
        Value::Int(from),
        Value::BulkString(cursor),
        Value::Int(complete),
    ] = parts
    else {
        return Err(wrong());
    };
    let group = |group: &[Value]| match group {
        [Value::BulkString(key), since, Value::Array(names)] => Some(Group {
            key: LockKey::parse(key)?,
            since: Epoch(text(since).parse().ok()?),
            blocks: blocks(names)?,
        }),
        _ => None,
    };
    let groups: Option<Vec<_>> = groups.chunks(3).map(group).collect();
    Ok(Groups {
        groups: groups.ok_or_else(wrong)?,
        refused: slots("groups", refused)?,
        next: place(*from, cursor),
        complete: *complete == 1,
    })
}

fn blocks(names: &[Value]) -> Option<Vec<Block>> {
    let block = |name: &Value| match name {
        Value::BulkString(name) => Some(Block(name.clone())),
        _ => None,
    };
    names.iter().map(block).collect()
}

/// Asks for a piece of a group, with whether the server syncs every write.
pub(in super::super) fn copy_out(
    connection: &Connection,
    is_synced: bool,
    copy: &CopyOut,
) -> Result<Cmd, ShardError> {
    let (after, is_rest, blocks) = match &copy.what {
        Excerpt::Open(after) => return copy_open(connection, copy, after.as_ref()),
        Excerpt::Rows(after) => (after.as_ref(), false, &[][..]),
        Excerpt::Rest(after) => (after.as_ref(), true, &[][..]),
        Excerpt::Blocks(blocks) => (None, false, &blocks[..]),
    };
    let (part, cursor) = after.map_or(Ok(START), place_of)?;
    let mut command = of_group(connection, &scripts::COPY_OUT, copy);
    command
        .arg(&connection.keys.prefix)
        .arg(origin(connection, is_synced))
        .arg(part)
        .arg(cursor)
        .arg(COPY_ROWS)
        .arg(u8::from(is_rest));
    for Block(name) in blocks {
        command.arg(name);
    }
    Ok(command)
}

/// Asks for a piece of a group's open requests.
fn copy_open(
    connection: &Connection,
    copy: &CopyOut,
    after: Option<&Cursor>,
) -> Result<Cmd, ShardError> {
    let (part, cursor) = after.map_or(Ok((0, &b""[..])), place_of)?;
    let mut command = of_group(connection, &scripts::COPY_OPEN, copy);
    command
        .arg(part)
        .arg(cursor)
        .arg(COPY_ROWS)
        .arg(ASIDE_FOR.as_millis() as u64);
    Ok(command)
}

/// What the scripts about a group that leaves begin with.
fn of_group(connection: &Connection, script: &Script, copy: &CopyOut) -> Cmd {
    let Connection { keys, server, .. } = connection;
    let mut command = server.call(script, 3);
    command
        .arg(&keys.state)
        .arg(&keys.slots)
        .arg(name(keys, &copy.key))
        .arg(&server.replid)
        .arg(copy.epoch.0);
    command
}

/// Reads the answer to [`copy_out`].
pub(in super::super) fn copied_out(parts: &[Value]) -> Result<Option<Piece>, ShardError> {
    let wrong = || unexpected("copy_out", &Value::Array(parts.to_vec()));
    let (cursor, sizes, pieces) = match parts {
        [Value::Int(0)] => return Ok(None),
        [
            _,
            Value::Int(part),
            Value::BulkString(cursor),
            Value::Array(sizes),
            Value::BulkString(stamp),
            pieces @ ..,
        ] => ((*part, cursor), (sizes, stamp), pieces),
        _ => return Err(wrong()),
    };
    let (sizes, stamp) = sizes;
    let size = |size: &Value| match size {
        Value::Int(size) => Ok(size.unsigned_abs()),
        _ => Err(wrong()),
    };
    let mut rows = Vec::new();
    for piece in pieces {
        let (number, words) = match piece {
            Value::Array(piece) => match &piece[..] {
                [Value::Int(number), Value::Array(words)] => (*number, words),
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        };
        let part = number.unsigned_abs() as u8;
        for pair in words.chunks(2) {
            let [Value::BulkString(field), Value::BulkString(value)] = pair else {
                return Err(wrong());
            };
            let (field, value) = (field.clone(), value.clone());
            rows.push(match number < 0 {
                true => Row::Gone { part, field },
                false => Row::Stored { part, field, value },
            });
        }
    }
    let sizes: Result<Vec<_>, _> = sizes.iter().map(size).collect();
    let (part, cursor) = cursor;
    Ok(Some(Piece {
        sizes: sizes?,
        rows,
        next: place(part, cursor),
        stamp: Stamp(stamp.clone()),
    }))
}

/// The place to continue from, in a part or a slot, if there is more.
fn place(part: i64, cursor: &[u8]) -> Option<Cursor> {
    let place = || Cursor([part.to_string().as_bytes(), b" ", cursor].concat());
    (part != 0).then(place)
}

/// A part, or a slot, and the place in it to continue from.
fn place_of(Cursor(place): &Cursor) -> Result<(u64, &[u8]), ShardError> {
    let at = place.iter().position(|byte| *byte == b' ');
    let (part, cursor) = at.map_or((&place[..], START.1), |at| (&place[..at], &place[at + 1..]));
    let part = std::str::from_utf8(part).ok();
    let part = part.and_then(|part| part.parse().ok());
    let part = part.ok_or_else(|| ShardError::Refused {
        what: "a cursor",
        reason: "it is another shard's".into(),
    })?;
    Ok((part, cursor))
}

/// The names under which a group of `key` is put aside. The name of its blocks is last.
fn asides(keys: &Keys, key: &LockKey, epoch: Epoch, source: &Life) -> [Vec<u8>; 2] {
    let of_move = format!("{}:aside:{}:{source}:", keys.prefix, epoch.0);
    let of_any = format!("{}:aside:", keys.prefix);
    [of_move, of_any].map(|aside| [aside.as_bytes(), key.text()].concat())
}

/// The name of the set of all such names of a slot.
fn asides_of(keys: &Keys, slot: Slot) -> String {
    format!("{}:aside:{{{}}}", keys.prefix, slot.index())
}

/// Puts a piece of a group aside.
pub(in super::super) fn copy_in(connection: &Connection, copy: &CopyIn) -> Result<Cmd, ShardError> {
    let Connection { keys, server, .. } = connection;
    let Group { key, since, blocks } = &copy.group;
    let [aside, ahead] = asides(keys, key, copy.epoch, &copy.source);
    let mut command = server.call(&scripts::COPY_IN, 6);
    command
        .arg(&keys.state)
        .arg(&keys.slots)
        .arg(aside)
        .arg(ahead)
        .arg(asides_of(keys, key.slot()))
        .arg(keys.counters(key.slot()));
    command
        .arg(&server.replid)
        .arg(copy.epoch.0)
        .arg(key.text())
        .arg(since.0)
        .arg(ASIDE_FOR.as_millis() as u64)
        .arg(blocks.len());
    for Block(name) in blocks {
        command.arg(name);
    }
    let rows: Result<Vec<_>, _> = copy.rows.iter().map(stored).collect();
    for of_part in rows?.chunk_by(|one, next| one.0 == next.0) {
        for some in of_part.chunks(ROWS_MAX) {
            command.arg(some[0].0).arg(some.len());
            for &(number, field, value) in some {
                match number {
                    ..0 => command.arg(field),
                    0..SORTED => command.arg(field).arg(value),
                    SORTED.. => command.arg(value).arg(field),
                };
            }
        }
    }
    Ok(command)
}

/// Reads the answer to [`copy_in`].
pub(in super::super) fn put_aside(parts: &[Value]) -> Result<PutAside, ShardError> {
    let put_aside = match parts {
        [_, word, names @ ..] => match &text(word)[..] {
            "aside" => blocks(names).map(PutAside::Lacks),
            "here" => Some(PutAside::Arrived),
            "refused" => Some(PutAside::Refused),
            _ => None,
        },
        _ => None,
    };
    put_aside.ok_or_else(|| unexpected("copy_in", &Value::Array(parts.to_vec())))
}

/// A row as stored on the server: its part, negative if it is gone, its field and its value.
fn stored(row: &Row) -> Result<(i16, &[u8], &[u8]), ShardError> {
    match row {
        Row::Stored { part, field, value } => Ok((i16::from(*part), field, value)),
        Row::Gone { part, field } => Ok((-i16::from(*part), field, &[])),
        Row::Manifest(..)
        | Row::Segment(_)
        | Row::Id(..)
        | Row::Credit(..)
        | Row::Final(..)
        | Row::Effect(_) => Err(ShardError::Refused {
            what: "copy_in",
            reason: "a row of a shard in memory".into(),
        }),
    }
}

/// Makes a group of the pieces put aside.
pub(in super::super) fn arrive(connection: &Connection, is_synced: bool, arrive: &Arrive) -> Cmd {
    let Connection { keys, server, .. } = connection;
    let key = &arrive.group.key;
    let [aside, ahead] = asides(keys, key, arrive.epoch, &arrive.source);
    let mut command = server.call(&scripts::ARRIVE, 7);
    command
        .arg(&keys.state)
        .arg(&keys.slots)
        .arg(name(keys, key))
        .arg(aside)
        .arg(keys.counters(key.slot()))
        .arg(ahead)
        .arg(asides_of(keys, key.slot()));
    command
        .arg(&server.replid)
        .arg(arrive.epoch.0)
        .arg(key.text())
        .arg(arrive.group.since.0)
        .arg(origin(connection, is_synced))
        .arg(arrive.source.as_str())
        .arg(&arrive.stamp.0)
        .arg(&arrive.sizes);
    command
}

/// Reads the answer to [`arrive`], and the number of replicas that must have the change.
pub(in super::super) fn arrived(parts: &[Value]) -> Result<(Arrival, u64), ShardError> {
    let arrival = match parts {
        [_, _, Value::Int(replicas), source, Value::BulkString(stamp)] => {
            let copy = CopyOf {
                source: Life::new(text(source)),
                stamp: Stamp(stamp.clone()),
            };
            let copy = Some(copy).filter(|copy| !copy.source.as_str().is_empty());
            Some((Arrival::Here(copy), replicas.unsigned_abs()))
        }
        [_, word, _] => match &text(word)[..] {
            "refused" => Some((Arrival::Refused, 0)),
            "incomplete" => Some((Arrival::Incomplete, 0)),
            "differs" => Some((Arrival::Differs, 0)),
            "not_on_disk" => Some((Arrival::NotOnDisk, 0)),
            _ => None,
        },
        _ => None,
    };
    arrival.ok_or_else(|| unexpected("arrive", &Value::Array(parts.to_vec())))
}

/// Drops groups that are at their slots' next shards.
pub(in super::super) fn drop_groups(connection: &Connection, drop: &DropGroups) -> Cmd {
    let Connection { keys, server, .. } = connection;
    let mut command = server.call(&scripts::DROP_GROUPS, 2 + drop.groups.len());
    command.arg(&keys.state).arg(&keys.slots);
    for (key, _) in &drop.groups {
        command.arg(name(keys, key));
    }
    command
        .arg(&server.replid)
        .arg(drop.epoch.0)
        .arg(&keys.prefix)
        .arg(server.life.as_str());
    for (_, copy) in &drop.groups {
        let copy = copy.as_ref();
        let copied = copy.map_or(("", &[][..]), |copy| (copy.source.as_str(), &copy.stamp.0));
        command.arg(copied.0).arg(copied.1);
    }
    command
}

/// Reads the answer to [`drop_groups`].
pub(in super::super) fn dropped(parts: &[Value]) -> Result<Dropped, ShardError> {
    let wrong = || unexpected("drop_groups", &Value::Array(parts.to_vec()));
    let [_, Value::Array(refused), Value::Array(differ)] = parts else {
        return Err(wrong());
    };
    let key = |value: &Value| match value {
        Value::BulkString(key) => LockKey::parse(key),
        _ => None,
    };
    let differ: Option<Vec<_>> = differ.iter().map(key).collect();
    Ok(Dropped {
        refused: slots("drop_groups", refused)?,
        differ: differ.ok_or_else(wrong)?,
    })
}
