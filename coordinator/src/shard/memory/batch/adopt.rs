//! Adopt and remove: how a holder takes its lock from one shard to the next.

use std::time::Duration;

use super::Batch;
use crate::{
    ids::{Epoch, Nonce},
    name::LockKey,
    shard::{Mode, Record, Reply, SlotState},
};

impl Batch<'_> {
    /// Extends the grant that `claim` is of, or makes `claim` its record: if the slot comes here, or came,
    /// by the move of `epoch`.
    pub(super) fn adopt(
        &mut self,
        key: &LockKey,
        claim: Record,
        lease: Duration,
        of_move: Epoch,
    ) -> Reply {
        let SlotState { mode, epoch } = self.armed.slots.get(key.slot());
        let comes = matches!(mode, Mode::Import | Mode::Open) && epoch == of_move;
        if !comes || self.now_ms < self.armed.shut_until_ms {
            return Reply::NotAdopted;
        }
        if !self.extend(key, claim.nonce, lease) {
            let live = self.live(key);
            let free = live.is_none_or(|entry| entry.record.token < claim.token);
            if mode == Mode::Open || !free {
                return Reply::NotAdopted;
            }
            self.install(key, claim, lease);
        }
        Reply::Adopted {
            contended: self.contended(key),
        }
    }

    /// Deletes the record of `key` if it has `nonce`, and if the slot leaves by the move of
    /// `epoch`. Its waiters wait at its next shard.
    pub(super) fn remove(&mut self, key: &LockKey, nonce: Nonce, epoch: Epoch) -> Reply {
        let mode = Mode::Sealed;
        let leaves = self.armed.slots.get(key.slot()) == SlotState { mode, epoch };
        Reply::Released {
            held: leaves && self.records.remove(key, nonce, self.now_ms),
        }
    }
}
