//! The documents of all locks.

use std::{collections::BTreeMap, ops::Bound};

use crate::{
    name::LockKey,
    shard::rules::{self, LockState},
};

/// With fewer documents than this there is no sweep: they cost nothing.
const SWEEP_MIN: usize = 1024;

/// The documents of all locks that are held, or have waiters. Expired ones go at a later sweep.
#[derive(Debug)]
pub(super) struct Locks {
    /// In an order, so that they can be listed in pages.
    documents: BTreeMap<LockKey, LockState>,
    /// The number of documents at which the next sweep is: twice as many as the last one left, so that sweeps cost a
    /// constant per insertion.
    sweep_at: usize,
}

impl Locks {
    pub(super) fn new() -> Self {
        Self {
            documents: BTreeMap::new(),
            sweep_at: SWEEP_MIN,
        }
    }

    /// The number of documents, including expired ones.
    pub(super) fn len(&self) -> usize {
        self.documents.len()
    }

    /// The document of `key`, if there is one.
    pub(super) fn get(&self, key: &LockKey) -> Option<&LockState> {
        self.documents.get(key)
    }

    /// The documents after `after`, or all, in the order of their keys. Those without a record are left out; records may
    /// have expired.
    pub(super) fn after(
        &self,
        after: Option<&LockKey>,
    ) -> impl Iterator<Item = (&LockKey, &LockState)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let documents = self.documents.range((from, Bound::Unbounded));
        documents.filter(|(_, lock)| lock.has_record())
    }

    /// Drops expired documents, if there are too many.
    fn sweep(&mut self, now_ms: u64) {
        if self.documents.len() < self.sweep_at {
            return;
        }
        self.documents.retain(|_, lock| {
            lock.expire(now_ms);
            !lock.is_empty()
        });
        self.sweep_at = SWEEP_MIN.max(2 * self.documents.len());
    }
}

impl rules::Locks for Locks {
    fn change<T>(
        &mut self,
        key: &LockKey,
        now_ms: u64,
        change: impl FnOnce(&mut LockState) -> T,
    ) -> T {
        if let Some(lock) = self.documents.get_mut(key) {
            let answer = change(lock);
            if lock.is_empty() {
                self.documents.remove(key);
            }
            return answer;
        }
        let mut lock = LockState::default();
        let answer = change(&mut lock);
        if !lock.is_empty() {
            self.sweep(now_ms);
            self.documents.insert(key.clone(), lock);
        }
        answer
    }
}
