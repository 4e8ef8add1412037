//! An account's manifest: its segments, and the home of each request.
//!
//! The manifest is one record, changed by compare-and-swap only. The methods here make its changes: each returns the
//! record to swap in. A layout is never changed or dropped, so a request has the same home permanently.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Effect, HashKey, NewAccount, RequestId, Terms,
    id::check_len,
    is_default,
    limits::{LABEL_NAME_LEN_MAX, LABEL_VALUE_LEN_MAX, LABELS_MAX, LAYOUTS_MAX, SEGMENTS_MAX},
};

/// The step of generations after some plans may have been lost: more than their possible number.
const GENERATIONS_APART: u64 = 1 << 20;

/// The number of segments that are homes, from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u32)", into = "(u64, u64, u32)")]
pub struct Layout {
    /// Rises with every plan. Never used twice.
    pub generation: u64,
    /// This layout decides the homes of requests created at this time or later, in ms since 1970.
    pub from_ms: u64,
    /// The number of segments that are homes: 0 to this, exclusive.
    pub segments: u32,
}

fn is_in_memory(terms: &Terms) -> bool {
    *terms == Terms::in_memory()
}

impl From<Layout> for (u64, u64, u32) {
    fn from(layout: Layout) -> Self {
        (layout.generation, layout.from_ms, layout.segments)
    }
}

impl From<(u64, u64, u32)> for Layout {
    fn from((generation, from_ms, segments): (u64, u64, u32)) -> Self {
        Self {
            generation,
            from_ms,
            segments,
        }
    }
}

/// An account's manifest: its layouts so far, and the places of its segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    #[serde(default = "Terms::in_memory", skip_serializing_if = "is_in_memory")]
    terms: Terms,
    /// The key of the hashes of ids.
    #[serde(default, skip_serializing_if = "is_default")]
    hash_key: HashKey,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    layouts: Vec<Layout>,
    /// The place of every segment that exists or was planned, as a number of the storage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    places: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Layout>,
    /// The greatest generation ever planned, abandoned plans included. As text only if it is not that of the plan, or of the
    /// newest layout.
    #[serde(default, skip_serializing_if = "is_default")]
    last: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    closed: bool,
    /// The account is deleted. Its segments with a place are to be removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    /// The time of the last plan, in ms since 1970.
    #[serde(default, skip_serializing_if = "is_default")]
    planned_ms: u64,
    /// The manifest was lost, and `plan` comes from a copy. It may have been in force.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    restored: bool,
    /// With every plan from now on, segments refuse ids of this time and before as too old, unless they are recorded.
    #[serde(default, skip_serializing_if = "is_default")]
    mark_ms: u64,
    /// The content of each segment when it was last seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    seen: Vec<Option<Seen>>,
    /// The account's labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    /// What later releases write here. It is kept as it is.
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// The reason why a manifest cannot be changed. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// No segments, or too many.
    #[error("segments is {value}, must be 1 to {SEGMENTS_MAX}")]
    Segments {
        /// The refused number.
        value: u32,
    },
    /// The account has a ceiling, which no segment knows how to keep if there are others.
    #[error("segments is {value}, must be 1: the account has a ceiling")]
    Ceiling {
        /// The refused number.
        value: u32,
    },
    /// The account has had the greatest number of layouts.
    #[error("the account has had {LAYOUTS_MAX} layouts, the maximum")]
    TooManyLayouts,
    /// Another plan must be finished first. Any caller can do that.
    #[error("generation {generation} is planned, and must be finished first")]
    Planned {
        /// The plan's generation.
        generation: u64,
    },
    /// The plan to be committed or replaced does not exist any more: read the manifest again.
    #[error("generation {generation} is not planned any more")]
    NotPlanned {
        /// The generation of that plan.
        generation: u64,
    },
    /// Only a closed account can be deleted.
    #[error("the account is open: close it first")]
    Open,
    /// The account has a credit line, of which each of its segments may have a part. Nobody can tell that nothing of it is
    /// used, and remove them, in one step.
    #[error("an account with a credit line and {segments} segments cannot be deleted")]
    CreditLine {
        /// The number of its segments.
        segments: u32,
    },
    /// A stored manifest has not the form that [`Manifest::encode`] writes.
    #[error("the account's manifest is malformed: {reason}")]
    Malformed {
        /// The error.
        reason: String,
    },
    /// The terms are out of range.
    #[error(transparent)]
    Terms(#[from] crate::TermsError),
    /// The account would have too many labels.
    #[error("labels is {count}, must be at most {LABELS_MAX}")]
    Labels {
        /// Their number.
        count: usize,
    },
    /// A label has no name, or is too long.
    #[error(transparent)]
    Label(#[from] crate::NameError),
}

impl ManifestError {
    /// Whether the same call may succeed after the manifest was read again.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Planned { .. } | Self::NotPlanned { .. } => true,
            Self::Segments { .. }
            | Self::Ceiling { .. }
            | Self::TooManyLayouts
            | Self::Open
            | Self::CreditLine { .. }
            | Self::Malformed { .. }
            | Self::Terms(_)
            | Self::Labels { .. }
            | Self::Label(_) => false,
        }
    }

    /// Always [`Effect::None`].
    pub fn effect(&self) -> Effect {
        Effect::None
    }

    /// Always `None`: read the manifest again at once.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }
}

impl Manifest {
    /// A new account's manifest: no layout yet, and a plan for the first. A caller that finds it creates the segments
    /// and commits the plan. `place`: as for [`plan`](Self::plan).
    ///
    /// # Errors
    ///
    /// A number or a term is out of range.
    pub fn new(
        terms: Terms,
        segments: u32,
        place: impl FnOnce(&[u32], u32) -> Vec<u32>,
    ) -> Result<Self, ManifestError> {
        Self::absent(terms).create(terms, segments, NewAccount::default(), place)
    }

    /// The manifest of an account that does not exist. It is stored only when it [refuses](Self::refuse) transfers,
    /// with the durability of `terms`.
    pub fn absent(terms: Terms) -> Self {
        Self {
            terms,
            hash_key: HashKey::default(),
            layouts: Vec::new(),
            places: Vec::new(),
            plan: None,
            last: 0,
            closed: false,
            deleted: false,
            planned_ms: 0,
            restored: false,
            mark_ms: 0,
            seen: Vec::new(),
            labels: BTreeMap::new(),
            others: BTreeMap::new(),
        }
    }

    /// An account that does not exist, with a plan for its first layout. Transfers that were refused remain refused.
    /// `place`: as for [`plan`](Self::plan).
    ///
    /// # Errors
    ///
    /// A number or a term is out of range.
    pub fn create(
        &self,
        terms: Terms,
        segments: u32,
        new: NewAccount,
        place: impl FnOnce(&[u32], u32) -> Vec<u32>,
    ) -> Result<Self, ManifestError> {
        terms.check()?;
        let absent = Self {
            terms,
            hash_key: new.hash_key,
            last: self.last.max(new.after_generation),
            deleted: false,
            ..self.clone()
        };
        absent.plan(segments, 0, place)
    }

    /// This manifest, which refuses requests up to `time_ms` as too old, unless they are recorded. So transfers that
    /// found no account remain refused in an account that is created later.
    #[must_use]
    pub fn refuse(&self, time_ms: u64) -> Self {
        Self {
            mark_ms: self.mark_ms.max(time_ms),
            ..self.clone()
        }
    }

    /// Whether the account exists or is being created.
    pub fn exists(&self) -> bool {
        !self.deleted && (self.plan.is_some() || !self.layouts.is_empty())
    }

    /// Whether the account was deleted, and not created again since.
    pub fn is_deleted(&self) -> bool {
        self.deleted
    }

    /// Whether requests go by the layout in force, although there may be a plan: a plan from a copy may have been in force,
    /// and the first plan has no layout before it.
    pub fn serves(&self) -> bool {
        !self.restored && !self.layouts.is_empty()
    }

    /// Whether the copy at a segment would do in place of this manifest: there is one segment, and only plans have changed the
    /// manifest. With several, the copy does not say which of them are lost for certain, and what these had.
    pub fn is_in_copies(&self) -> bool {
        let is_plain = self.labels.is_empty() && self.others.is_empty();
        self.exists() && self.placed() == 1 && is_plain
    }

    /// The manifest as text, for the storage.
    pub fn encode(&self) -> String {
        let mut stored = self.clone();
        if stored.last == stored.newest_generation() {
            stored.last = 0;
        }
        serde_json::to_string(&stored).expect("numbers, and structures of them")
    }

    /// Reads the text of [`encode`](Self::encode).
    ///
    /// # Errors
    ///
    /// [`ManifestError::Malformed`].
    pub fn decode(text: &str) -> Result<Self, ManifestError> {
        let stored: Self =
            serde_json::from_str(text).map_err(|error| ManifestError::Malformed {
                reason: error.to_string(),
            })?;
        Ok(Self {
            last: stored.last.max(stored.newest_generation()),
            ..stored
        })
    }

    /// The terms. They never change.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// The key of the hashes of ids. It never changes.
    pub fn hash_key(&self) -> HashKey {
        self.hash_key
    }

    /// Whether the account takes no new money.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The account's labels.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// This manifest with `labels` set, and those that are `None` removed.
    ///
    /// # Errors
    ///
    /// [`ManifestError::Label`], [`ManifestError::Labels`].
    pub fn label(&self, labels: &BTreeMap<String, Option<String>>) -> Result<Self, ManifestError> {
        let mut next = self.clone();
        for (name, value) in labels {
            check_len("label name", name, 1..=LABEL_NAME_LEN_MAX)?;
            match value {
                Some(value) => {
                    check_len("label value", value, 0..=LABEL_VALUE_LEN_MAX)?;
                    next.labels.insert(name.clone(), value.clone());
                }
                None => _ = next.labels.remove(name),
            }
        }
        match next.labels.len() {
            0..=LABELS_MAX => Ok(next),
            count => Err(ManifestError::Labels { count }),
        }
    }

    /// All layouts so far, the oldest first. Empty only while the account is being created.
    pub fn layouts(&self) -> &[Layout] {
        &self.layouts
    }

    /// The planned next layout.
    pub fn planned(&self) -> Option<Layout> {
        self.plan
    }

    /// The generation of the plan, or of the newest layout if there is no plan. No segment is prepared for a greater
    /// one, unless the manifest went back in time.
    pub fn newest_generation(&self) -> u64 {
        self.plan
            .map_or_else(|| self.generation(), |plan| plan.generation)
    }

    /// Whether the manifest was lost, and the plan comes from a copy.
    pub fn is_restored(&self) -> bool {
        self.restored
    }

    /// Segments refuse ids of this time and before as too old, unless they are recorded, in ms. A plan brings this time
    /// to the segments. 0 if no layout was ever lost.
    pub fn mark_ms(&self) -> u64 {
        self.mark_ms
    }

    /// The newest layout's generation; 0 while the account is being created.
    pub fn generation(&self) -> u64 {
        self.layouts.last().map_or(0, |layout| layout.generation)
    }

    /// The number of segments that may have money: all that were ever homes. It never falls.
    pub fn segments(&self) -> u32 {
        let counts = self.layouts.iter().map(|layout| layout.segments);
        counts.max().unwrap_or(0)
    }

    /// The number of segments with a place: all that were ever homes, or were planned to be.
    pub fn placed(&self) -> u32 {
        u32::try_from(self.places.len()).expect("no more than there may be segments")
    }

    /// The place of segment `index`, as a number of the storage. 0 for a segment that was never planned.
    pub fn place_of(&self, index: u32) -> u32 {
        self.places.get(index as usize).copied().unwrap_or_default()
    }

    /// The time from which on segment `index` may be a home, in ms.
    pub(crate) fn first_ms(&self, index: u32) -> u64 {
        let mut layouts = self.layouts.iter().chain(&self.plan);
        let first = layouts.find(|layout| index < layout.segments);
        first.map_or(0, |layout| layout.from_ms)
    }

    /// The segment that decides and remembers `id`: its hash modulo the number of segments in force at its time. `None`
    /// only while the account is being created.
    pub fn home_of(&self, id: &RequestId) -> Option<u32> {
        let in_force = |layout: &&Layout| layout.from_ms <= id.time_ms();
        let layout = self.layouts.iter().rev().find(in_force)?;
        let home = id.hash(self.hash_key) % u64::from(layout.segments);
        Some(u32::try_from(home).expect("less than a number of segments"))
    }

    /// This manifest with a plan for `segments` homes, from `from_ms` on, or from just after the newest layout's
    /// beginning if that is later. `place` chooses the places of new segments, given the places of the existing ones
    /// and the number of new ones.
    ///
    /// # Errors
    ///
    /// A plan exists already, the number is out of range, or there were too many layouts.
    pub fn plan(
        &self,
        segments: u32,
        from_ms: u64,
        place: impl FnOnce(&[u32], u32) -> Vec<u32>,
    ) -> Result<Self, ManifestError> {
        self.unplanned()?;
        if !(1..=SEGMENTS_MAX).contains(&segments) {
            return Err(ManifestError::Segments { value: segments });
        }
        if self.terms.ceiling.is_some() && segments > 1 {
            return Err(ManifestError::Ceiling { value: segments });
        }
        if self.layouts.len() >= LAYOUTS_MAX {
            return Err(ManifestError::TooManyLayouts);
        }
        let least_ms = self.layouts.last().map_or(0, |layout| layout.from_ms + 1);
        let mut planned = self.with_plan(segments, from_ms.max(least_ms));
        if let Some(more) = segments.checked_sub(self.placed()) {
            planned.places.extend(place(&self.places, more));
        }
        Ok(planned)
    }

    /// This manifest without its plan, which is not in force, and without the places of segments that only the plan has.
    /// The generation of that plan is not used again.
    #[must_use]
    pub fn without_plan(&self) -> Self {
        let mut manifest = self.clone();
        manifest.plan = None;
        manifest.places.truncate(self.segments() as usize);
        manifest
    }

    /// This manifest with the plan of `generation` replaced by a plan that begins later, because a segment has decided
    /// a request that would have another home by the plan.
    ///
    /// A [restored](Self::is_restored) plan may have been in force: it becomes a layout. Whether a request of its time
    /// was decided by it, or by the layout before, is not known. So such requests are refused as too old, unless they
    /// are recorded.
    ///
    /// # Errors
    ///
    /// That plan does not exist any more.
    pub fn plan_later(&self, generation: u64, from_ms: u64) -> Result<Self, ManifestError> {
        let plan = self.planned_as(generation)?;
        let from_ms = from_ms.max(plan.from_ms + 1);
        if !self.restored {
            return Ok(self.with_plan(plan.segments, from_ms));
        }
        Ok(Self {
            restored: true,
            mark_ms: from_ms - 1,
            ..self.commit(generation)?.with_plan(plan.segments, from_ms)
        })
    }

    /// This manifest, possibly a copy, in place of `lost`. `closed`: a segment is closed. No generation of a lost plan
    /// is used again.
    pub fn restored(self, lost: &Self, closed: bool) -> Self {
        Self {
            restored: self.plan.is_some(),
            closed: self.closed || lost.closed || closed,
            last: self.last.max(lost.last) + GENERATIONS_APART,
            ..self
        }
    }

    /// This manifest with the plan of `generation` as its newest layout. Every segment must be prepared for it.
    ///
    /// # Errors
    ///
    /// That plan does not exist any more.
    pub fn commit(&self, generation: u64) -> Result<Self, ManifestError> {
        let plan = self.planned_as(generation)?;
        let mut manifest = self.clone();
        manifest.layouts.push(plan);
        manifest.plan = None;
        manifest.restored = false;
        Ok(manifest)
    }

    /// This manifest, closed. Segments created later are closed from the start.
    ///
    /// # Errors
    ///
    /// A plan exists: its segments would be created open.
    pub fn close(&self) -> Result<Self, ManifestError> {
        self.unplanned()?;
        Ok(Self {
            closed: true,
            ..self.clone()
        })
    }

    /// This manifest of an account that is deleted. An account that is created later refuses ids up to `mark_ms` as too old.
    ///
    /// # Errors
    ///
    /// The account is open; a plan exists; or it has a credit line and several segments.
    pub fn delete(&self, mark_ms: u64) -> Result<Self, ManifestError> {
        self.unplanned()?;
        if !self.closed {
            return Err(ManifestError::Open);
        }
        if self.terms.credit() > 0 && self.segments() > 1 {
            let segments = self.segments();
            return Err(ManifestError::CreditLine { segments });
        }
        Ok(Self {
            deleted: true,
            last: self.last + 1,
            ..self.refuse(mark_ms)
        })
    }

    /// This manifest of a deleted account whose segments cannot be removed: it exists again, and is closed.
    #[must_use]
    pub fn undelete(&self) -> Self {
        Self {
            deleted: false,
            last: self.last + 1,
            ..self.clone()
        }
    }

    /// What remains of a deleted account, without segments.
    #[must_use]
    pub fn without_segments(&self) -> Self {
        Self {
            deleted: true,
            last: self.last,
            ..Self::absent(self.terms).refuse(self.mark_ms)
        }
    }

    /// This manifest, with a plan made at that time.
    #[must_use]
    pub fn planned_at(self, planned_ms: u64) -> Self {
        Self { planned_ms, ..self }
    }

    /// The time of the last plan, in ms since 1970.
    pub fn planned_ms(&self) -> u64 {
        self.planned_ms
    }

    /// This manifest with the plan of `generation` made again, because it was not finished in time.
    ///
    /// # Errors
    ///
    /// That plan does not exist any more.
    pub fn plan_again(&self, generation: u64) -> Result<Self, ManifestError> {
        let plan = self.planned_as(generation)?;
        Ok(self.with_plan(plan.segments, plan.from_ms))
    }

    /// The greatest generation ever planned. It rises also when the account is deleted.
    pub fn last_generation(&self) -> u64 {
        self.last
    }

    fn unplanned(&self) -> Result<(), ManifestError> {
        match self.plan {
            Some(Layout { generation, .. }) => Err(ManifestError::Planned { generation }),
            None => Ok(()),
        }
    }

    fn planned_as(&self, generation: u64) -> Result<Layout, ManifestError> {
        self.plan
            .filter(|plan| plan.generation == generation)
            .ok_or(ManifestError::NotPlanned { generation })
    }

    fn with_plan(&self, segments: u32, from_ms: u64) -> Self {
        let generation = self.last + 1;
        let plan = Layout {
            generation,
            from_ms,
            segments,
        };
        Self {
            plan: Some(plan),
            last: generation,
            ..self.clone()
        }
    }
}

mod seen;
#[cfg(test)]
mod tests;

pub use seen::Seen;
