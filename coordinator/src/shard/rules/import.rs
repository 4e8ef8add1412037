//! The document of a slot that arrives.

use hashbrown::HashMap;

use crate::name::LockKey;

/// The knowledge about the keys of a slot, while it arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Import {
    pub(super) keys: HashMap<LockKey, Known>,
    /// The former shard holds only the keys in `keys`.
    pub(crate) complete: bool,
    /// A mover has told which tokens the former shard made. Before that, the tokens made here may be lower.
    pub(crate) begun: bool,
    /// All counters of the slot are here.
    pub(crate) admitted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// The former shard held the key when it was scanned.
    Listed,
    /// The former shard no longer holds the key.
    Proven,
}

impl Import {
    /// That of a slot of which a mover has told the last token of the former shard.
    pub(crate) fn begun(admitted: bool) -> Self {
        Self {
            begun: true,
            admitted,
            ..Self::default()
        }
    }

    /// The keys that the former shard held, as far as this is known.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &LockKey> {
        let listed = self
            .keys
            .iter()
            .filter(|(_, known)| **known == Known::Listed);
        listed.map(|(key, _)| key)
    }

    /// Whether the former shard certainly does not hold `key`, and made no token above the next ones here.
    fn is_free(&self, key: &LockKey) -> bool {
        let free = match self.keys.get(key) {
            Some(Known::Listed) => false,
            Some(Known::Proven) => true,
            None => self.complete,
        };
        self.begun && free
    }

    /// How many shares of `key` the former shard has left, if it has proved `left`, and made no token above the next
    /// ones here.
    pub(super) fn left(&self, key: &LockKey, left: Option<u32>) -> Option<u32> {
        if self.is_free(key) {
            return Some(0);
        }
        left.filter(|_| self.begun)
    }

    /// The former shard has proved that it does not hold `key`.
    pub(super) fn prove(&mut self, key: &LockKey) {
        self.keys.insert(key.clone(), Known::Proven);
    }

    /// The former shard's list names `key`. A proof may be newer than the list.
    pub(super) fn list(&mut self, key: &LockKey) {
        self.keys.entry(key.clone()).or_insert(Known::Listed);
    }
}
