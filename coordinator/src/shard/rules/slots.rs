//! The documents of the slots.

use hashbrown::HashMap;
use ringfence_ring::Slot;

use super::import::Import;
use crate::{
    failpoint::{Rule, is_off},
    ids::Epoch,
    shard::{Mode, SlotState, SlotStates, slots::PACKED},
};

/// The slots of an armed life. A backend may fill in only the slots that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slots {
    states: SlotStates,
    /// The imports of arriving slots. A missing one is empty.
    imports: HashMap<Slot, Import>,
}

impl Slots {
    /// Slots of which nothing is known but their states.
    pub(super) fn new(states: SlotStates) -> Self {
        Self {
            states,
            imports: HashMap::new(),
        }
    }

    /// The packed states of the slots `from..until`, as far as the shard has heard of them.
    pub(crate) fn packed(&self, from: usize, until: usize) -> &[u8] {
        self.states.packed(from, until)
    }

    /// Puts packed states in, from the slot at `from` on.
    pub(crate) fn put(&mut self, from: usize, packed: &[u8]) {
        self.states.put(from, packed);
    }

    /// Forgets the states of the slots `from..until`: they are shut.
    pub(crate) fn forget(&mut self, from: usize, until: usize) {
        let until = until.min(self.len());
        self.states.forget(from.min(until), until);
    }

    /// All states, packed.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.states.as_bytes()
    }

    /// What is known of imports.
    pub(crate) fn imports(&self) -> impl Iterator<Item = (Slot, &Import)> {
        self.imports.iter().map(|(slot, import)| (*slot, import))
    }

    /// The import of `slot`, as far as it is known.
    pub(crate) fn known_import(&self, slot: Slot) -> Option<&Import> {
        self.imports.get(&slot)
    }

    /// Puts the import of `slot` in.
    pub(crate) fn put_import(&mut self, slot: Slot, import: Import) {
        self.imports.insert(slot, import);
    }

    /// The number of slots that the shard has heard of, or some more.
    pub(crate) fn len(&self) -> usize {
        self.states.as_bytes().len() / PACKED
    }

    /// The state of `slot`.
    pub(crate) fn get(&self, slot: Slot) -> SlotState {
        self.states.get(slot)
    }

    /// The import of `slot`, if the slot arrives.
    pub(crate) fn import(&mut self, slot: Slot) -> Option<&mut Import> {
        let arrives = self.get(slot).mode == Mode::Import;
        arrives.then(|| self.imports.entry(slot).or_default())
    }

    /// The import of `slot`, if the slot arrives by the move of `epoch`.
    pub(super) fn import_by(&mut self, slot: Slot, epoch: Epoch) -> Option<&mut Import> {
        let is_move = self.get(slot).epoch == epoch;
        self.import(slot).filter(|_| is_move)
    }

    /// Whether all counters of the arriving `slot` are here.
    pub(crate) fn is_admitted(&self, slot: Slot) -> bool {
        let import = self.imports.get(&slot);
        import.is_some_and(|import| import.admitted)
    }

    /// Changes `slot` to `state`, if that raises the guard. Returns whether the slot is in that state now.
    pub(super) fn change(&mut self, slot: Slot, state: SlotState) -> bool {
        let present = self.get(slot);
        let rises = state.guard() > present.guard() || is_off(Rule::StepGuard);
        if rises {
            self.imports.remove(&slot);
            self.states.set(slot, state);
        }
        let applied = rises || state == present;
        if let Some(import) = self.import(slot).filter(|_| applied) {
            import.begun = true;
        }
        applied
    }
}
