//! Which local queue an acquisition of a share takes.

use std::sync::atomic::Ordering::Relaxed;

use super::{At, LeaseState, LocalQueues, Table, Terms};
use crate::{clock::Instant, name::LockKey, shard::LockMode};

impl LocalQueues {
    /// The local queue for an acquisition: the key's, or one of its own for a share.
    pub(crate) fn place_for(&self, mode: LockMode) -> u64 {
        match mode {
            LockMode::Exclusive => 0,
            _ => self.shares.fetch_add(1, Relaxed) + 1,
        }
    }

    /// The same for an acquisition of `key` on `terms`: for a reader or a writer, the queue of those whose record it may
    /// have. A queue of writers that is not open to it stays the one that others come to, and the only one that hands on.
    pub(super) fn place_in(
        &self,
        table: &mut Table,
        key: &LockKey,
        terms: &Terms,
        now: Instant,
    ) -> u64 {
        let may_join = terms.queue_together() && self.sharing.handoff.max > 0;
        let is_shared = terms.is_shared();
        let queues = match is_shared {
            true => &table.readers,
            false => &table.writers,
        };
        let present = queues.get(key).copied().filter(|_| may_join);
        if let Some(open) = present.filter(|share| table.is_open(*share, terms, now)) {
            return open;
        }
        let share = self.place_for(terms.mode);
        if may_join && is_shared {
            table.readers.insert(key.clone(), share);
        } else if may_join && present.is_none() {
            table.writers.insert(key.clone(), share);
        }
        share
    }

    /// Makes the writer that has `lease` a reader, in a queue of its own: what it has is not for the writers that wait for
    /// it. Returns whether it was a writer.
    pub(super) fn downgrade(&self, lease: &LeaseState) -> bool {
        let now = self.now();
        let mut table = self.table(&lease.key).lock();
        let (at, share) = (At::from(lease), self.place_for(LockMode::Read));
        if !lease.downgrade(share) {
            return false;
        }
        let Some(queue) = table.get(at) else {
            return true;
        };
        let own = queue.split_off(lease.nonce);
        let due = self.next_effects(at, queue, now);
        if queue.is_empty() {
            table.remove(at);
        }
        let own = own.map(|own| (share, (lease.key.clone(), own)));
        table.shares.extend(own);
        drop(table);
        self.perform(due);
        true
    }
}
