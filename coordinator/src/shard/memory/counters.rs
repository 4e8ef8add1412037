//! Segments and manifests.

use std::collections::BTreeMap;

use ringfence_ring::Slot;
use ringfence_segment_lock::segment::Segment;

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
                let group = match self.groups.get_mut(key) {
                    Some(group) => group,
                    None => self.groups.entry(key.clone()).or_insert_with(made),
                };
                let answer = Segment::apply_to(&mut group.segment, request, unix_ms);
                if group.segment.is_none() && group.manifest.is_none() {
                    self.groups.remove(key);
                }
                CounterReply::Segment(answer)
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
}
