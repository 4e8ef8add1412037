//! The keys left at a former shard, until none is left.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_ring::Slot;

use super::{
    lives::Lives,
    shards::{Shards, Trouble},
};
use crate::{
    failpoint::{Rule, is_off},
    ids::Token,
    limits::{SCAN_PAGE, STEP_SLOTS},
    name::LockKey,
    shard::StillHeld,
    topology::{Migration, Topology},
};

/// The rest of a move after its next shard got the list.
#[derive(Debug)]
pub(super) struct Remains {
    /// The next shard's tokens must be above this one.
    pub(super) above: Token,
    /// Of both shards. After a change of either, the move begins anew.
    pub(super) lives: Option<Lives>,
    /// Slots that may still have held keys, and the keys held in them.
    held: BTreeMap<Slot, BTreeSet<LockKey>>,
    /// Slots found empty of locks: their counters were carried before they were listed.
    empty: BTreeSet<Slot>,
    /// Keys that are no longer held and are not reported yet.
    gone: usize,
}

impl Remains {
    /// `still`: the keys that the scan found held.
    pub(super) fn new(
        migration: &Migration,
        still: &BTreeSet<LockKey>,
        above: Token,
        lives: Option<Lives>,
    ) -> Self {
        let mut held: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        held.extend(migration.slots.iter().map(|&slot| (slot, BTreeSet::new())));
        for key in still {
            if let Some(keys) = held.get_mut(&key.slot()) {
                keys.insert(key.clone());
            }
        }
        Self {
            above,
            lives,
            held,
            empty: BTreeSet::new(),
            gone: 0,
        }
    }

    /// Asks for the keys that are still held.
    pub(super) async fn look(
        &mut self,
        shards: &Shards,
        record: &Topology,
        migration: &Migration,
    ) -> Result<(), Trouble> {
        // Another mover may have finished some slots, and a later move may have taken them elsewhere.
        self.held
            .retain(|slot, _| migration.slots.binary_search(slot).is_ok());
        let mut before = 0;
        let mut now: BTreeMap<Slot, BTreeSet<LockKey>> = BTreeMap::new();
        for ask in self.asks(migration) {
            let answer = shards.ask(record, &migration.from.0, ask.clone()).await?;
            if !answer.refused.is_empty() {
                return Err(Trouble::Outdated);
            }
            if !answer.grace_left.is_zero() {
                return Err(Trouble::Away);
            }
            before += ask.keys.len();
            for slot in ask.slots {
                now.entry(slot).or_default();
            }
            for key in answer.keys {
                now.entry(key.slot()).or_default().insert(key);
            }
            shards.pause().await;
        }
        if is_off(Rule::OpenWhenEmpty) {
            now.values_mut().for_each(BTreeSet::clear);
        }
        let (left, empty) = now.into_iter().partition(|(_, keys)| !keys.is_empty());
        self.held = left;
        self.gone += before - self.held.values().map(BTreeSet::len).sum::<usize>();
        let empty: BTreeMap<Slot, BTreeSet<LockKey>> = empty;
        self.empty.extend(empty.into_keys());
        Ok(())
    }

    /// The migrating slots that became empty since the last call.
    pub(super) fn take_empty(&mut self, migration: &Migration) -> BTreeSet<Slot> {
        let moves = |slot: &Slot| migration.slots.binary_search(slot).is_ok();
        std::mem::take(&mut self.empty)
            .into_iter()
            .filter(moves)
            .collect()
    }

    /// The number of keys found no longer held since the last call.
    pub(super) fn take_gone(&mut self) -> usize {
        std::mem::take(&mut self.gone)
    }

    /// The next questions, for about [`SCAN_PAGE`] keys or [`STEP_SLOTS`] slots each.
    fn asks(&self, migration: &Migration) -> Vec<StillHeld> {
        let epoch = migration.epoch;
        let keys: Vec<_> = self.held.values().flatten().cloned().collect();
        let bare = self.held.iter().filter(|(_, keys)| keys.is_empty());
        let bare: Vec<_> = bare.map(|(&slot, _)| slot).collect();
        let of = |keys: &[LockKey]| {
            let slots: BTreeSet<_> = keys.iter().map(LockKey::slot).collect();
            StillHeld {
                epoch,
                keys: keys.to_vec(),
                slots: slots.into_iter().collect(),
            }
        };
        let bare_of = |slots: &[Slot]| StillHeld {
            epoch,
            keys: Vec::new(),
            slots: slots.to_vec(),
        };
        let asks = keys.chunks(SCAN_PAGE).map(of);
        asks.chain(bare.chunks(STEP_SLOTS).map(bare_of)).collect()
    }
}
