//! Slots that change hands: what a mover does, and what it learns.

use std::{collections::BTreeSet, time::Duration};

use ringfence_ring::Slot;

use super::{inspect::Page, state::Memory};
use crate::{
    limits::SCAN_PAGE,
    name::LockKey,
    shard::{
        HeldStill, Listing, Mode, Scan, ScanPage, ShardError, SlotState, Step, Stepped, StillHeld,
    },
};

impl Memory {
    /// Changes the mode of slots.
    pub(super) fn step(&mut self, step: &Step, now_ms: u64) -> Result<Stepped, ShardError> {
        self.hear_of(step.incarnation, &step.copy)?;
        let armed = self.armed.as_mut().ok_or(ShardError::Unarmed)?;
        let Step {
            map, epoch, mode, ..
        } = *step;
        armed.quiet = armed.quiet.filter(|quiet| *quiet == map);
        let is_refused = |slot: &Slot| !armed.change(*slot, SlotState { mode, epoch });
        let refused = step.slots.iter().copied().filter(is_refused).collect();
        armed.raise(step.above);
        let stepped = Stepped {
            last_token: armed.last_token(),
            grace_left: armed.grace_left(now_ms),
            refused,
        };
        self.saw(epoch.max(step.above.epoch()));
        if mode == Mode::Sealed {
            self.drop_asides(&step.slots, epoch);
        }
        Ok(stepped)
    }

    /// A page of the keys that are held in slots that are sealed.
    pub(super) fn scan(&self, scan: &Scan, now_ms: u64) -> Result<ScanPage, ShardError> {
        let armed = self.armed.as_ref().ok_or(ShardError::Unarmed)?;
        let grace_left = armed.grace_left(now_ms);
        if !grace_left.is_zero() {
            return Ok(ScanPage {
                grace_left,
                held: Vec::new(),
                next: None,
            });
        }
        let sealed = SlotState {
            mode: Mode::Sealed,
            epoch: scan.epoch,
        };
        let Page { records, next } = self.page(scan.after.as_ref(), SCAN_PAGE, "scan")?;
        let keys = records.into_iter().map(|(key, _)| key);
        let is_held =
            |key: &&LockKey| armed.slots.get(key.slot()) == sealed && self.is_held(key, now_ms);
        Ok(ScanPage {
            grace_left,
            held: keys.filter(is_held).cloned().collect(),
            next,
        })
    }

    /// Takes what a mover found at the former shard of slots that come here. Answers the slots that
    /// do not come here by that move.
    pub(super) fn take_list(&mut self, listing: &Listing) -> Result<Vec<Slot>, ShardError> {
        let armed = self.armed.as_mut().ok_or(ShardError::Unarmed)?;
        let comes = SlotState {
            mode: Mode::Import,
            epoch: listing.epoch,
        };
        let slots = listing.held.iter().map(LockKey::slot);
        let mut refused: BTreeSet<_> = slots.chain(listing.complete.iter().copied()).collect();
        refused.retain(|slot| armed.slots.get(*slot) != comes);

        let held = listing.held.iter();
        for key in held.filter(|key| !refused.contains(&key.slot())) {
            armed.imports.name(key);
        }
        let complete = listing.complete.iter();
        for slot in complete.filter(|slot| !refused.contains(*slot)) {
            armed.imports.complete(*slot);
        }
        Ok(refused.into_iter().collect())
    }

    /// The keys that are still held in sealed slots.
    pub(super) fn still_held(
        &self,
        still: &StillHeld,
        now_ms: u64,
    ) -> Result<HeldStill, ShardError> {
        let armed = self.armed.as_ref().ok_or(ShardError::Unarmed)?;
        let grace_left = armed.grace_left(now_ms);
        if !grace_left.is_zero() {
            return Ok(HeldStill {
                grace_left,
                keys: Vec::new(),
                refused: Vec::new(),
            });
        }
        let leaves = |slot: Slot| {
            let SlotState { mode, epoch } = armed.slots.get(slot);
            matches!(mode, Mode::Sealed | Mode::Shut) && epoch == still.epoch
        };
        let is_held = |key: &&LockKey| self.is_held(key, now_ms);
        Ok(HeldStill {
            grace_left: Duration::ZERO,
            keys: still.keys.iter().filter(is_held).cloned().collect(),
            refused: still
                .slots
                .iter()
                .copied()
                .filter(|slot| !leaves(*slot))
                .collect(),
        })
    }

    /// Whether `key` has a live record.
    fn is_held(&self, key: &LockKey, now_ms: u64) -> bool {
        let (entry, armed) = (self.records.get(key, now_ms), self.armed.as_ref());
        entry
            .zip(armed)
            .is_some_and(|(entry, armed)| armed.is_live(entry, now_ms))
    }
}
