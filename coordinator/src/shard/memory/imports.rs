//! What is free in slots that come here.

use hashbrown::HashMap;
use ringfence_ring::Slot;

use crate::name::LockKey;

/// What is known of the keys of slots that come here, for as long as each one is coming.
#[derive(Debug, Default)]
pub(super) struct Imports(HashMap<Slot, Import>);

#[derive(Debug, Default)]
struct Import {
    keys: HashMap<LockKey, Known>,
    /// The former shard holds nothing but what is in `keys`.
    complete: bool,
    /// A mover said which tokens were made there: until then those made here may be lower.
    begun: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Known {
    /// The former shard held it when it was scanned.
    Named,
    /// The former shard has proved that it holds it no more.
    Proven,
}

impl Imports {
    /// Whether the former shard surely does not hold `key`, nor made a token that is above those to come.
    pub(super) fn is_free(&self, key: &LockKey) -> bool {
        let begun = self.0.get(&key.slot()).filter(|import| import.begun);
        let Some(import) = begun else {
            return false;
        };
        import
            .keys
            .get(key)
            .map_or(import.complete, |known| *known == Known::Proven)
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

    /// `slot` does not come here any more, or comes by another move.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.0.remove(&slot);
    }
}
