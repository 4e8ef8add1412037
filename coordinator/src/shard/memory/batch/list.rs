//! A list: what the former shard of slots that come here has left.

use std::collections::BTreeSet;

use ringfence_ring::Slot;

use super::{
    super::queue::{Along, Waiter},
    Batch,
};
use crate::{
    limits::TICKET_KEEP,
    shard::{Left, Listing, Mode, SlotState},
};

impl Batch<'_> {
    /// Takes a list, and passes on what it frees. Answers the slots that do not come here by that move.
    pub(in super::super) fn take_list(&mut self, listing: &Listing) -> Vec<Slot> {
        let comes = SlotState {
            mode: Mode::Import,
            epoch: listing.epoch,
        };
        let slots = listing.left.iter().map(|left| left.key.slot());
        let mut refused: BTreeSet<_> = slots.chain(listing.complete.iter().copied()).collect();
        refused.retain(|slot| self.armed.slots.get(*slot) != comes);

        let is_taken = |left: &&Left| !refused.contains(&left.key.slot());
        for left in listing.left.iter().filter(is_taken) {
            if left.held {
                self.armed.imports.name(&left.key);
            }
            self.carry(left);
        }
        for slot in listing
            .complete
            .iter()
            .filter(|slot| !refused.contains(*slot))
        {
            self.armed.imports.complete(*slot);
        }
        for left in listing.left.iter().filter(is_taken) {
            self.pass(&left.key, None);
        }
        refused.into_iter().collect()
    }

    /// Queues the waiters of a key from the former shard.
    fn carry(&mut self, Left { key, waiting, .. }: &Left) {
        let holder = self.live(key).map(|entry| entry.record.nonce);
        for waits in waiting {
            // It has been brought along, or granted the key here.
            if holder == Some(waits.nonce) {
                continue;
            }
            let waiter = Waiter {
                nonce: waits.nonce,
                label: waits.label.clone(),
                tokens: waits.tokens,
                ticket: waits.ticket,
                ends_ms: self.end_of(TICKET_KEEP),
            };
            self.queues.carry(key, waiter, Along::List, self.now_ms);
        }
    }
}
