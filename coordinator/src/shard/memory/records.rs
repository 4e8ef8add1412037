//! The records of all keys.

use std::{collections::BTreeMap, ops::Bound};

use crate::{ids::Nonce, name::LockKey, shard::Record};

/// Fewer records than this are never swept: they cost nothing.
const SWEEP_MIN: usize = 1024;

/// A record and its end.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) record: Record,
    /// The last millisecond it is there, by the shard's clock.
    pub(super) expires_ms: u64,
}

/// Every record of a shard. An expired one is never seen, and gone for good at a later sweep.
#[derive(Debug)]
pub(super) struct Records {
    /// In an order, so that they can be listed in pages.
    entries: BTreeMap<LockKey, Entry>,
    /// Number of entries at which the expired ones are thrown out: twice what the last sweep
    /// left, so that a sweep costs each insertion a constant.
    sweep_at: usize,
}

impl Records {
    pub(super) fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            sweep_at: SWEEP_MIN,
        }
    }

    /// Entries kept, expired ones among them.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The record of `key`, unless it has expired.
    pub(super) fn get(&self, key: &LockKey, now_ms: u64) -> Option<&Entry> {
        self.entries
            .get(key)
            .filter(|entry| now_ms <= entry.expires_ms)
    }

    /// Those after `after`, or all, in the order of their keys, expired ones among them.
    pub(super) fn after(
        &self,
        after: Option<&LockKey>,
    ) -> impl Iterator<Item = (&LockKey, &Entry)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.entries.range((from, Bound::Unbounded))
    }

    /// As [`get`](Self::get), to be changed.
    pub(super) fn get_mut(&mut self, key: &LockKey, now_ms: u64) -> Option<&mut Entry> {
        self.entries
            .get_mut(key)
            .filter(|entry| now_ms <= entry.expires_ms)
    }

    /// Replaces any entry of `key` by `entry`.
    pub(super) fn put(&mut self, key: &LockKey, entry: Entry, now_ms: u64) {
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, entry| now_ms <= entry.expires_ms);
            self.sweep_at = SWEEP_MIN.max(2 * self.entries.len());
        }
        self.entries.insert(key.clone(), entry);
    }

    /// Deletes the record of `key` if it is `nonce`'s. Answers whether it was.
    pub(super) fn remove(&mut self, key: &LockKey, nonce: Nonce, now_ms: u64) -> bool {
        let held = self
            .get(key, now_ms)
            .is_some_and(|entry| entry.record.nonce == nonce);
        if held {
            self.entries.remove(key);
        }
        held
    }
}
