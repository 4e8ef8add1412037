//! Adopt and remove: how a holder takes its lock from one shard to the next.

use std::time::Duration;

use super::Context;
use crate::{
    ids::{Epoch, Nonce, Token},
    shard::{LockKind, LockMode, Mode, Record, Reply, SlotState},
};

impl Context<'_> {
    /// If the slot arrives by the move of `epoch`, makes `claim` a record. Its shares need no room: they had it at the
    /// former shard. A live mutex with a token that is not below `own`, the claim's at the former shard, keeps the key.
    /// The token of `claim` may be that of another shard, which says nothing about the order at the former one. If the
    /// record is the nonce's own, and the slot arrives or arrived by that move, extends it, and makes a lower token that
    /// of `claim`.
    pub(super) fn adopt(
        &mut self,
        claim: Record,
        mode: LockMode,
        own: Token,
        lease: Duration,
        epoch: Epoch,
    ) -> Reply {
        if !self.slot.arrives_by(epoch) {
            return Reply::NotAdopted;
        }
        if self.extend(claim.nonce, mode.shares(), lease) {
            let entry = self.lock.own(claim.nonce, self.armed, self.now_ms);
            let entry = entry.expect("it was extended");
            let (shares, token, told) = (entry.shares, entry.record.token, entry.record.told);
            if token < claim.token {
                self.bring(Record { told, ..claim }, (mode.kind(), shares), lease);
            }
        } else {
            if self.slot.mode == Mode::Open || !self.may_come(own, mode) {
                return Reply::NotAdopted;
            }
            self.bring(claim, (mode.kind(), mode.shares()), lease);
        }
        Reply::Adopted {
            contended: self.contended(),
        }
    }

    /// Makes `claim` a record, with the first of its tokens, and every later token of the shard greater than all of
    /// them.
    fn bring(&mut self, claim: Record, shares: (LockKind, u32), lease: Duration) {
        self.raise_above(&claim);
        self.install(Record { tokens: 1, ..claim }, shares, lease);
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
