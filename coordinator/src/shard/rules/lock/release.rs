//! Release: give a key back, or give up waiting for it.

use super::Context;
use crate::{ids::Nonce, shard::Reply};

impl Context<'_> {
    /// Deletes the record and the ticket of `nonce`, and passes on what becomes free.
    pub(super) fn release(&mut self, nonce: Nonce) -> Reply {
        self.lock.leave(nonce);
        let held = self.lock.delete(nonce, self.now_ms);
        self.pass(None);
        Reply::Released { held }
    }
}
