//! The queues of all keys.

use std::{collections::BTreeMap, ops::Bound};

use super::queue::{Along, Queue, Stand, Waiter};
use crate::{ids::Nonce, name::LockKey};

/// Fewer queues than this are never swept: they cost little.
const SWEEP_MIN: usize = 1024;

/// The queue of every key that somebody waits for. One in which all have ended is never seen, and gone
/// for good at a later sweep.
#[derive(Debug)]
pub(super) struct Queues {
    /// In the order of the records, slot by slot: they are scanned in pages together, and those of one slot
    /// lie together.
    queues: BTreeMap<LockKey, Queue>,
    /// As in [`Records`](super::records::Records).
    sweep_at: usize,
}

impl Queues {
    pub(super) fn new() -> Self {
        Self {
            queues: BTreeMap::new(),
            sweep_at: SWEEP_MIN,
        }
    }

    /// Queues kept, ended ones among them.
    pub(super) fn len(&self) -> usize {
        self.queues.len()
    }

    /// The queue of `key`.
    pub(super) fn get(&self, key: &LockKey, now_ms: u64) -> Option<&Queue> {
        let queue = self.queues.get(key);
        queue.filter(|queue| !queue.has_ended(now_ms))
    }

    /// Whether `key` has a queue.
    pub(super) fn wants(&self, key: &LockKey, now_ms: u64) -> bool {
        self.get(key, now_ms).is_some()
    }

    /// The keys after `after`, or all, that have queues, in their order, ended ones among them.
    pub(super) fn after(&self, after: Option<&LockKey>) -> impl Iterator<Item = &LockKey> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.queues.range((from, Bound::Unbounded));
        rest.map(|(key, _)| key)
    }

    /// As [`Queue::enter`], in the queue of `key`.
    pub(super) fn enter(&mut self, key: &LockKey, waiter: Waiter, now_ms: u64) -> Option<Stand> {
        self.open(key, now_ms).enter(waiter, now_ms)
    }

    /// As [`Queue::carry`], in the queue of `key`.
    pub(super) fn carry(&mut self, key: &LockKey, waiter: Waiter, along: Along, now_ms: u64) {
        self.open(key, now_ms).carry(waiter, along, now_ms);
    }

    /// The queue of `key`, a new one if all have ended.
    fn open(&mut self, key: &LockKey, now_ms: u64) -> &mut Queue {
        if !self.wants(key, now_ms) {
            if self.queues.len() >= self.sweep_at {
                self.queues.retain(|_, queue| !queue.has_ended(now_ms));
                self.sweep_at = SWEEP_MIN.max(2 * self.queues.len());
            }
            self.queues.insert(key.clone(), Queue::default());
        }
        self.queues.get_mut(key).expect("it was there, or was made")
    }

    /// Takes `nonce` out of the queue of `key`.
    pub(super) fn remove(&mut self, key: &LockKey, nonce: Nonce) {
        let Some(queue) = self.queues.get_mut(key) else {
            return;
        };
        queue.remove(nonce);
        if queue.is_empty() {
            self.queues.remove(key);
        }
    }

    /// As [`Queue::first`], in the queue of `key`.
    pub(super) fn first(&mut self, key: &LockKey, now_ms: u64) -> Option<&Waiter> {
        self.live(key, now_ms)?.first(now_ms)
    }

    /// As [`Queue::first_came_along`], in the queue of `key`.
    pub(super) fn first_came_along(&mut self, key: &LockKey, now_ms: u64) -> bool {
        let queue = self.live(key, now_ms);
        queue.is_some_and(|queue| queue.first_came_along(now_ms))
    }

    fn live(&mut self, key: &LockKey, now_ms: u64) -> Option<&mut Queue> {
        let queue = self.queues.get_mut(key)?;
        (!queue.has_ended(now_ms)).then_some(queue)
    }
}
