//! Release: give a key back, or give up waiting for it.

use super::Batch;
use crate::{ids::Nonce, name::LockKey, shard::Reply};

impl Batch<'_> {
    /// Deletes what `nonce` has of `key`, and passes it on.
    pub(super) fn release(&mut self, key: &LockKey, nonce: Nonce) -> Reply {
        self.queues.remove(key, nonce);
        let held = self.records.remove(key, nonce, self.now_ms);
        self.pass(key, None);
        Reply::Released { held }
    }
}
