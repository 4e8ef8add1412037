//! The content of each segment when it was last seen, to be reported if the segment is lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Manifest;
use crate::{limits::RATE_MS_MIN, segment::SegmentView};

/// The content of a segment when it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, u64, u64, u64)", into = "(i64, u64, u64, u64)")]
pub struct Seen {
    /// Its money, including held money.
    pub owned: i64,
    /// How often it may have lost its last changes.
    pub losses: u64,
    /// The time, in ms since 1970 on the segment's clock.
    pub at_ms: u64,
    /// Its version: it rises with every change of its money.
    pub version: u64,
}

impl Seen {
    /// The changes of the segment's money per second since then. `None` if that is not known: too little time has passed, or
    /// the segment may have lost changes since.
    pub fn changes_per_s(&self, view: &SegmentView) -> Option<u64> {
        let for_ms = view.now_ms.checked_sub(self.at_ms);
        let for_ms = for_ms.filter(|&for_ms| for_ms >= RATE_MS_MIN)?;
        let changes = view.version.checked_sub(self.version)?;
        (view.losses == self.losses).then_some(changes.saturating_mul(1000) / for_ms)
    }
}

impl From<Seen> for (i64, u64, u64, u64) {
    fn from(seen: Seen) -> Self {
        (seen.owned, seen.losses, seen.at_ms, seen.version)
    }
}

impl From<(i64, u64, u64, u64)> for Seen {
    fn from((owned, losses, at_ms, version): (i64, u64, u64, u64)) -> Self {
        Self {
            owned,
            losses,
            at_ms,
            version,
        }
    }
}

impl From<&SegmentView> for Seen {
    fn from(view: &SegmentView) -> Self {
        Self {
            owned: view.value + view.held,
            losses: view.losses,
            at_ms: view.now_ms,
            version: view.version,
        }
    }
}

impl Manifest {
    /// This manifest with the seen content of some segments; `None` if it has this content already.
    pub fn see(&self, views: &BTreeMap<u32, SegmentView>) -> Option<Self> {
        let mut manifest = self.clone();
        manifest.seen.resize(self.places.len(), None);
        let mut is_changed = false;
        for (&index, view) in views {
            let Some(seen) = manifest.seen.get_mut(index as usize) else {
                continue;
            };
            let now = Seen::from(view);
            let content = |seen: Seen| (seen.owned, seen.losses, seen.version);
            if seen.map(content) != Some(content(now)) {
                *seen = Some(now);
                is_changed = true;
            }
        }
        is_changed.then_some(manifest)
    }

    /// The content of segment `index` when it was last seen, if it ever was.
    pub fn last_seen(&self, index: u32) -> Option<Seen> {
        self.seen.get(index as usize).copied().flatten()
    }

    /// The manifest as text, for the copies in segments: without the seen content, which nobody reads from a copy.
    pub fn encode_copy(&self) -> String {
        let copy = Self {
            seen: Vec::new(),
            ..self.clone()
        };
        copy.encode()
    }
}
