//! Slots that change hands: the steps of a mover, and its questions.

use std::{collections::BTreeSet, time::Duration};

use ringfence_ring::Slot;

use super::{
    head::{Armed, Head},
    lock_state::LockState,
    slots::Slots,
};
use crate::{
    ids::Epoch,
    name::LockKey,
    shard::{Admit, HeldStill, Listing, Mode, ShardError, SlotState, Step, Stepped, StillHeld},
};

/// Changes the mode of slots.
pub(crate) fn step(
    head: &mut Head,
    slots: &mut Slots,
    step: &Step,
    now_ms: u64,
) -> Result<Stepped, ShardError> {
    head.see_record(step.incarnation, &step.copy)?;
    let armed = head.armed_mut()?;
    let Step {
        map, epoch, mode, ..
    } = *step;
    armed.quiet = armed.quiet.filter(|quiet| *quiet == map);
    armed.tokens.raise(step.above);
    let is_refused = |slot: &Slot| !slots.change(*slot, SlotState { mode, epoch });
    let stepped = Stepped {
        last_token: armed.tokens.last(),
        grace_left: armed.grace.left(now_ms),
        refused: step.slots.iter().copied().filter(is_refused).collect(),
    };
    head.see_epoch(epoch.max(step.above.epoch()));
    Ok(stepped)
}

/// Takes the keys that a mover found at the former shard of arriving slots. Returns the slots that do not arrive by
/// that move.
pub(crate) fn take_list(
    head: &Head,
    slots: &mut Slots,
    listing: &Listing,
) -> Result<Vec<Slot>, ShardError> {
    head.armed()?;
    let mut refused = BTreeSet::new();
    for key in &listing.held {
        match slots.import_by(key.slot(), listing.epoch) {
            Some(import) => import.list(key),
            None => drop(refused.insert(key.slot())),
        }
    }
    for slot in &listing.complete {
        match slots.import_by(*slot, listing.epoch) {
            Some(import) => import.complete = true,
            None => drop(refused.insert(*slot)),
        }
    }
    Ok(refused.into_iter().collect())
}

/// Takes it that all counters of slots are here. Returns the slots that do not arrive by that move, or of which no mover
/// has said yet which tokens their former shard made.
pub(crate) fn admit(
    head: &Head,
    slots: &mut Slots,
    admit: &Admit,
) -> Result<Vec<Slot>, ShardError> {
    head.armed()?;
    let mut is_refused = |slot: &Slot| {
        let arrives = slots.get(*slot).arrives_by(admit.epoch);
        match slots.import(*slot) {
            Some(import) if arrives && import.begun => {
                import.admitted = true;
                false
            }
            Some(_) => true,
            None => !arrives,
        }
    };
    let slots = admit.slots.iter().copied();
    Ok(slots.filter(|slot| is_refused(slot)).collect())
}

/// The keys of `page` that are held in slots that are sealed at `epoch`. Ask only after grace: before that, records
/// may still be put back.
pub(crate) fn scan<'a>(
    armed: &Armed,
    slots: &Slots,
    epoch: Epoch,
    page: impl IntoIterator<Item = (&'a LockKey, &'a LockState)>,
    now_ms: u64,
) -> Vec<LockKey> {
    let sealed = SlotState {
        mode: Mode::Sealed,
        epoch,
    };
    let locks = page.into_iter();
    let held = locks.filter(|(key, lock)| {
        slots.get(key.slot()) == sealed && lock.held(armed, now_ms).is_some()
    });
    held.map(|(key, _)| key.clone()).collect()
}

/// The keys that are still held in sealed slots. `is_held` tells whether a key has a live record.
pub(crate) fn still_held(
    armed: &Armed,
    slots: &Slots,
    still: &StillHeld,
    is_held: impl Fn(&LockKey) -> bool,
    now_ms: u64,
) -> HeldStill {
    let grace_left = armed.grace.left(now_ms);
    if !grace_left.is_zero() {
        return HeldStill {
            grace_left,
            keys: Vec::new(),
            refused: Vec::new(),
        };
    }
    let leaves = |slot: &Slot| slots.get(*slot).leaves_by(still.epoch);
    let is_held = |key: &&LockKey| is_held(key);
    HeldStill {
        grace_left: Duration::ZERO,
        keys: still.keys.iter().filter(is_held).cloned().collect(),
        refused: still
            .slots
            .iter()
            .copied()
            .filter(|slot| !leaves(slot))
            .collect(),
    }
}
