//! Holders and waiters, for people and tools.

use std::time::Duration;

use super::{
    head::Armed,
    lock_state::{Entry, LockState},
    queue::{Queue, Waiter},
};
use crate::{
    name::LockKey,
    shard::{HeldLock, Holder, Inspection, LockKind, QueuedWaiter},
};

impl LockState {
    /// The holders and the waiters.
    pub(crate) fn inspect(&self, armed: &Armed, now_ms: u64) -> Inspection {
        let waiter = |waiter: &Waiter| QueuedWaiter {
            nonce: waiter.nonce,
            label: waiter.label.clone(),
            mode: waiter.mode,
            callers: waiter.ticket.callers,
        };
        let queue = self.queue(now_ms).into_iter();
        let mut holders = self.holders(armed, now_ms).into_iter();
        Inspection {
            holder: holders.next(),
            others: holders.collect(),
            waiters: queue
                .flat_map(|queue| queue.live(now_ms))
                .map(waiter)
                .collect(),
        }
    }

    /// The lock of `key`, if it is held.
    pub(crate) fn listed(&self, key: &LockKey, armed: &Armed, now_ms: u64) -> Option<HeldLock> {
        let mut holders = self.holders(armed, now_ms).into_iter();
        Some(HeldLock {
            key: key.clone(),
            holder: holders.next()?,
            others: holders.len() as u32,
            waiting: self.queue(now_ms).map_or(0, Queue::callers),
        })
    }

    /// The holders, by their tokens.
    fn holders(&self, armed: &Armed, now_ms: u64) -> Vec<Holder> {
        let holder = |entry: &Entry, kind| Holder {
            nonce: entry.record.nonce,
            label: entry.record.label.clone(),
            token: entry.record.token,
            tokens: entry.record.tokens,
            kind,
            shares: entry.shares,
            remaining: entry.expires.left(now_ms),
            held_for: Duration::from_millis(now_ms.saturating_sub(entry.since_ms)),
        };
        if let Some(entry) = self.live(armed, now_ms) {
            return vec![holder(entry, LockKind::Mutex)];
        }
        let Some(shares) = &self.shares else {
            return Vec::new();
        };
        let live = shares.live(armed, now_ms);
        let mut holders: Vec<_> = live.map(|entry| holder(entry, shares.kind)).collect();
        holders.sort_by_key(|holder| (holder.token, holder.nonce));
        holders
    }
}
