//! An account's head: which segments there are, and whose home each is.
//!
//! One record, changed by compare-and-swap only. These are its changes; none does anything but
//! answer with the record to swap in. A layout is never changed or dropped, so the home of a request
//! is the same for ever.

use serde::{Deserialize, Serialize};

use crate::{
    RequestId, Terms,
    limits::{LAYOUTS_MAX, SEGMENTS_MAX},
};

/// From when on how many segments are homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Rises with every plan, and is never used twice.
    pub generation: u64,
    /// Requests created at this time or later have their homes by it, in ms since 1970.
    pub from_ms: u64,
    /// How many segments are homes: 0 to this, exclusive.
    pub segments: u32,
}

/// An account's head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    terms: Terms,
    layouts: Vec<Layout>,
    /// Of every segment that there is, or that was planned: where it is, in the storage's own terms.
    places: Vec<u32>,
    plan: Option<Layout>,
    /// The greatest generation ever planned, abandoned plans included.
    last: u64,
    closed: bool,
}

/// Why a head cannot be changed so. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// No segments, or too many.
    #[error("segments is {value}, must be 1 to {SEGMENTS_MAX}")]
    Segments {
        /// The number refused.
        value: u32,
    },
    /// The account has been resegmented as often as it may.
    #[error("the account has had {LAYOUTS_MAX} layouts, and can have no more")]
    TooManyLayouts,
    /// Another plan must be finished first, by whoever finds it.
    #[error("generation {generation} is planned, and must be finished first")]
    Planned {
        /// The plan's generation.
        generation: u64,
    },
    /// The plan that was to be committed or replaced is not there any more: read the head again.
    #[error("generation {generation} is not planned any more")]
    NotPlanned {
        /// The generation that was meant.
        generation: u64,
    },
    /// A stored head is not one that [`Head::encode`] wrote.
    #[error("the account's head is malformed: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// The terms are out of range.
    #[error(transparent)]
    Terms(#[from] crate::TermsError),
}

impl HeadError {
    /// Whether the same call may succeed if made again, with the head read again.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Planned { .. } | Self::NotPlanned { .. } => true,
            Self::Segments { .. }
            | Self::TooManyLayouts
            | Self::Malformed { .. }
            | Self::Terms(_) => false,
        }
    }
}

impl Head {
    /// A new account's head: no layout yet, and a plan for the first. Whoever finds it creates the
    /// segments and commits. `place`: as for [`plan`](Self::plan).
    ///
    /// # Errors
    ///
    /// A number or a term is out of range.
    pub fn new(
        terms: Terms,
        segments: u32,
        place: impl FnOnce(&[u32], u32) -> Vec<u32>,
    ) -> Result<Self, HeadError> {
        terms.check()?;
        let empty = Self {
            terms,
            layouts: Vec::new(),
            places: Vec::new(),
            plan: None,
            last: 0,
            closed: false,
        };
        empty.plan(segments, 0, place)
    }

    /// The head as text, for whoever stores it.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("numbers, and structures of them")
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    ///
    /// [`HeadError::Malformed`].
    pub fn decode(text: &str) -> Result<Self, HeadError> {
        serde_json::from_str(text).map_err(|error| HeadError::Malformed {
            reason: error.to_string(),
        })
    }

    /// What is fixed for good.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Whether the account takes no new money.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Every layout there has been, oldest first. Empty only while the account is being created.
    pub fn layouts(&self) -> &[Layout] {
        &self.layouts
    }

    /// What is to become the next layout.
    pub fn planned(&self) -> Option<Layout> {
        self.plan
    }

    /// The newest layout's generation; 0 while the account is being created.
    pub fn generation(&self) -> u64 {
        self.layouts.last().map_or(0, |layout| layout.generation)
    }

    /// How many segments may have money: all that were ever homes. It never falls.
    pub fn segments(&self) -> u32 {
        let counts = self.layouts.iter().map(|layout| layout.segments);
        counts.max().unwrap_or(0)
    }

    /// Where segment `index` is, in the storage's own terms. 0 for one that never was planned.
    pub fn place_of(&self, index: u32) -> u32 {
        self.places.get(index as usize).copied().unwrap_or_default()
    }

    /// The segment where `id` is decided and remembered: its hash modulo the number of segments in
    /// force at its time. `None` only while the account is being created.
    pub fn home_of(&self, id: &RequestId) -> Option<u32> {
        let in_force = |layout: &&Layout| layout.from_ms <= id.time_ms();
        let layout = self.layouts.iter().rev().find(in_force)?;
        let home = id.hash() % u64::from(layout.segments);
        Some(u32::try_from(home).expect("less than a number of segments"))
    }

    /// With a plan for `segments` homes from `from_ms` on, or from just after the newest layout's
    /// beginning if that is later. `place` says where new segments are to be, given the places of those that
    /// there are, and how many come.
    ///
    /// # Errors
    ///
    /// There is a plan already, the number is out of range, or there were too many layouts.
    pub fn plan(
        &self,
        segments: u32,
        from_ms: u64,
        place: impl FnOnce(&[u32], u32) -> Vec<u32>,
    ) -> Result<Self, HeadError> {
        self.unplanned()?;
        if !(1..=SEGMENTS_MAX).contains(&segments) {
            return Err(HeadError::Segments { value: segments });
        }
        if self.layouts.len() >= LAYOUTS_MAX {
            return Err(HeadError::TooManyLayouts);
        }
        let least_ms = self.layouts.last().map_or(0, |layout| layout.from_ms + 1);
        let mut planned = self.with_plan(segments, from_ms.max(least_ms));
        let placed = u32::try_from(self.places.len()).expect("no more than there may be segments");
        if let Some(more) = segments.checked_sub(placed) {
            planned.places.extend(place(&self.places, more));
        }
        Ok(planned)
    }

    /// With the plan of `generation` replaced by one that begins later, since a segment has decided
    /// a request that the plan would home elsewhere.
    ///
    /// # Errors
    ///
    /// That plan is not there any more.
    pub fn plan_later(&self, generation: u64, from_ms: u64) -> Result<Self, HeadError> {
        let plan = self.planned_as(generation)?;
        Ok(self.with_plan(plan.segments, from_ms.max(plan.from_ms + 1)))
    }

    /// With the plan of `generation` as the newest layout. Every segment must be prepared for it.
    ///
    /// # Errors
    ///
    /// That plan is not there any more.
    pub fn commit(&self, generation: u64) -> Result<Self, HeadError> {
        let plan = self.planned_as(generation)?;
        let mut head = self.clone();
        head.layouts.push(plan);
        head.plan = None;
        Ok(head)
    }

    /// Closed. Segments that are created later are closed from the start.
    ///
    /// # Errors
    ///
    /// There is a plan, whose segments would be created open.
    pub fn close(&self) -> Result<Self, HeadError> {
        self.unplanned()?;
        Ok(Self {
            closed: true,
            ..self.clone()
        })
    }

    fn unplanned(&self) -> Result<(), HeadError> {
        match self.plan {
            Some(Layout { generation, .. }) => Err(HeadError::Planned { generation }),
            None => Ok(()),
        }
    }

    fn planned_as(&self, generation: u64) -> Result<Layout, HeadError> {
        self.plan
            .filter(|plan| plan.generation == generation)
            .ok_or(HeadError::NotPlanned { generation })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id(time_ms: u64, name: usize) -> RequestId {
        RequestId::new(time_ms, &name.to_string()).unwrap()
    }

    fn nowhere(_: &[u32], more: u32) -> Vec<u32> {
        vec![0; more as usize]
    }

    fn created(segments: u32) -> Head {
        let head = Head::new(Terms::default(), segments, nowhere).unwrap();
        head.commit(1).unwrap()
    }

    #[test]
    fn a_request_keeps_its_home_whatever_comes_later() {
        let one = created(1);
        let three = one.plan(3, 100, nowhere).unwrap().commit(2).unwrap();
        let two = three.plan(2, 200, nowhere).unwrap().commit(3).unwrap();
        for name in 0..100 {
            assert_eq!(two.home_of(&id(99, name)), Some(0));
            assert_eq!(
                two.home_of(&id(100, name)),
                three
                    .home_of(&id(199, name))
                    .and(three.home_of(&id(100, name)))
            );
            assert!(two.home_of(&id(200, name)).unwrap() < 2);
        }
        let homes = (0..100).filter_map(|name| two.home_of(&id(150, name)));
        assert_eq!(homes.max(), Some(2));
    }

    #[test]
    fn what_exists_never_shrinks() {
        let shrunk = created(3).plan(1, 100, nowhere).unwrap().commit(2).unwrap();
        assert_eq!((shrunk.segments(), shrunk.generation()), (3, 2));
    }

    #[test]
    fn a_generation_is_never_used_twice() {
        let planned = created(1).plan(2, 100, nowhere).unwrap();
        let later = planned.plan_later(2, 50).unwrap();
        assert_eq!(
            later.planned().map(|plan| (plan.generation, plan.from_ms)),
            Some((3, 101))
        );
        assert_eq!(
            later.commit(2),
            Err(HeadError::NotPlanned { generation: 2 })
        );
        assert_eq!(
            later.plan(2, 0, nowhere),
            Err(HeadError::Planned { generation: 3 })
        );
        assert_eq!(later.commit(3).unwrap().generation(), 3);
    }

    #[test]
    fn a_layout_begins_after_the_one_before() {
        let head = created(1).plan(2, 100, nowhere).unwrap().commit(2).unwrap();
        let next = head.plan(3, 7, nowhere).unwrap().planned().unwrap();
        assert_eq!(next.from_ms, 101);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for value in [0, SEGMENTS_MAX + 1] {
            assert_eq!(
                created(1).plan(value, 1, nowhere),
                Err(HeadError::Segments { value })
            );
        }
        let mut head = created(1);
        while head.layouts().len() < LAYOUTS_MAX {
            let planned = head.plan(1, 0, nowhere).unwrap();
            head = planned
                .commit(planned.planned().unwrap().generation)
                .unwrap();
        }
        assert_eq!(head.plan(1, 0, nowhere), Err(HeadError::TooManyLayouts));
    }
}
