//! A lock with replicas is granted with a token that a majority of them has, or a lower one, and is believed in no
//! longer than a majority of their records lasts. Processes over the service do not see the replicas.

use std::collections::{BTreeMap, HashMap};

use super::{
    Grants, Rule, Violation,
    grant::{CLAIM_MAX_MS, believed_until},
    violation::seconds,
    windows::{self, Window},
};
use crate::{
    history::{Event, History, Kind, Phase, Token},
    ledger,
};

/// The record of an acquisition at one replica, by the last answer of its shard.
#[derive(Debug)]
struct Record<'h> {
    nonce: &'h str,
    token: Option<Token>,
    until_ns: u64,
    event: &'h Event,
}

pub(super) fn check(history: &History, grants: &Grants<'_>) -> Vec<Violation> {
    let windows = windows::of(history);
    if windows.iter().any(Window::is_of_a_coordinator) {
        return Vec::new();
    }
    let ends = ends(history, grants);
    let mut leases_ms: HashMap<&str, u64> = HashMap::new();
    let mut records: HashMap<&str, BTreeMap<u64, Record<'_>>> = HashMap::new();
    let mut violations = Vec::new();
    for event in &history.events {
        let deed = &event.deed;
        let Some(key) = deed.key.as_deref().filter(|key| ledger::has(key)) else {
            continue;
        };
        if let Some(lease_ms) = deed.lease_ms {
            leases_ms.insert(key, lease_ms);
        }
        let Some(nonce) = deed.nonce.as_deref() else {
            continue;
        };
        let of_lock = records.entry(nonce).or_default();
        match (deed.kind, deed.phase) {
            (Kind::Replica, _) => {
                let lease_ms = leases_ms.get(key).copied().unwrap_or(0);
                note(of_lock, event, lease_ms);
                violations.extend(beyond(key, event, ends.get(nonce).copied()));
            }
            (Kind::Grant, Phase::Ok) if !deed.handed => {
                violations.extend(unbacked(key, event, of_lock, deed.token));
            }
            (Kind::Renew, Phase::Ok) => violations.extend(unbacked(key, event, of_lock, None)),
            _ => {}
        }
    }
    violations
}

/// When the fixed hold of each nonce ends that was granted once.
fn ends<'h>(history: &'h History, grants: &Grants<'h>) -> HashMap<&'h str, u64> {
    let acquired = history.events.iter();
    let acquired =
        acquired.filter(|event| event.deed.kind == Kind::Acquire && event.deed.phase == Phase::Ok);
    let nonces = acquired.filter_map(|event| event.deed.nonce.as_deref());
    let end_of = |nonce| {
        let mut of_nonce = grants.of_nonce(nonce);
        let only = of_nonce.next().filter(|_| of_nonce.next().is_none());
        Some((nonce, only?.ends_ns()?))
    };
    nonces.filter_map(end_of).collect()
}

/// A record that is written or renewed by a request that left after the hold had ended.
fn beyond(key: &str, event: &Event, ends_ns: Option<u64>) -> Option<Violation> {
    let sent_ns = event.deed.sent_ns?;
    let ends_ns = ends_ns.filter(|ends_ns| *ends_ns < sent_ns)?;
    let what = format!(
        "process {} renewed a replica at {}, of a hold that ended at {}",
        event.process,
        seconds(sent_ns),
        seconds(ends_ns)
    );
    Some(Violation::new(Rule::Deadline, key, what, [event]))
}

fn note<'h>(of_lock: &mut BTreeMap<u64, Record<'h>>, event: &'h Event, lease_ms: u64) {
    let deed = &event.deed;
    let (Some((rank, nonce)), Some(sent_ns)) = (&deed.replica, deed.sent_ns) else {
        return;
    };
    let longest_ms = if deed.turn { CLAIM_MAX_MS } else { u64::MAX };
    let until_ns = believed_until(sent_ns, lease_ms.min(longest_ms));
    let record = Record {
        nonce,
        token: deed.token,
        until_ns,
        event,
    };
    match of_lock.get_mut(rank).filter(|former| former.nonce == nonce) {
        Some(former) => {
            let until_ns = former.until_ns.max(until_ns);
            *former = Record { until_ns, ..record };
        }
        None => drop(of_lock.insert(*rank, record)),
    }
}

/// What `event` tells of a lock, unless a majority of the records lasts as long, and has `token` or a greater one.
fn unbacked(
    key: &str,
    event: &Event,
    of_lock: &BTreeMap<u64, Record<'_>>,
    token: Option<Token>,
) -> Option<Violation> {
    let until_ns = event.deed.deadline_ns?;
    let lasting = of_lock
        .values()
        .filter(|record| until_ns <= record.until_ns);
    let lasting = lasting.count();
    let agreeing = of_lock.values().filter(|record| token <= record.token);
    let agreeing = agreeing.count();
    if lasting >= ledger::MAJORITY && agreeing >= ledger::MAJORITY {
        return None;
    }
    let what = format!(
        "process {} believes until {}: {lasting} replicas have a record that lasts as long, and {agreeing} one with \
         that token",
        event.process,
        seconds(until_ns)
    );
    let records = of_lock.values().map(|record| record.event);
    Some(Violation::new(
        Rule::Majority,
        key,
        what,
        records.chain([event]),
    ))
}
