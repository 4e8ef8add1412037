//! Segments and heads.

use std::collections::BTreeMap;

use ringfence_segment_lock::segment::{Answer, Refusal, Request as SegmentRequest, Segment};

use super::{armed::Armed, batch::Batch, state::Memory};
use crate::{
    ids::MapVersion,
    name::LockKey,
    shard::{CounterAnswers, CounterOp, CounterReply, CounterRequest, Mode, ShardError},
};

/// What a shard keeps for counters. It is as durable as the process.
#[derive(Debug, Default)]
pub(super) struct Counters {
    segments: BTreeMap<LockKey, Segment>,
    heads: BTreeMap<LockKey, (u64, String)>,
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
        let map = batch.first().map_or(MapVersion::UNKNOWN, |first| first.map);
        let quiet = Batch::is_quiet(armed, map);
        let replies = batch
            .iter()
            .map(|request| match elsewhere(armed, &request.key, now_ms) {
                Some(reply) if !quiet => reply,
                _ if self.full => CounterReply::OutOfMemory,
                _ => self.counters.apply(request, unix_ms),
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
        Mode::Import => Some(CounterReply::Coming { epoch }),
        Mode::Open => None,
    }
}

impl Counters {
    fn apply(&mut self, request: &CounterRequest, unix_ms: u64) -> CounterReply {
        let key = &request.key;
        match &request.op {
            CounterOp::Segment(request) => {
                CounterReply::Segment(self.segment(key, request, unix_ms))
            }
            CounterOp::ReadHead => CounterReply::Head(self.heads.get(key).cloned()),
            CounterOp::SwapHead { expected, head, .. } => {
                CounterReply::Swapped(self.swap(key, *expected, head))
            }
        }
    }

    fn segment(&mut self, key: &LockKey, request: &SegmentRequest, unix_ms: u64) -> Answer {
        if let SegmentRequest::Create(create) = request {
            let segment = self.segments.entry(key.clone());
            return segment
                .or_insert_with(|| Segment::new(create))
                .apply(request, unix_ms);
        }
        let segment = self.segments.get_mut(key).ok_or(Refusal::Missing)?;
        segment.apply(request, unix_ms)
    }

    fn swap(&mut self, key: &LockKey, expected: u64, head: &str) -> bool {
        let version = self.heads.get(key).map_or(0, |(version, _)| *version);
        let swapped = version == expected;
        if swapped {
            self.heads
                .insert(key.clone(), (version + 1, head.to_owned()));
        }
        swapped
    }
}
