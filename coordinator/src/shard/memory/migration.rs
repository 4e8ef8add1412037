//! Slots that change hands: what a mover does, and what it learns.

use std::{collections::BTreeSet, time::Duration};

use ringfence_ring::Slot;

use super::{
    inspect::key_of,
    queue::{Queue, Waiter},
    state::Memory,
};
use crate::{
    ids::MapVersion,
    limits::{CARRIED_MAX, SCAN_PAGE},
    name::LockKey,
    shard::{
        Cursor, HeldStill, Left, Listing, Mode, Scan, ScanPage, ShardError, SlotState, Step,
        Stepped, StillHeld, Waits,
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

    /// A page of what is left in slots that are sealed.
    pub(super) fn scan(&self, scan: &Scan, now_ms: u64) -> Result<ScanPage, ShardError> {
        let armed = self.armed.as_ref().ok_or(ShardError::Unarmed)?;
        let grace_left = armed.grace_left(now_ms);
        if !grace_left.is_zero() {
            return Ok(ScanPage {
                grace_left,
                left: Vec::new(),
                next: None,
            });
        }
        let sealed = SlotState {
            mode: Mode::Sealed,
            epoch: scan.epoch,
        };
        let (keys, next) = self.keys_after(scan.after.as_ref())?;
        let leaves = |key: &&LockKey| armed.slots.get(key.slot()) == sealed;
        let leaving = keys.into_iter().filter(leaves);
        Ok(ScanPage {
            grace_left,
            left: leaving.filter_map(|key| self.left(key, now_ms)).collect(),
            next,
        })
    }

    /// A page of the keys that have a record or a queue, which lie in one order, and where the next begins.
    fn keys_after(
        &self,
        after: Option<&Cursor>,
    ) -> Result<(Vec<&LockKey>, Option<Cursor>), ShardError> {
        let after = after.map(|cursor| key_of(cursor, "scan")).transpose()?;
        let records = self.records.after(after.as_ref()).map(|(key, _)| key);
        let queues = self.queues.after(after.as_ref());
        // One more of each than a page has: so it is known whether this is the last.
        let (records, queues) = (records.take(SCAN_PAGE + 1), queues.take(SCAN_PAGE + 1));
        let keys: BTreeSet<_> = records.chain(queues).collect();
        let page: Vec<_> = keys.iter().copied().take(SCAN_PAGE).collect();
        let last = page.last().filter(|_| keys.len() > SCAN_PAGE);
        let next = last.map(|key| Cursor(key.text().to_vec()));
        Ok((page, next))
    }

    /// What is left of `key`, if anything is.
    fn left(&self, key: &LockKey, now_ms: u64) -> Option<Left> {
        let waits = |waiter: &Waiter| Waits {
            nonce: waiter.nonce,
            label: waiter.label.clone(),
            tokens: waiter.tokens,
            ticket: waiter.ticket,
        };
        let queue = self.queues.get(key, now_ms).into_iter();
        let waiting = queue.flat_map(|queue: &Queue| queue.live(now_ms));
        let left = Left {
            key: key.clone(),
            held: self.is_held(key, now_ms),
            waiting: waiting.take(CARRIED_MAX).map(waits).collect(),
        };
        (left.held || !left.waiting.is_empty()).then_some(left)
    }

    /// Takes what a mover found at the former shard of slots that come here.
    pub(super) fn take_list(
        &mut self,
        listing: &Listing,
        now_ms: u64,
    ) -> Result<Vec<Slot>, ShardError> {
        let mut batch = self.batch(MapVersion::UNKNOWN, now_ms)?;
        Ok(batch.take_list(listing))
    }

    /// What is still held in slots that are sealed.
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
