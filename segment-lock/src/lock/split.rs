//! The record of a segmented lock: the number of sub-locks, and their places.

use serde::{Deserialize, Serialize};

use crate::{Durability, ManifestError, limits::SEGMENTS_MAX};

/// The record of a segmented lock. It is changed by compare-and-swap only. The methods here return the record to swap
/// in, and have no other effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    durability: Durability,
    /// `any` chooses among this many, the first ones.
    used: u32,
    /// The place of every sub-lock ever made, with which its key ends.
    places: Vec<u32>,
    /// The greatest token of sub-lock 0 that was presented to this record: its fence.
    token: u64,
}

/// Sub-lock 0 has another holder since: the write of the former holder is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fenced;

impl Split {
    /// A record of `segments` sub-locks. A change of it is acknowledged once it is as durable as requested. `place`
    /// chooses their places, as for [`resized`](Self::resized).
    ///
    /// # Errors
    ///
    /// [`ManifestError::Segments`].
    pub fn new(
        segments: u32,
        durability: Durability,
        place: impl FnOnce(&[u32], u32) -> Vec<u32>,
    ) -> Result<Self, ManifestError> {
        let nothing = Self {
            durability,
            used: 0,
            places: Vec::new(),
            token: 0,
        };
        nothing.resized(segments, place)
    }

    /// The record as text, for its store.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("numbers, and lists of them")
    }

    /// Reads the text of [`encode`](Self::encode).
    ///
    /// # Errors
    ///
    /// [`ManifestError::Malformed`].
    pub fn decode(text: &str) -> Result<Self, ManifestError> {
        let malformed = |reason: String| ManifestError::Malformed { reason };
        let split: Self =
            serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        match (1..=split.made()).contains(&split.used) {
            true => Ok(split),
            false => Err(malformed("it uses what was never made".into())),
        }
    }

    /// The durability of acknowledged changes of the record.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The number of sub-locks among which `any` chooses: 0 to this, exclusive.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// The number of sub-locks ever made. It never falls.
    pub fn made(&self) -> u32 {
        u32::try_from(self.places.len()).expect("no more than there may be segments")
    }

    /// The key of sub-lock `index` of `name`; `None` if it was never made.
    pub fn key_of(&self, name: &str, index: u32) -> Option<String> {
        let place = self.places.get(index as usize)?;
        Some(key(name, index, *place))
    }

    /// This record with `segments` in use. `place` chooses the places of new ones, given the places of the existing
    /// ones and the number of new ones.
    ///
    /// # Errors
    ///
    /// [`ManifestError::Segments`].
    pub fn resized(
        &self,
        segments: u32,
        place: impl FnOnce(&[u32], u32) -> Vec<u32>,
    ) -> Result<Self, ManifestError> {
        if !(1..=SEGMENTS_MAX).contains(&segments) {
            return Err(ManifestError::Segments { value: segments });
        }
        let mut resized = self.clone();
        resized.used = segments;
        if let Some(more) = segments.checked_sub(self.made()) {
            resized.places.extend(place(&self.places, more));
        }
        Ok(resized)
    }

    /// The record after a holder of sub-lock 0 presented `token`; earlier holders are refused.
    pub(super) fn shown(&self, token: u64) -> Result<Self, Fenced> {
        match token >= self.token {
            true => Ok(Self {
                token,
                ..self.clone()
            }),
            false => Err(Fenced),
        }
    }
}

/// The key of sub-lock `index` of `name` that is at `place`.
pub fn key(name: &str, index: u32, place: u32) -> String {
    format!("{name}#{index}.{place}")
}

/// The name, the index and the place of a [`key`].
pub fn parse_key(key: &str) -> Option<(&str, u32, u32)> {
    let (name, at) = key.rsplit_once('#')?;
    let (index, place) = at.split_once('.')?;
    Some((name, index.parse().ok()?, place.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(segments: u32) -> Split {
        Split::new(segments, Durability::Memory, from(0)).unwrap()
    }

    /// Places that are all different.
    fn from(first: u32) -> impl FnOnce(&[u32], u32) -> Vec<u32> {
        move |taken, more| {
            let first = first + taken.len() as u32;
            (first..first + more).collect()
        }
    }

    #[test]
    fn existing_sub_locks_stay_in_place() {
        let shrunk = split(4).resized(2, from(100)).unwrap();
        assert_eq!((shrunk.used(), shrunk.made()), (2, 4));
        let grown = shrunk.resized(6, from(100)).unwrap();
        assert_eq!((grown.used(), grown.made()), (6, 6));
        let key = |index| grown.key_of("stock/7", index);
        assert_eq!(key(3).as_deref(), Some("stock/7#3.3"));
        assert_eq!(key(4).as_deref(), Some("stock/7#4.104"));
        assert_eq!(key(6), None);
    }

    #[test]
    fn a_former_holder_is_refused() {
        let seen = split(1).shown(7).unwrap();
        assert_eq!(seen.shown(6), Err(Fenced));
        assert_eq!(seen.shown(7), Ok(seen.clone()));
        assert_eq!(seen.resized(2, from(0)).unwrap().shown(6), Err(Fenced));
    }

    #[test]
    fn a_number_out_of_range_is_refused() {
        for value in [0, SEGMENTS_MAX + 1] {
            let refused = split(1).resized(value, from(0));
            assert_eq!(refused, Err(ManifestError::Segments { value }));
        }
    }

    #[test]
    fn it_is_read_as_it_was_written_and_nothing_else_is() {
        let split = split(3).shown(5).unwrap();
        assert_eq!(Split::decode(&split.encode()), Ok(split.clone()));
        let uses_more = split.encode().replace("\"used\":3", "\"used\":4");
        let nowhere = |_: &[u32], more| vec![0; more as usize];
        let counter = crate::Manifest::new(crate::Terms::in_memory(), 1, nowhere).unwrap();
        for text in ["", "{}", &uses_more, &counter.encode()] {
            let read = Split::decode(text);
            assert!(
                matches!(read, Err(ManifestError::Malformed { .. })),
                "{text}"
            );
        }
    }
}
