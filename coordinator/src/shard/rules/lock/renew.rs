//! Renew: extend a grant; in grace, put it back.

use std::time::Duration;

use super::Context;
use crate::{
    ids::Nonce,
    shard::{Mode, Record, Reply},
};

impl Context<'_> {
    /// Extends the grant of `claim`, or makes `claim` the record.
    pub(super) fn renew(&mut self, claim: Record, lease: Duration) -> Reply {
        let slot = self.slot();
        if slot.mode == Mode::Shut {
            return Reply::Moved { epoch: slot.epoch };
        }
        // A sealed slot has proved to others that a key without a live record is free.
        let may_be_here = slot.mode != Mode::Sealed || self.live().is_some();
        if may_be_here && self.extend(claim.nonce, lease) {
            return self.renewed(false);
        }
        if self.armed.timers.is_shut(self.now_ms) {
            return Reply::Moved { epoch: slot.epoch };
        }
        let found = self.lock.unexpired(self.now_ms);
        // A lower token is an older grant, which a stale replica may have brought back.
        let free = found.is_none_or(|entry| entry.record.token < claim.token);
        if !self.armed.timers.is_grace(self.now_ms) || !free {
            self.pass(None);
            return Reply::Lost;
        }
        self.raise_above(&claim);
        self.install(claim, lease);
        self.renewed(true)
    }

    /// Extends the record of `nonce` to a full lease, and makes it one of this arming. Returns whether there is one.
    pub(super) fn extend(&mut self, nonce: Nonce, lease: Duration) -> bool {
        let (expires_ms, arm) = (self.end_of(lease), self.armed.epoch);
        let found = self.lock.unexpired(self.now_ms);
        let own = found.filter(|entry| entry.record.nonce == nonce);
        own.map(|entry| {
            entry.expires_ms = expires_ms;
            entry.record.arm = arm;
        })
        .is_some()
    }

    /// Makes `claim` the record: its holder no longer waits.
    pub(super) fn install(&mut self, claim: Record, lease: Duration) {
        self.lock.leave(claim.nonce);
        self.write(claim, lease);
    }

    pub(super) fn renewed(&self, reclaimed: bool) -> Reply {
        let slot = self.slot();
        Reply::Renewed {
            reclaimed,
            contended: self.contended(),
            moving: (slot.mode == Mode::Sealed).then_some(slot.epoch),
        }
    }
}
