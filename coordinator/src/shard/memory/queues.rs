//! The queues of all keys.

use hashbrown::HashMap;

use super::queue::{Queue, Stand, Waiter};
use crate::{ids::Nonce, name::LockKey};

/// Fewer queues than this are never swept: they cost little.
const SWEEP_MIN: usize = 1024;

/// The queue of every key that somebody waits for. One in which all have ended is never seen, and gone
/// for good at a later sweep.
#[derive(Debug)]
pub(super) struct Queues {
    queues: HashMap<LockKey, Queue>,
    /// As in [`Records`](super::records::Records).
    sweep_at: usize,
}

impl Queues {
    pub(super) fn new() -> Self {
        Self {
            queues: HashMap::new(),
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

    /// As [`Queue::enter`], in the queue of `key`.
    pub(super) fn enter(&mut self, key: &LockKey, waiter: Waiter, now_ms: u64) -> Option<Stand> {
        self.open(key, now_ms).enter(waiter, now_ms)
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
        let queue = self.queues.get_mut(key)?;
        if queue.has_ended(now_ms) {
            return None;
        }
        queue.first(now_ms)
    }
}
