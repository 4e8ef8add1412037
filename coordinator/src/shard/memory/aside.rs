//! Rows of a group that has not arrived.

use std::collections::BTreeMap;

use ringfence_segment_lock::{
    RequestId,
    segment::{Credit, CreditId, CreditState, Effect, Entry, Final, Segment, State},
};

use super::kept::{Kept, sizes};
use crate::{ids::Epoch, shard::Row};

/// Rows of a group that were put aside.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// When they are forgotten.
    pub(super) until_ms: u64,
    manifest: Option<(u64, String)>,
    segment: Option<Box<Segment>>,
    ids: BTreeMap<RequestId, Entry>,
    credits: BTreeMap<CreditId, Credit>,
    /// By their places.
    order: BTreeMap<usize, Final>,
    /// By their numbers.
    effects: BTreeMap<u64, Effect>,
}

impl Aside {
    /// Adds a row, which may be there already. Rows in a server's encoding are left out: then the group stays incomplete.
    pub(super) fn add(&mut self, row: Row) {
        match row {
            Row::Stored { .. } | Row::Gone { .. } => {}
            Row::Manifest(version, manifest) => self.manifest = Some((version, manifest)),
            Row::Segment(segment) => self.segment = Some(segment),
            Row::Id(id, entry) => drop(self.ids.insert(id, entry)),
            Row::Credit(id, credit) => drop(self.credits.insert(id, credit)),
            Row::Final(nth, id) => drop(self.order.insert(nth, id)),
            Row::Effect(effect) => drop(self.effects.insert(effect.number, effect)),
        }
    }

    /// The number of rows of each kind.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let (manifest, segment) = (self.manifest.is_some(), self.segment.is_some());
        let lens = [
            self.ids.len(),
            self.credits.len(),
            self.order.len(),
            self.effects.len(),
        ];
        sizes(manifest, segment, lens)
    }

    /// The group of these rows.
    pub(super) fn put_together(self, since: Epoch) -> Kept {
        let Self {
            manifest,
            segment,
            ids,
            credits,
            order,
            effects,
            ..
        } = self;
        let segment = segment.map(|mut segment| {
            for (id, entry) in &ids {
                match entry.state {
                    State::Held { deadline_ms, .. } => {
                        segment.due.insert((deadline_ms, id.clone()));
                    }
                    State::Sent { .. } | State::Committed(_) => {
                        _ = segment.sent.insert(id.clone());
                    }
                    _ => {}
                }
            }
            let pinned = credits.iter();
            let is_open =
                |state| matches!(state, CreditState::Promised { .. } | CreditState::Pinned);
            let pinned = pinned.filter(|(_, credit)| is_open(credit.state));
            segment.pinned = pinned.map(|(id, _)| id.clone()).collect();
            (segment.ids, segment.credits) = (ids, credits);
            segment.order = order.into_values().collect();
            segment.log.effects = effects.into_values().collect();
            *segment
        });
        Kept {
            since,
            manifest,
            segment,
            copy: None,
        }
    }
}
