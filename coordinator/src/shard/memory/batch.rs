//! Batches of requests about locks.

use super::state::Memory;
use crate::shard::{Answers, Request, ShardError, rules::Batch};

impl Memory {
    /// Applies a batch, or nothing of it.
    pub(super) fn call(&mut self, batch: &[Request], now_ms: u64) -> Result<Answers, ShardError> {
        let armed = self.whole.head.armed_mut()?;
        let answers = Batch {
            armed,
            slots: &mut self.whole.slots,
            locks: &mut self.locks,
            notifications: &mut self.notifications,
            full: self.full,
            now_ms,
            slack_ms: 0,
        }
        .apply(batch);
        let token_epoch = armed.tokens.epoch;
        self.whole.head.see_epoch(token_epoch);
        Ok(answers)
    }
}
