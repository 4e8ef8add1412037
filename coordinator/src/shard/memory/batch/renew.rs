//! Renew: extend a grant; in grace, put it back.

use std::time::Duration;

use super::Batch;
use crate::{
    name::LockKey,
    shard::{Mode, Record, Reply},
};

impl Batch<'_> {
    /// Extends the grant that `claim` is of, or makes `claim` its record.
    pub(super) fn renew(&mut self, key: &LockKey, claim: Record, lease: Duration) -> Reply {
        let slot = self.armed.slots.get(key.slot());
        if !self.quiet && slot.mode == Mode::Shut {
            return Reply::Moved { epoch: slot.epoch };
        }
        let (now_ms, expires_ms) = (self.now_ms, self.end_of(lease));
        let free = match self.records.get_mut(key, now_ms) {
            Some(entry) if entry.record.nonce == claim.nonce => {
                entry.expires_ms = expires_ms;
                entry.record.arm = claim.arm;
                return self.renewed(key, false);
            }
            // A lower token is an older grant, which a stale replica may have brought back.
            found => found.is_none_or(|entry| entry.record.token < claim.token),
        };
        if now_ms < self.armed.shut_until_ms {
            return Reply::Moved { epoch: slot.epoch };
        }
        if now_ms >= self.armed.grace_until_ms || !free {
            self.pass(key, None);
            return Reply::Lost;
        }
        self.queues.remove(key, claim.nonce);
        self.write(key, claim, lease);
        self.renewed(key, true)
    }

    fn renewed(&self, key: &LockKey, reclaimed: bool) -> Reply {
        Reply::Renewed {
            reclaimed,
            wanted: self.wanted(key),
            moving: None,
        }
    }
}
