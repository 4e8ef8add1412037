//! Segments and manifests.

use std::collections::BTreeMap;

use ringfence_ring::Slot;
use ringfence_segment_lock::segment::{Answer, Refusal, Reply, Request as SegmentRequest, Segment};

use super::{aside::Aside, kept::Kept};
use crate::{
    ids::{Epoch, Life},
    name::LockKey,
    shard::{CounterOp, CounterReply, CounterRequest},
};

/// The counters of a shard. They end with the process.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) groups: BTreeMap<LockKey, Kept>,
    /// Copies that have not arrived, by key, move, and the life of the shard that sends them.
    pub(super) aside: BTreeMap<(LockKey, Epoch, Life), Aside>,
    /// Whether no manifest was ever lost here.
    pub(super) complete: bool,
}

impl Counters {
    /// Whether the group of `key` of that epoch, or a later one, is here.
    pub(super) fn has(&self, key: &LockKey, since: Epoch) -> bool {
        let present = self.groups.get(key);
        present.is_some_and(|kept| kept.since >= since)
    }

    /// Applies the request. `since` is the epoch of a group that it creates.
    pub(super) fn apply(
        &mut self,
        request: &CounterRequest,
        since: Epoch,
        unix_ms: u64,
    ) -> CounterReply {
        let made = || Kept {
            since,
            ..Kept::default()
        };
        let key = &request.key;
        match &request.op {
            CounterOp::Segment(request) => {
                let there = self.groups.get(key);
                if there.is_none_or(|group| group.segment.is_none()) {
                    match Segment::made_by(request, unix_ms) {
                        Ok(segment) => {
                            let group = self.groups.entry(key.clone()).or_insert_with(made);
                            group.segment = Some(segment);
                        }
                        Err(refusal) => return CounterReply::Segment(Err(refusal)),
                    }
                }
                CounterReply::Segment(self.segment(key, request, unix_ms))
            }
            CounterOp::ReadManifest => {
                let group = self.groups.get(key);
                match group.and_then(|group| group.manifest.clone()) {
                    None if self.complete => CounterReply::NeverMade,
                    found => CounterReply::Manifest(found),
                }
            }
            CounterOp::SwapManifest {
                expected, manifest, ..
            } => {
                let present = self
                    .groups
                    .get(key)
                    .and_then(|group| group.manifest.as_ref());
                let swapped = present.map_or(0, |(version, _)| *version) == *expected;
                if swapped {
                    let group = self.groups.entry(key.clone()).or_insert_with(made);
                    group.manifest = Some((expected + 1, manifest.clone()));
                }
                CounterReply::Swapped(swapped)
            }
        }
    }

    /// Drops the rows of copies that came to `slots` by moves before `epoch`. The slots leave now.
    pub(super) fn drop_asides(&mut self, slots: &[Slot], epoch: Epoch) {
        self.aside
            .retain(|(key, by, _), _| *by >= epoch || !slots.contains(&key.slot()));
    }

    fn segment(&mut self, key: &LockKey, request: &SegmentRequest, unix_ms: u64) -> Answer {
        let group = self.groups.get_mut(key).ok_or(Refusal::Missing)?;
        let segment = group.segment.as_mut().ok_or(Refusal::Missing)?;
        let answer = segment.apply(request, unix_ms);
        if answer == Ok(Reply::Removed) {
            group.segment = None;
            if group.manifest.is_none() {
                self.groups.remove(key);
            }
        }
        answer
    }
}
