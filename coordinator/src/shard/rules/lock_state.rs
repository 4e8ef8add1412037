//! The document of one lock.

use super::{
    head::Armed,
    queue::{Place, Queue, Waiter},
};
use crate::{ids::Nonce, shard::Record};

/// The document of one lock: the record of its grant, and the queue of its waiters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LockState {
    pub(super) record: Option<Entry>,
    /// Boxed: most locks have none.
    queue: Option<Box<Queue>>,
}

/// A record and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) record: Record,
    /// The last millisecond of the record, by the shard's clock.
    pub(crate) expires_ms: u64,
}

impl LockState {
    /// Whether the document says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.record.is_none() && self.queue.is_none()
    }

    /// Whether the document has a record, which may have expired.
    pub(crate) fn has_record(&self) -> bool {
        self.record.is_some()
    }

    /// Drops an expired record, and a queue in which all waiters have ended.
    pub(crate) fn expire(&mut self, now_ms: u64) {
        self.record.take_if(|entry| entry.has_expired(now_ms));
        self.queue.take_if(|queue| queue.has_ended(now_ms));
    }

    /// The record, unless it has expired. It may be one of an earlier arming.
    pub(super) fn unexpired(&mut self, now_ms: u64) -> Option<&mut Entry> {
        let entry = self.record.as_mut();
        entry.filter(|entry| !entry.has_expired(now_ms))
    }

    /// The live record: the lock is held.
    pub(crate) fn live(&self, armed: &Armed, now_ms: u64) -> Option<&Entry> {
        let entry = self.record.as_ref();
        entry.filter(|entry| entry.is_live(armed, now_ms))
    }

    /// Deletes the record of `nonce`. Returns whether there was one.
    pub(super) fn delete(&mut self, nonce: Nonce, now_ms: u64) -> bool {
        let own = self.unexpired(now_ms);
        let held = own.is_some_and(|entry| entry.record.nonce == nonce);
        if held {
            self.record = None;
        }
        held
    }

    /// The queue, unless all waiters have ended.
    pub(super) fn queue(&self, now_ms: u64) -> Option<&Queue> {
        let queue = self.queue.as_deref();
        queue.filter(|queue| !queue.has_ended(now_ms))
    }

    /// As [`Queue::enter`].
    pub(super) fn enter(&mut self, waiter: Waiter, now_ms: u64) -> Option<Place> {
        self.queue.take_if(|queue| queue.has_ended(now_ms));
        self.queue.get_or_insert_default().enter(waiter, now_ms)
    }

    /// Removes `nonce` from the queue.
    pub(super) fn leave(&mut self, nonce: Nonce) {
        self.queue.take_if(|queue| {
            queue.remove(nonce);
            queue.is_empty()
        });
    }

    /// As [`Queue::first`].
    pub(super) fn first(&mut self, now_ms: u64) -> Option<&Waiter> {
        let queue = self.queue.as_mut();
        queue
            .filter(|queue| !queue.has_ended(now_ms))?
            .first(now_ms)
    }
}

impl Entry {
    /// Whether the record counts: it has not expired, and is of this arming. In grace, an earlier arming will do.
    fn is_live(&self, armed: &Armed, now_ms: u64) -> bool {
        let of_arming = self.record.arm == armed.epoch || armed.timers.is_grace(now_ms);
        of_arming && !self.has_expired(now_ms)
    }

    fn has_expired(&self, now_ms: u64) -> bool {
        now_ms > self.expires_ms
    }
}
