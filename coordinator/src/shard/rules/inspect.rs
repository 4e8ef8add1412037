//! Holders and waiters, for people and tools.

use std::time::Duration;

use super::{
    head::Armed,
    lock_state::LockState,
    queue::{Queue, Waiter},
};
use crate::{
    name::LockKey,
    shard::{HeldLock, Holder, Inspection, QueuedWaiter},
};

impl LockState {
    /// The holder and the waiters.
    pub(crate) fn inspect(&self, armed: &Armed, now_ms: u64) -> Inspection {
        let waiter = |waiter: &Waiter| QueuedWaiter {
            nonce: waiter.nonce,
            label: waiter.label.clone(),
        };
        let queue = self.queue(now_ms).into_iter();
        Inspection {
            holder: self.holder(armed, now_ms),
            waiters: queue
                .flat_map(|queue| queue.live(now_ms))
                .map(waiter)
                .collect(),
        }
    }

    /// The lock of `key`, if it is held.
    pub(crate) fn listed(&self, key: &LockKey, armed: &Armed, now_ms: u64) -> Option<HeldLock> {
        let holder = self.holder(armed, now_ms)?;
        Some(HeldLock {
            key: key.clone(),
            holder,
            waiting: self.queue(now_ms).map_or(0, Queue::len) as u32,
        })
    }

    fn holder(&self, armed: &Armed, now_ms: u64) -> Option<Holder> {
        let entry = self.live(armed, now_ms)?;
        let record = &entry.record;
        Some(Holder {
            nonce: record.nonce,
            label: record.label.clone(),
            token: record.token,
            tokens: record.tokens,
            remaining: Duration::from_millis(entry.expires_ms - now_ms),
        })
    }
}
