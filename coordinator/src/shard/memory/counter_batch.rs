//! Batches of requests about counters.

use super::state::Memory;
use crate::{
    name::LockKey,
    shard::{CounterAnswers, CounterReply, CounterRequest, Mode, ShardError, rules::Slots},
};

impl Memory {
    /// Applies a batch, or nothing of it.
    pub(super) fn call_counters(
        &mut self,
        batch: &[CounterRequest],
        unix_ms: u64,
    ) -> Result<CounterAnswers, ShardError> {
        let armed = self.whole.head.armed()?;
        let is_quiet = |request: &CounterRequest| armed.is_quiet(request.map);
        let quiet = batch.first().is_some_and(is_quiet);
        let replies =
            batch
                .iter()
                .map(|request| match elsewhere(&self.whole.slots, &request.key) {
                    Some(reply) if !is_quiet(request) => reply,
                    _ if self.full => CounterReply::OutOfMemory,
                    _ => {
                        let since = self.whole.slots.get(request.key.slot()).epoch;
                        self.counters.apply(request, since, unix_ms)
                    }
                });
        Ok(CounterAnswers {
            quiet,
            replies: replies.collect(),
        })
    }
}

/// The refusal of a request about a counter that is not here.
fn elsewhere(slots: &Slots, key: &LockKey) -> Option<CounterReply> {
    let state = slots.get(key.slot());
    let epoch = state.epoch;
    match state.mode {
        Mode::Shut => Some(CounterReply::Moved { epoch }),
        Mode::Sealed => Some(CounterReply::Moving { epoch }),
        Mode::Import if slots.is_admitted(key.slot()) => None,
        Mode::Import => Some(CounterReply::Coming { epoch }),
        Mode::Open => None,
    }
}
