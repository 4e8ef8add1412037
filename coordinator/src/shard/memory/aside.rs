//! Copies of groups: rows of them, and what is put together of rows.

use std::collections::BTreeMap;

use ringfence_segment_lock::{
    RequestId,
    segment::{Credit, CreditId, CreditState, Entry, Segment, State},
};

use super::counters::Kept;
use crate::{ids::Epoch, shard::Row};

/// Rows of a group that were put aside.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// When they are forgotten.
    pub(super) until_ms: u64,
    head: Option<(u64, String)>,
    segment: Option<Box<Segment>>,
    /// By their places.
    ids: BTreeMap<usize, (RequestId, Entry)>,
    credits: BTreeMap<usize, (CreditId, Credit)>,
}

impl Aside {
    /// Adds a row, which may be there already. Those of servers are left out: then something is missing.
    pub(super) fn add(&mut self, row: Row) {
        match row {
            Row::Stored { .. } => {}
            Row::Head(version, head) => self.head = Some((version, head)),
            Row::Segment(segment) => self.segment = Some(segment),
            Row::Id(nth, id, entry) => drop(self.ids.insert(nth, (id, entry))),
            Row::Credit(nth, id, credit) => drop(self.credits.insert(nth, (id, credit))),
        }
    }

    /// How many rows of each kind there are.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let (head, segment) = (self.head.is_some(), self.segment.is_some());
        sizes(head, segment, self.ids.len(), self.credits.len())
    }

    /// The group that the rows are of.
    pub(super) fn put_together(self, since: Epoch) -> Kept {
        let Self {
            head,
            segment,
            ids,
            credits,
            ..
        } = self;
        let segment = segment.map(|mut segment| {
            for (id, entry) in ids.into_values() {
                match entry.state {
                    State::Held { deadline_ms, .. } => {
                        segment.due.insert((deadline_ms, id.clone()));
                    }
                    State::Sent { .. } => drop(segment.sent.insert(id.clone())),
                    _ => {}
                }
                segment.order.push_back(id.clone());
                segment.ids.insert(id, entry);
            }
            for (id, credit) in credits.into_values() {
                if credit.state == CreditState::Pinned {
                    segment.pinned.insert(id.clone());
                }
                segment.credit_order.push_back(id.clone());
                segment.credits.insert(id, credit);
            }
            *segment
        });
        Kept {
            since,
            head,
            segment,
        }
    }
}

impl Kept {
    /// How many rows of each kind it has.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let segment = self.segment.as_ref();
        let ids = segment.map_or(0, |segment| segment.ids.len());
        let credits = segment.map_or(0, |segment| segment.credits.len());
        sizes(self.head.is_some(), segment.is_some(), ids, credits)
    }

    /// Its rows, in an order that stays as long as it does not change.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        let head = self.head.clone();
        let head = head.map(|(version, head)| Row::Head(version, head));
        let segment = self.segment.as_ref();
        let alone = segment.map(|segment| Row::Segment(Box::new(alone(segment))));
        let ids = segment.into_iter().flat_map(|segment| {
            let order = segment.order.iter().enumerate();
            order.map(|(nth, id)| Row::Id(nth, id.clone(), segment.ids[id].clone()))
        });
        let credits = segment.into_iter().flat_map(|segment| {
            let order = segment.credit_order.iter().enumerate();
            order.map(|(nth, id)| Row::Credit(nth, id.clone(), segment.credits[id]))
        });
        head.into_iter().chain(alone).chain(ids).chain(credits)
    }
}

fn sizes(head: bool, segment: bool, ids: usize, credits: usize) -> Vec<u64> {
    vec![
        u64::from(head),
        u64::from(segment),
        ids as u64,
        credits as u64,
    ]
}

/// `segment`, but what it remembers of requests and credits.
fn alone(segment: &Segment) -> Segment {
    Segment {
        out: segment.out.clone(),
        inn: segment.inn.clone(),
        ids: BTreeMap::new(),
        credits: BTreeMap::new(),
        order: [].into(),
        credit_order: [].into(),
        due: [].into(),
        sent: [].into(),
        pinned: [].into(),
        head: segment.head.clone(),
        ..*segment
    }
}
