//! Holders and waiters: requests, and the scripts' answers.

use std::{collections::HashMap, time::Duration};

use redis::{Cmd, Value};

use super::{
    Connection,
    answers::{integers, text, unexpected},
    scripts,
};
use crate::{
    ids::{Epoch, Token},
    limits::LIST_PAGE,
    name::{Label, LockKey, Namespace},
    shard::{
        Cursor, HeldLock, Holder, Inspection, List, LockKind, LockMode, LockPage, QueuedWaiter,
        Record, ShardError,
    },
};

/// The cursor at which a listing begins, and which ends it.
pub(super) const ENDS: &[u8] = b"0";

/// Requests the holders of `key` and its waiters.
pub(super) fn inspect(Connection { keys, server, .. }: &Connection, key: &LockKey) -> Cmd {
    let mut command = server.call(&scripts::INSPECT, 2);
    command
        .arg(&keys.state)
        .arg(keys.record(key))
        .arg(&server.replid);
    command
}

/// Requests a page of the held locks.
pub(super) fn list(Connection { keys, server, .. }: &Connection, list: &List) -> Cmd {
    let from = list.after.as_ref().map_or(ENDS, |cursor| &cursor.0);
    let mut command = server.call(&scripts::LIST, 1);
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
        kind,
        Value::Array(shares),
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
    let mut holders = holders((record, remaining), (kind, shares), now_ms).into_iter();
    Ok(Inspection {
        holder: holders.next(),
        others: holders.collect(),
        waiters: nonces.iter().filter_map(waiter).collect(),
    })
}

/// Reads the answer to [`list`]; `prefix` and the list are those of the request.
pub(super) fn page(
    parts: &[Value],
    prefix: &str,
    namespace: Option<&Namespace>,
) -> Result<LockPage, ShardError> {
    let [_, Value::BulkString(cursor), Value::Int(now_ms), locks @ ..] = parts else {
        return Err(unexpected("list", &Value::Array(parts.to_vec())));
    };
    let lock = |lock: &[Value]| {
        let [
            Value::BulkString(name),
            record,
            remaining,
            Value::Int(waiting),
            kind,
            Value::Array(shares),
        ] = lock
        else {
            return None;
        };
        let text = name.strip_prefix(prefix.as_bytes())?.strip_prefix(b":")?;
        let key = LockKey::parse(text)?;
        // The pattern may take a part of a key for a namespace.
        let its_namespace = Namespace::new(key.namespace()).ok()?;
        let asked = namespace.is_none_or(|namespace| *namespace == its_namespace);
        let holders = holders((record, remaining), (kind, shares), *now_ms as u64);
        let mut holders = holders.into_iter();
        let holder = holders.next().filter(|_| asked)?;
        Some(HeldLock {
            key,
            holder,
            others: holders.len() as u32,
            waiting: u32::try_from(*waiting).unwrap_or(u32::MAX),
        })
    };
    Ok(LockPage {
        locks: locks.chunks_exact(6).filter_map(lock).collect(),
        next: (cursor != ENDS).then(|| Cursor(cursor.clone())),
    })
}

/// The holders, by their tokens: of a mutex, from its record and how many milliseconds remain; or of another kind of
/// lock, from the nonce and the text of each.
fn holders(
    mutex: (&Value, &Value),
    (kind, shares): (&Value, &[Value]),
    now_ms: u64,
) -> Vec<Holder> {
    let letter = text(kind).bytes().next();
    let Some(kind) = letter.and_then(LockKind::of_letter) else {
        return holder(mutex.0, mutex.1, now_ms).into_iter().collect();
    };
    let pairs = shares.chunks_exact(2);
    let shares = pairs.filter_map(|pair| share(kind, &text(&pair[0]), &text(&pair[1]), now_ms));
    let mut holders: Vec<_> = shares.collect();
    holders.sort_by_key(|holder| (holder.token, holder.nonce));
    holders
}

/// The holder in an entry, "label|shares|offset|tokens|te|base|arm|since_ms|ends_ms|lease_ms".
fn share(kind: LockKind, nonce: &str, entry: &str, now_ms: u64) -> Option<Holder> {
    let mut parts = entry.split('|');
    let label = Label::new(parts.next()?);
    let mut number = || parts.next()?.parse::<u64>().ok();
    let (shares, offset, tokens) = (number()?, number()?, number()?);
    let (te, base, _) = (number()?, number()?, number()?);
    let (since_ms, ends_ms, lease_ms) = (number()?, number()?, number()?);
    Some(Holder {
        nonce: nonce.parse().ok()?,
        label,
        token: Token::new(Epoch(te), base + offset),
        tokens: tokens as u32,
        kind,
        shares: shares as u32,
        remaining: Duration::from_millis(ends_ms.saturating_sub(now_ms).min(lease_ms)),
        held_for: Duration::from_millis(now_ms.saturating_sub(since_ms)),
    })
}

/// The holder in a live record of a mutex.
fn holder(record: &Value, remaining: &Value, now_ms: u64) -> Option<Holder> {
    let (Value::BulkString(_), Value::Int(remaining_ms)) = (record, remaining) else {
        return None;
    };
    let text = text(record);
    let record = Record::parse(&text)?;
    let remaining_ms = u64::try_from(*remaining_ms).unwrap_or(0);
    let mut last = text.rsplit('|').map(str::parse);
    let (Some(Ok(lease_ms)), Some(Ok(since_ms))) = (last.next(), last.next()) else {
        return None;
    };
    let held_for: u64 = match since_ms {
        0 => u64::saturating_sub(lease_ms, remaining_ms),
        since_ms => now_ms.saturating_sub(since_ms),
    };
    Some(Holder {
        nonce: record.nonce,
        label: record.label,
        token: record.token,
        tokens: record.tokens,
        kind: LockKind::Mutex,
        shares: 1,
        remaining: Duration::from_millis(remaining_ms),
        held_for: Duration::from_millis(held_for),
    })
}

/// The waiter in a ticket,
/// "label|sent|tokens|claim_ms|kind|shares|capacity|preferred|callers|ends_ms|keep_ms", unless the ticket has ended.
fn waiter(nonce: &str, ticket: &str, now_ms: u64) -> Option<QueuedWaiter> {
    let parts: Vec<&str> = ticket.split('|').collect();
    let [
        label,
        _,
        _,
        _,
        kind,
        shares,
        capacity,
        _,
        callers,
        ends_ms,
        _,
    ] = parts[..]
    else {
        return None;
    };
    let live = now_ms <= ends_ms.parse().ok()?;
    let (count, capacity) = (shares.parse().ok()?, capacity.parse().ok()?);
    let kind = LockKind::of_letter(kind.bytes().next()?)?;
    let waiter = QueuedWaiter {
        nonce: nonce.parse().ok()?,
        label: Label::new(label),
        mode: LockMode::of(kind, count, capacity),
        callers: callers.parse().ok()?,
    };
    live.then_some(waiter)
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
