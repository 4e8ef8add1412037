//! Copies of groups: their rows, and the parts assembled from rows.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
};

use ringfence_segment_lock::{
    RequestId,
    segment::{Credit, CreditId, CreditState, Entry, Final, Segment, State},
};

use super::counters::Kept;
use crate::{
    ids::Epoch,
    shard::{Row, Stamp},
};

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
}

impl Aside {
    /// Adds a row, which may be there already. Those of servers are left out: then something is missing.
    pub(super) fn add(&mut self, row: Row) {
        match row {
            Row::Stored { .. } => {}
            Row::Manifest(version, manifest) => self.manifest = Some((version, manifest)),
            Row::Segment(segment) => self.segment = Some(segment),
            Row::Id(id, entry) => drop(self.ids.insert(id, entry)),
            Row::Credit(id, credit) => drop(self.credits.insert(id, credit)),
            Row::Final(nth, id) => drop(self.order.insert(nth, id)),
        }
    }

    /// How many rows of each kind there are.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let (manifest, segment) = (self.manifest.is_some(), self.segment.is_some());
        let lens = [self.ids.len(), self.credits.len(), self.order.len()];
        sizes(manifest, segment, lens)
    }

    /// The group that the rows are of.
    pub(super) fn put_together(self, since: Epoch) -> Kept {
        let Self {
            manifest,
            segment,
            ids,
            credits,
            order,
            ..
        } = self;
        let segment = segment.map(|mut segment| {
            for (id, entry) in &ids {
                match entry.state {
                    State::Held { deadline_ms, .. } => {
                        segment.due.insert((deadline_ms, id.clone()));
                    }
                    State::Sent { .. } => drop(segment.sent.insert(id.clone())),
                    _ => {}
                }
            }
            let pinned = credits.iter();
            let pinned = pinned.filter(|(_, credit)| credit.state == CreditState::Pinned);
            segment.pinned = pinned.map(|(id, _)| id.clone()).collect();
            (segment.ids, segment.credits) = (ids, credits);
            segment.order = order.into_values().collect();
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

impl Kept {
    /// Its content, as a copy of it has that, too.
    pub(super) fn stamp(&self) -> Stamp {
        let mut segment = self.segment.clone();
        if let Some(segment) = &mut segment {
            // What changes when the shard comes back, or ends by itself.
            (segment.version, segment.losses) = (0, 0);
            (segment.doubtful, segment.frozen) = (false, None);
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(format!("{:?} {segment:?}", self.manifest).as_bytes());
        Stamp(hasher.finish().to_be_bytes().to_vec())
    }

    /// How many rows of each kind it has.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let segment = self.segment.as_ref();
        let lens = segment.map_or([0; 3], |segment| {
            let Segment {
                ids,
                credits,
                order,
                ..
            } = segment;
            [ids.len(), credits.len(), order.len()]
        });
        sizes(self.manifest.is_some(), segment.is_some(), lens)
    }

    /// Its rows, in an order that stays as long as it does not change.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        let manifest = self.manifest.clone();
        let manifest = manifest.map(|(version, manifest)| Row::Manifest(version, manifest));
        let segment = self.segment.as_ref();
        let alone = segment.map(|segment| Row::Segment(Box::new(alone(segment))));
        let ids = segment.into_iter().flat_map(|segment| &segment.ids);
        let ids = ids.map(|(id, entry)| Row::Id(id.clone(), entry.clone()));
        let credits = segment.into_iter().flat_map(|segment| &segment.credits);
        let credits = credits.map(|(id, credit)| Row::Credit(id.clone(), *credit));
        let order = segment.into_iter().flat_map(|segment| &segment.order);
        let order = order
            .enumerate()
            .map(|(nth, id)| Row::Final(nth, id.clone()));
        let rows = manifest.into_iter().chain(alone).chain(ids);
        rows.chain(credits).chain(order)
    }
}

fn sizes(manifest: bool, segment: bool, lens: [usize; 3]) -> Vec<u64> {
    let mut sizes = vec![u64::from(manifest), u64::from(segment)];
    sizes.extend(lens.map(|len| len as u64));
    sizes
}

/// `segment`, but what it remembers of requests and credits.
fn alone(segment: &Segment) -> Segment {
    Segment {
        out: segment.out.clone(),
        inn: segment.inn.clone(),
        ids: BTreeMap::new(),
        credits: BTreeMap::new(),
        order: [].into(),
        due: [].into(),
        sent: [].into(),
        pinned: [].into(),
        manifest: segment.manifest.clone(),
        ..*segment
    }
}
