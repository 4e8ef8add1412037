//! Holders and waiters: requests, and the scripts' answers.

use std::{collections::HashMap, time::Duration};

use redis::{Cmd, Value};

use super::{
    Connection,
    answers::{integers, text, unexpected},
    connection::fcall,
    scripts,
};
use crate::{
    limits::LIST_PAGE,
    name::{Label, LockKey, Namespace},
    shard::{
        Cursor, HeldLock, Holder, Inspection, List, LockPage, QueuedWaiter, Record, ShardError,
    },
};

/// The cursor at which a listing begins, and which ends it.
pub(super) const ENDS: &[u8] = b"0";

/// Requests the holder of `key` and its waiters.
pub(super) fn inspect(Connection { keys, server, .. }: &Connection, key: &LockKey) -> Cmd {
    let mut command = fcall(&scripts::INSPECT, 2);
    command
        .arg(&keys.state)
        .arg(keys.record(key))
        .arg(&server.replid);
    command
}

/// Requests a page of the held locks.
pub(super) fn list(Connection { keys, server, .. }: &Connection, list: &List) -> Cmd {
    let from = list.after.as_ref().map_or(ENDS, |cursor| &cursor.0);
    let mut command = fcall(&scripts::LIST, 1);
    command
        .arg(&keys.state)
        .arg(&server.replid)
        .arg(from)
        .arg(pattern(&keys.prefix, list.namespace.as_ref()))
        .arg(LIST_PAGE);
    command
}

/// A pattern of the names of records, and of few other names.
fn pattern(prefix: &str, namespace: Option<&Namespace>) -> String {
    let mut pattern = literal(prefix);
    pattern.push_str(":{*}:");
    pattern.push_str(namespace.map_or("*", Namespace::as_str));
    pattern.push_str(":*");
    pattern
}

/// The pattern that matches `text` alone.
pub(super) fn literal(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if r"*?[]\".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// Reads the answer to [`inspect`].
pub(super) fn inspection(parts: &[Value]) -> Result<Inspection, ShardError> {
    let [_, now_ms] = integers("inspect", parts)?;
    let [
        _,
        _,
        record,
        remaining,
        Value::Array(nonces),
        Value::Array(tickets),
    ] = parts
    else {
        return Err(unexpected("inspect", &Value::Array(parts.to_vec())));
    };
    let pairs = tickets.chunks_exact(2);
    let tickets: HashMap<String, String> =
        pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
    let waiter = |nonce: &Value| {
        let nonce = text(nonce);
        waiter(&nonce, tickets.get(&nonce)?, now_ms)
    };
    Ok(Inspection {
        holder: holder(record, remaining),
        waiters: nonces.iter().filter_map(waiter).collect(),
    })
}

/// Reads the answer to [`list`]; `prefix` and the list are those of the request.
pub(super) fn page(
    parts: &[Value],
    prefix: &str,
    namespace: Option<&Namespace>,
) -> Result<LockPage, ShardError> {
    let [_, Value::BulkString(cursor), locks @ ..] = parts else {
        return Err(unexpected("list", &Value::Array(parts.to_vec())));
    };
    let lock = |lock: &[Value]| {
        let [
            Value::BulkString(name),
            record,
            remaining,
            Value::Int(waiting),
        ] = lock
        else {
            return None;
        };
        let text = name.strip_prefix(prefix.as_bytes())?.strip_prefix(b":")?;
        let key = LockKey::parse(text)?;
        // The pattern may take a part of a key for a namespace.
        let its_namespace = Namespace::new(key.namespace()).ok()?;
        let asked = namespace.is_none_or(|namespace| *namespace == its_namespace);
        asked.then_some(HeldLock {
            key,
            holder: holder(record, remaining)?,
            waiting: u32::try_from(*waiting).unwrap_or(u32::MAX),
        })
    };
    Ok(LockPage {
        locks: locks.chunks_exact(4).filter_map(lock).collect(),
        next: (cursor != ENDS).then(|| Cursor(cursor.clone())),
    })
}

/// The holder in a live record.
fn holder(record: &Value, remaining: &Value) -> Option<Holder> {
    let (Value::BulkString(_), Value::Int(remaining_ms)) = (record, remaining) else {
        return None;
    };
    let record = Record::parse(&text(record))?;
    Some(Holder {
        nonce: record.nonce,
        label: record.label,
        token: record.token,
        tokens: record.tokens,
        remaining: Duration::from_millis(u64::try_from(*remaining_ms).unwrap_or(0)),
    })
}

/// The waiter in a ticket, "label|sent|tokens|claim_ms|ends_ms", unless the ticket has ended.
fn waiter(nonce: &str, ticket: &str, now_ms: u64) -> Option<QueuedWaiter> {
    let (label, rest) = ticket.split_once('|')?;
    let (_, ends_ms) = rest.rsplit_once('|')?;
    let live = now_ms <= ends_ms.parse().ok()?;
    let nonce = nonce.parse().ok()?;
    live.then(|| QueuedWaiter {
        nonce,
        label: Label::new(label),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_every_byte_of_the_prefix_as_it_is() {
        let namespace = Namespace::new("coins").unwrap();
        assert_eq!(pattern("ringfence", None), "ringfence:{*}:*:*");
        assert_eq!(
            pattern(r"a*b?[c]\d", Some(&namespace)),
            r"a\*b\?\[c\]\\d:{*}:coins:*"
        );
    }
}
