//! Adopt and remove: how a holder takes its lock from one shard to the next.

use std::time::Duration;

use super::Context;
use crate::{
    ids::{Epoch, Nonce, Token},
    shard::{Mode, Record, Reply, SlotState},
};

impl Context<'_> {
    /// If the slot arrives by the move of `epoch`, makes `claim` the record, unless there is a live one with a token
    /// that is not below `own`, the claim's at the former shard. The token of `claim` may be that of another shard,
    /// which says nothing about the order at the former one. If the record is the nonce's own, and the slot arrives or
    /// arrived by that move, extends it, and makes a lower token that of `claim`.
    pub(super) fn adopt(
        &mut self,
        claim: Record,
        own: Token,
        lease: Duration,
        epoch: Epoch,
    ) -> Reply {
        if !self.slot.arrives_by(epoch) || self.armed.timers.is_shut(self.now_ms) {
            return Reply::NotAdopted;
        }
        if self.extend(claim.nonce, lease) {
            let entry = self.lock.record.as_ref().expect("it was extended");
            let Record { token, told, .. } = entry.record;
            if token < claim.token {
                self.bring(Record { told, ..claim }, lease);
            }
        } else {
            let free = self.live().is_none_or(|entry| entry.record.token < own);
            if self.slot.mode == Mode::Open || !free {
                return Reply::NotAdopted;
            }
            self.bring(claim, lease);
        }
        Reply::Adopted {
            contended: self.contended(),
        }
    }

    /// Makes `claim` the record, with the first of its tokens, and every later token of the shard greater than all of
    /// them.
    fn bring(&mut self, claim: Record, lease: Duration) {
        self.raise_above(&claim);
        self.install(Record { tokens: 1, ..claim }, lease);
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
