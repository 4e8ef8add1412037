//! Renew: extend a grant; in grace, put it back.

use std::time::Duration;

use super::Batch;
use crate::{
    ids::Nonce,
    name::LockKey,
    shard::{Mode, Record, Reply},
};

impl Batch<'_> {
    /// Extends the grant that `claim` is of, or makes `claim` its record.
    pub(super) fn renew(&mut self, key: &LockKey, claim: Record, lease: Duration) -> Reply {
        let slot = self.slot(key);
        if slot.mode == Mode::Shut {
            return Reply::Moved { epoch: slot.epoch };
        }
        // A sealed slot has proved to others that a key without a live record is free.
        let may_be_here = slot.mode != Mode::Sealed || self.live(key).is_some();
        if may_be_here && self.extend(key, claim.nonce, lease) {
            return self.renewed(key, false);
        }
        if self.now_ms < self.armed.shut_until_ms {
            return Reply::Moved { epoch: slot.epoch };
        }
        let found = self.records.get_mut(key, self.now_ms);
        // A lower token is an older grant, which a stale replica may have brought back.
        let free = found.is_none_or(|entry| entry.record.token < claim.token);
        if self.now_ms >= self.armed.grace_until_ms || !free {
            self.pass(key, None);
            return Reply::Lost;
        }
        self.install(key, claim, lease);
        self.renewed(key, true)
    }

    /// Makes what `nonce` has of `key` last for a full lease, and this arming's. Answers whether it has it.
    pub(super) fn extend(&mut self, key: &LockKey, nonce: Nonce, lease: Duration) -> bool {
        let (expires_ms, arm) = (self.end_of(lease), self.armed.epoch);
        let found = self.records.get_mut(key, self.now_ms);
        let own = found.filter(|entry| entry.record.nonce == nonce);
        own.map(|entry| {
            entry.expires_ms = expires_ms;
            entry.record.arm = arm;
        })
        .is_some()
    }

    /// Makes `claim` the record of `key`: its holder no longer waits for it.
    pub(super) fn install(&mut self, key: &LockKey, claim: Record, lease: Duration) {
        self.queues.remove(key, claim.nonce);
        self.write(key, claim, lease);
    }

    fn renewed(&self, key: &LockKey, reclaimed: bool) -> Reply {
        let slot = self.slot(key);
        Reply::Renewed {
            reclaimed,
            contended: self.contended(key),
            moving: (slot.mode == Mode::Sealed).then_some(slot.epoch),
        }
    }
}
