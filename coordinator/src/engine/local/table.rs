//! The local queues of some keys.

use std::sync::{Arc, Weak};

use hashbrown::HashMap;

use super::{KeyQueue, Lease, LeaseState, Terms};
use crate::{clock::Instant, ids::Nonce, name::LockKey};

/// Some of the local queues.
#[derive(Default)]
pub(super) struct Table {
    pub(super) keys: HashMap<LockKey, KeyQueue>,
    /// The queues of shares. They are held at the same time, so each has its own record: one of readers, one of writers,
    /// or that of the only acquisition in its queue.
    pub(super) shares: HashMap<u64, (LockKey, KeyQueue)>,
    /// The queue to which readers of a key come, if any may still come to one.
    pub(super) readers: HashMap<LockKey, u64>,
    /// The queue to which writers of a key come, as long as it is not empty.
    pub(super) writers: HashMap<LockKey, u64>,
    /// Locks whose holders are outside of this process: they learn that others wait.
    pub(super) detached: HashMap<Nonce, Weak<dyn Lease>>,
}

/// A local queue: that of a key, or of a share of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    pub(super) key: &'a LockKey,
    /// 0: that of the key.
    pub(super) share: u64,
}

impl<'a> From<&'a LeaseState> for At<'a> {
    fn from(lease: &'a LeaseState) -> Self {
        Self {
            key: &lease.key,
            share: lease.share(),
        }
    }
}

impl Table {
    /// That queue, which may be new.
    pub(super) fn entry(&mut self, at: At<'_>) -> &mut KeyQueue {
        match at.share {
            0 => self.keys.entry(at.key.clone()).or_default(),
            share => {
                let new = || (at.key.clone(), KeyQueue::default());
                &mut self.shares.entry(share).or_insert_with(new).1
            }
        }
    }

    pub(super) fn get(&mut self, at: At<'_>) -> Option<&mut KeyQueue> {
        match at.share {
            0 => self.keys.get_mut(at.key),
            share => self.shares.get_mut(&share).map(|(_, queue)| queue),
        }
    }

    pub(super) fn remove(&mut self, at: At<'_>) {
        match at.share {
            0 => self.keys.remove(at.key),
            share => {
                for queues in [&mut self.readers, &mut self.writers] {
                    if queues.get(at.key) == Some(&share) {
                        queues.remove(at.key);
                    }
                }
                self.shares.remove(&share).map(|(_, queue)| queue)
            }
        };
    }

    /// Whether the queue `share` is open to another acquisition, on `terms`.
    pub(super) fn is_open(&self, share: u64, terms: &Terms, now: Instant) -> bool {
        let terms = Terms {
            share,
            ..terms.clone()
        };
        let queue = self.shares.get(&share);
        queue.is_some_and(|(_, queue)| queue.is_open(&terms, now))
    }

    /// The lease that `of` finds in a queue: the one with this nonce, or that of the key, whatever its nonce.
    pub(super) fn find(
        &self,
        key: &LockKey,
        nonce: Nonce,
        of: fn(&KeyQueue) -> Option<&Arc<dyn Lease>>,
    ) -> Option<Arc<dyn Lease>> {
        let of_key = self.keys.get(key).and_then(of);
        // First the key's, which is found at once.
        let is_it = |lease: &&Arc<dyn Lease>| lease.has(nonce);
        let of_share = || {
            let queues = self.shares.values().map(|(_, queue)| queue);
            queues.filter_map(of).find(is_it)
        };
        let lease = of_key.filter(is_it).or_else(of_share).or(of_key);
        lease.cloned()
    }

    /// All queues.
    pub(super) fn places(&self) -> Vec<(LockKey, u64)> {
        let keys = self.keys.keys().map(|key| (key.clone(), 0));
        let shares = self.shares.iter();
        let shares = shares.map(|(share, (key, _))| (key.clone(), *share));
        keys.chain(shares).collect()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &KeyQueue> {
        let shares = self.shares.values().map(|(_, queue)| queue);
        self.keys.values().chain(shares)
    }
}
