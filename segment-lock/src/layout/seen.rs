//! The content of each segment when it was last seen, to be reported if the segment is lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Manifest;
use crate::segment::SegmentView;

/// The content of a segment when it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, u64, u64)", into = "(i64, u64, u64)")]
pub struct Seen {
    /// Its money, including held money.
    pub owned: i64,
    /// How often it may have lost its last changes.
    pub losses: u64,
    /// The time, in ms since 1970 on the segment's clock.
    pub at_ms: u64,
}

impl From<Seen> for (i64, u64, u64) {
    fn from(seen: Seen) -> Self {
        (seen.owned, seen.losses, seen.at_ms)
    }
}

impl From<(i64, u64, u64)> for Seen {
    fn from((owned, losses, at_ms): (i64, u64, u64)) -> Self {
        Self {
            owned,
            losses,
            at_ms,
        }
    }
}

impl From<&SegmentView> for Seen {
    fn from(view: &SegmentView) -> Self {
        Self {
            owned: view.value + view.held,
            losses: view.losses,
            at_ms: view.now_ms,
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
            let same = seen.map(|seen| (seen.owned, seen.losses)) == Some((now.owned, now.losses));
            if !same {
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
