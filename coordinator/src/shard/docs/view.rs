//! The documents of the whole shard, as a connection knows them.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_ring::Slot;

use super::store::{Document, Expected, Name, Write};
use crate::{
    ids::{Epoch, Life, Token},
    shard::{
        Mode, ShardError,
        rules::{
            Import,
            codec::{self, Arming, Malformed, SLOTS_TOGETHER},
        },
        whole::Whole,
    },
};

/// The head, and the slots and imports read so far, with their versions. Every commit checks those that it depends on.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) whole: Whole,
    versions: BTreeMap<Name, Expected>,
}

impl View {
    /// Of `names`, those that are not known.
    pub(super) fn unknown(&self, names: &BTreeSet<Name>) -> Vec<Name> {
        let unknown = |name: &&Name| !self.versions.contains_key(*name);
        names.iter().filter(unknown).cloned().collect()
    }

    /// Forgets what is not as it was.
    pub(super) fn forget<'a>(&mut self, stale: impl IntoIterator<Item = &'a Name>) {
        for name in stale {
            if *name == Name::Head {
                // Its version stands for the states of slots, too.
                return *self = Self::default();
            }
            self.versions.remove(name);
        }
    }

    /// Puts a document in, as it was read. The head comes first, then slots, then imports.
    pub(super) fn put(
        &mut self,
        life: &Life,
        name: Name,
        document: Option<&Document>,
    ) -> Result<(), ShardError> {
        let version = document.map_or(Expected::Absent, |document| {
            Expected::Version(document.version)
        });
        let content = document.map_or("", |document| &document.content);
        self.read(life, &name, content).map_err(malformed)?;
        self.versions.insert(name, version);
        Ok(())
    }

    fn read(&mut self, life: &Life, name: &Name, content: &str) -> Result<(), Malformed> {
        if *name == Name::Head {
            self.whole.head = codec::head(life, content, Token::default())?;
        }
        if *name == Name::Topology && !content.is_empty() {
            self.whole.affiliation = serde_json::from_str(content)?;
        }
        let Some(arming) = self.arming(life) else {
            return Ok(());
        };
        match name {
            Name::Slots(number) => {
                let from = *number as usize * SLOTS_TOGETHER;
                match codec::states(&arming, content)? {
                    Some(packed) => self.whole.slots.put(from, &packed),
                    None => self.whole.slots.forget(from, from + SLOTS_TOGETHER),
                }
            }
            Name::Import(slot) => {
                let epoch = self.whole.slots.get(*slot).epoch;
                let import = codec::import(&arming, epoch, content)?;
                self.whole.slots.put_import(*slot, import);
            }
            Name::Head | Name::Topology | Name::Lock(_) | Name::Ticket(..) => {}
        }
        Ok(())
    }

    fn arming(&self, life: &Life) -> Option<Arming> {
        let armed = self.whole.head.armed.as_ref()?;
        Some(Arming {
            life: life.clone(),
            epoch: armed.epoch,
        })
    }

    /// The last token is `last`.
    pub(super) fn put_token(&mut self, last: Token) {
        if let Some(armed) = &mut self.whole.head.armed {
            armed.tokens.epoch = last.epoch();
            armed.tokens.counter = last.counter();
            self.whole.head.see_epoch(last.epoch());
        }
    }

    /// The last token, if the life is armed.
    pub(super) fn token(&self) -> Option<Token> {
        let armed = self.whole.head.armed.as_ref();
        armed.map(|armed| armed.tokens.last())
    }

    /// The document with the state of `slot`; and that with its import, if the slot is known to arrive.
    pub(super) fn names_of(&self, slot: Slot) -> impl Iterator<Item = Name> + use<> {
        let states = Name::Slots(codec::states_of(slot));
        let known = self.versions.contains_key(&states);
        let arrives = known && self.whole.slots.get(slot).mode == Mode::Import;
        std::iter::once(states).chain(arrives.then_some(Name::Import(slot)))
    }

    /// The version of a document, as it was read.
    pub(super) fn version(&self, name: &Name) -> Expected {
        self.versions.get(name).copied().unwrap_or(Expected::Any)
    }

    /// The head, the affiliation and the states of slots in which `self` differs from `before`. Of slots, those in `names`;
    /// after an arming, all.
    pub(super) fn changed_states(
        &self,
        life: &Life,
        before: &Self,
        names: &BTreeSet<Name>,
    ) -> Vec<Write> {
        let text = codec::head_text(life, &self.whole.head);
        let mut changed = Vec::new();
        if let Some(arming) = self.arming(life) {
            let armed_anew = before.arming(life).as_ref() != Some(&arming);
            let documents = self.whole.slots.len().div_ceil(SLOTS_TOGETHER) as u32;
            for number in 0..documents {
                let name = Name::Slots(number);
                let from = number as usize * SLOTS_TOGETHER;
                let packed = self.whole.slots.packed(from, from + SLOTS_TOGETHER);
                let differs = packed != before.whole.slots.packed(from, from + SLOTS_TOGETHER);
                if armed_anew || differs && names.contains(&name) {
                    changed.push((name, Expected::Any, codec::states_text(&arming, packed)));
                }
            }
        }
        // Its version stands for the states of slots, too.
        if !changed.is_empty() || text != codec::head_text(life, &before.whole.head) {
            changed.push((Name::Head, before.version(&Name::Head), text));
        }
        if self.whole.affiliation != before.whole.affiliation {
            let text = serde_json::to_string(&self.whole.affiliation).expect("two texts");
            changed.push((Name::Topology, before.version(&Name::Topology), text));
        }
        let writes = changed.into_iter().map(|(name, expected, content)| Write {
            name,
            expected,
            content,
            ends_ms: None,
        });
        writes.collect()
    }

    /// The imports among `names`, and the epochs of their slots.
    pub(super) fn imports(&self, names: &BTreeSet<Name>) -> BTreeMap<Slot, (Epoch, Import)> {
        let slots = names.iter().filter_map(|name| match name {
            Name::Import(slot) => Some(*slot),
            _ => None,
        });
        let import = |slot| {
            let known: Option<&Import> = self.whole.slots.known_import(slot);
            let epoch = self.whole.slots.get(slot).epoch;
            (slot, (epoch, known.cloned().unwrap_or_default()))
        };
        slots.map(import).collect()
    }

    /// The imports that are not as they were `before`. One that says nothing any more ends at once.
    pub(super) fn changed_imports(
        &self,
        life: &Life,
        before: &BTreeMap<Slot, (Epoch, Import)>,
        now_ms: u64,
    ) -> Vec<Write> {
        let mut writes = Vec::new();
        let (Some(arming), none) = (self.arming(life), Import::default()) else {
            return writes;
        };
        for (slot, (before_epoch, before)) in before {
            let import = self.whole.slots.known_import(*slot).unwrap_or(&none);
            let epoch = self.whole.slots.get(*slot).epoch;
            // The text names the epoch.
            if import == before && (epoch == *before_epoch || *import == none) {
                continue;
            }
            let (content, ends_ms) = match *import == none {
                true => (String::new(), Some(now_ms)),
                false => (codec::import_text(&arming, epoch, import), None),
            };
            let name = Name::Import(*slot);
            writes.push(Write {
                expected: self.version(&name),
                name,
                content,
                ends_ms,
            });
        }
        writes
    }

    /// `writes` were done, as `version`.
    pub(super) fn committed(&mut self, writes: &[Write], version: u64) {
        for Write { name, .. } in writes {
            if !name.is_of_a_lock() {
                self.versions
                    .insert(name.clone(), Expected::Version(version));
            }
        }
    }

    /// The last millisecond at which grace runs if it does at `now_ms`, or at which it does not.
    pub(super) fn unchanged_until(&self, now_ms: u64) -> u64 {
        let grace = self.whole.head.armed.as_ref().map(|armed| &armed.grace);
        let running = grace.filter(|grace| grace.runs(now_ms));
        running.map_or(u64::MAX, |grace| grace.at_ms - 1)
    }
}

/// A document that cannot be read: nothing more is done with the shard.
pub(super) fn malformed(error: Malformed) -> ShardError {
    ShardError::Unusable {
        reason: error.to_string(),
    }
}
