//! The free keys of slots that arrive here.

use hashbrown::HashMap;
use ringfence_ring::Slot;

use crate::name::LockKey;

/// The knowledge about the keys of arriving slots, while each one arrives.
#[derive(Debug, Default)]
pub(super) struct Imports(HashMap<Slot, Import>);

#[derive(Debug, Default)]
struct Import {
    keys: HashMap<LockKey, Known>,
    /// The former shard holds only the keys in `keys`.
    complete: bool,
    /// A mover said which tokens were made there: until then those made here may be lower.
    begun: bool,
    /// All of its counters are here.
    admitted: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Known {
    /// The former shard held it when it was scanned.
    Named,
    /// The former shard no longer holds it.
    Proven,
}

impl Imports {
    /// Whether the former shard certainly does not hold `key`, and has made no token above those to
    /// come.
    pub(super) fn is_free(&self, key: &LockKey) -> bool {
        let begun = self.0.get(&key.slot()).filter(|import| import.begun);
        let Some(import) = begun else {
            return false;
        };
        match import.keys.get(key) {
            Some(Known::Named) => false,
            Some(Known::Proven) => true,
            None => import.complete,
        }
    }

    /// Tokens to come are above those that the former shard of `slot` made.
    pub(super) fn begin(&mut self, slot: Slot) {
        self.0.entry(slot).or_default().begun = true;
    }

    /// The former shard has proved that it does not hold `key`.
    pub(super) fn prove(&mut self, key: &LockKey) {
        let keys = &mut self.0.entry(key.slot()).or_default().keys;
        keys.insert(key.clone(), Known::Proven);
    }

    /// The former shard's list names `key`. A proof may be of later.
    pub(super) fn name(&mut self, key: &LockKey) {
        let keys = &mut self.0.entry(key.slot()).or_default().keys;
        keys.entry(key.clone()).or_insert(Known::Named);
    }

    /// Everything that the former shard holds of `slot` has been named.
    pub(super) fn complete(&mut self, slot: Slot) {
        self.0.entry(slot).or_default().complete = true;
    }

    /// All counters of `slot` are here.
    pub(super) fn admit(&mut self, slot: Slot) {
        self.0.entry(slot).or_default().admitted = true;
    }

    /// Whether they are.
    pub(super) fn is_admitted(&self, slot: Slot) -> bool {
        self.0.get(&slot).is_some_and(|import| import.admitted)
    }

    /// `slot` does not come here any more, or comes by another move.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.0.remove(&slot);
    }
}
