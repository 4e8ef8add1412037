//! Adopt and remove: how a holder takes its lock from one shard to the next.

use std::time::Duration;

use super::Context;
use crate::{
    ids::{Epoch, Nonce},
    shard::{Mode, Record, Reply, SlotState},
};

impl Context<'_> {
    /// Extends the grant of `claim`, or makes `claim` the record, if the slot arrives or arrived by the move of
    /// `epoch`.
    pub(super) fn adopt(&mut self, claim: Record, lease: Duration, epoch: Epoch) -> Reply {
        if !self.slot.arrives_by(epoch) || self.armed.timers.is_shut(self.now_ms) {
            return Reply::NotAdopted;
        }
        if !self.extend(claim.nonce, lease) {
            let live = self.live();
            let free = live.is_none_or(|entry| entry.record.token < claim.token);
            if self.slot.mode == Mode::Open || !free {
                return Reply::NotAdopted;
            }
            self.raise_above(&claim);
            self.install(claim, lease);
        }
        Reply::Adopted {
            contended: self.contended(),
        }
    }

    /// Deletes the record of `nonce`, if the slot leaves by the move of `epoch`. The waiters wait at the next shard.
    pub(super) fn remove(&mut self, nonce: Nonce, epoch: Epoch) -> Reply {
        let mode = Mode::Sealed;
        let leaves = self.slot == SlotState { mode, epoch };
        Reply::Released {
            held: leaves && self.lock.delete(nonce, self.now_ms),
        }
    }
}
