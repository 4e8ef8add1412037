//! Holders and waiters.

use std::time::Duration;

use super::{
    armed::Armed,
    queue::{Queue, Waiter},
    records::Entry,
    state::Memory,
};
use crate::{
    limits::LIST_PAGE,
    name::LockKey,
    shard::{Cursor, HeldLock, Holder, Inspection, List, LockPage, QueuedWaiter, ShardError},
};

/// Some of the records, in their order.
pub(super) struct Page<'a> {
    pub(super) records: Vec<(&'a LockKey, &'a Entry)>,
    /// The end of this page, unless it is the last.
    pub(super) next: Option<Cursor>,
}

impl Memory {
    /// The holder of `key`, and its waiters.
    pub(super) fn inspect(&self, key: &LockKey, now_ms: u64) -> Result<Inspection, ShardError> {
        let armed = self.armed.as_ref().ok_or(ShardError::Unarmed)?;
        let entry = self.records.get(key, now_ms);
        let queue = self.queues.get(key, now_ms);
        let waiter = |waiter: &Waiter| QueuedWaiter {
            nonce: waiter.nonce,
            label: waiter.label.clone(),
        };
        Ok(Inspection {
            holder: entry.and_then(|entry| holder(armed, entry, now_ms)),
            waiters: queue
                .into_iter()
                .flat_map(|queue| queue.live(now_ms))
                .map(waiter)
                .collect(),
        })
    }

    /// A page of the locks that are held.
    pub(super) fn list(&self, list: &List, now_ms: u64) -> Result<LockPage, ShardError> {
        let armed = self.armed.as_ref().ok_or(ShardError::Unarmed)?;
        let namespace = list.namespace.as_ref();
        let Page { records, next } = self.page(list.after.as_ref(), LIST_PAGE, "list")?;
        let mut locks = Vec::new();
        for (key, entry) in records {
            let asked = namespace.is_none_or(|namespace| key.namespace() == namespace.as_str());
            if let Some(holder) = holder(armed, entry, now_ms).filter(|_| asked) {
                locks.push(HeldLock {
                    key: key.clone(),
                    holder,
                    waiting: self.queues.get(key, now_ms).map_or(0, Queue::len) as u32,
                });
            }
        }
        Ok(LockPage { locks, next })
    }

    /// The next `size` records behind the cursor, for a request of `what`.
    pub(super) fn page(
        &self,
        after: Option<&Cursor>,
        size: usize,
        what: &'static str,
    ) -> Result<Page<'_>, ShardError> {
        let after = after.map(|cursor| key_of(cursor, what)).transpose()?;
        let mut rest = self.records.after(after.as_ref());
        let records: Vec<_> = rest.by_ref().take(size).collect();
        let more = rest.next().is_some();
        let last = records.last().filter(|_| more);
        let next = last.map(|(key, _)| Cursor(key.text().to_vec()));
        Ok(Page { records, next })
    }
}

/// The key that a page ended with.
fn key_of(Cursor(text): &Cursor, what: &'static str) -> Result<LockKey, ShardError> {
    LockKey::parse(text).ok_or_else(|| ShardError::Refused {
        what,
        reason: "the cursor is another shard's".into(),
    })
}

/// The holder that `entry` tells of, if it is live.
fn holder(armed: &Armed, entry: &Entry, now_ms: u64) -> Option<Holder> {
    let Entry { record, expires_ms } = entry;
    let remaining_ms = expires_ms.checked_sub(now_ms)?;
    armed.is_live(entry, now_ms).then(|| Holder {
        nonce: record.nonce,
        label: record.label.clone(),
        token: record.token,
        tokens: record.tokens,
        remaining: Duration::from_millis(remaining_ms),
    })
}
