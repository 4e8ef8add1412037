//! The holders of a semaphore, or of a read-write lock.

use std::collections::BTreeMap;

use super::{head::Armed, lock_state::Entry};
use crate::{ids::Nonce, shard::LockKind};

/// The holders of one key, each with its own lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(super) kind: LockKind,
    entries: BTreeMap<Nonce, Entry>,
}

impl Shares {
    pub(super) fn new(kind: LockKind) -> Self {
        Self {
            kind,
            entries: BTreeMap::new(),
        }
    }

    /// Writes the record of a holder, and replaces its former one.
    pub(super) fn write(&mut self, entry: Entry) {
        self.entries.insert(entry.record.nonce, entry);
    }

    /// The record of `nonce`, which may have expired, and may be one of an earlier arming.
    pub(super) fn of(&mut self, nonce: Nonce) -> Option<&mut Entry> {
        self.entries.get_mut(&nonce)
    }

    /// Whether each of its records is one of `before`, as it was.
    pub(super) fn are_left_of(&self, before: &Self) -> bool {
        self.entries.iter().all(|(nonce, entry)| {
            let known = before.entries.get(nonce);
            known.is_some_and(|known| entry.is_as(known))
        })
    }

    /// Removes that record.
    pub(super) fn remove(&mut self, nonce: Nonce) -> Option<Entry> {
        self.entries.remove(&nonce)
    }

    /// All records.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// All records, to change them.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.values_mut()
    }

    /// Drops expired records. Returns whether none is left.
    pub(super) fn expire(&mut self, now_ms: u64) -> bool {
        self.entries.retain(|_, entry| !entry.has_expired(now_ms));
        self.entries.is_empty()
    }

    /// The records that count.
    pub(super) fn live(&self, armed: &Armed, now_ms: u64) -> impl Iterator<Item = &Entry> {
        let entries = self.entries.values();
        entries.filter(move |entry| entry.is_live(armed, now_ms))
    }

    /// How many shares they take.
    pub(super) fn sum(&self, armed: &Armed, now_ms: u64) -> u64 {
        let live = self.live(armed, now_ms);
        live.map(|entry| u64::from(entry.shares)).sum()
    }
}
