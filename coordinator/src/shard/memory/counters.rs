//! Segments and manifests.

use std::collections::BTreeMap;

use ringfence_segment_lock::segment::{Answer, Refusal, Request as SegmentRequest, Segment};

use super::{armed::Armed, aside::Aside, batch::Batch, state::Memory};
use crate::{
    ids::{Epoch, Life},
    name::LockKey,
    shard::{CopyOf, CounterAnswers, CounterOp, CounterReply, CounterRequest, Mode, ShardError},
};

/// What a shard keeps for counters. It is as durable as the process.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) groups: BTreeMap<LockKey, Kept>,
    /// Copies that have not arrived, by their move and the life they are of.
    pub(super) aside: BTreeMap<(LockKey, Epoch, Life), Aside>,
}

/// What a shard keeps of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// Its slot's epoch when it came, or was made.
    pub(super) since: Epoch,
    pub(super) manifest: Option<(u64, String)>,
    pub(super) segment: Option<Segment>,
    /// What it is a copy of, if it came.
    pub(super) copy: Option<CopyOf>,
}

impl Memory {
    /// Applies a batch, or nothing of it.
    pub(super) fn call_counters(
        &mut self,
        batch: &[CounterRequest],
        now_ms: u64,
        unix_ms: u64,
    ) -> Result<CounterAnswers, ShardError> {
        let armed = self.armed.as_ref().ok_or(ShardError::Unarmed)?;
        let is_quiet = |request: &CounterRequest| Batch::is_quiet(armed, request.map);
        let quiet = batch.first().is_some_and(is_quiet);
        let replies = batch
            .iter()
            .map(|request| match elsewhere(armed, &request.key, now_ms) {
                Some(reply) if !is_quiet(request) => reply,
                _ if self.full => CounterReply::OutOfMemory,
                _ => {
                    let since = armed.slots.get(request.key.slot()).epoch;
                    self.counters.apply(request, since, unix_ms)
                }
            });
        Ok(CounterAnswers {
            quiet,
            replies: replies.collect(),
        })
    }
}

/// Why counters of that key are not asked here, if so.
fn elsewhere(armed: &Armed, key: &LockKey, now_ms: u64) -> Option<CounterReply> {
    let state = armed.slots.get(key.slot());
    let epoch = state.epoch;
    match state.mode {
        _ if now_ms < armed.shut_until_ms => Some(CounterReply::Moved { epoch }),
        Mode::Shut => Some(CounterReply::Moved { epoch }),
        Mode::Sealed => Some(CounterReply::Moving { epoch }),
        Mode::Import if armed.imports.is_admitted(key.slot()) => None,
        Mode::Import => Some(CounterReply::Coming { epoch }),
        Mode::Open => None,
    }
}

impl Counters {
    /// Whether the group of `key` that is there since then, or a later one, is here.
    pub(super) fn has(&self, key: &LockKey, since: Epoch) -> bool {
        let present = self.groups.get(key);
        present.is_some_and(|kept| kept.since >= since)
    }

    /// Applies the request; a segment that it creates exists since `since`.
    fn apply(&mut self, request: &CounterRequest, since: Epoch, unix_ms: u64) -> CounterReply {
        let made = || Kept {
            since,
            ..Kept::default()
        };
        let key = &request.key;
        match &request.op {
            CounterOp::Segment(request) => {
                let there = self.groups.get(key);
                if there.is_none_or(|group| group.segment.is_none())
                    && let Some(segment) = Segment::made_by(request, unix_ms)
                {
                    let group = self.groups.entry(key.clone()).or_insert_with(made);
                    group.segment = Some(segment);
                }
                CounterReply::Segment(self.segment(key, request, unix_ms))
            }
            CounterOp::ReadManifest => {
                let group = self.groups.get(key);
                CounterReply::Manifest(group.and_then(|group| group.manifest.clone()))
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

    fn segment(&mut self, key: &LockKey, request: &SegmentRequest, unix_ms: u64) -> Answer {
        let group = self.groups.get_mut(key).ok_or(Refusal::Missing)?;
        let segment = group.segment.as_mut().ok_or(Refusal::Missing)?;
        segment.apply(request, unix_ms)
    }
}
