//! Re-entry: who already holds a lock may take it again.

use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::hold::Hold;
use crate::{clock::Instant, ids::ClientId, name::LockKey};

/// Entries kept before those of ended holds are swept out.
const SWEEP_AT: usize = 32;

/// Somebody who may enter a lock more than once: a request, a job, whatever holds this handle.
///
/// Never a thread or a task: those are not who holds a lock, and a guard may move between them.
/// Clones are the same owner.
#[derive(Clone, Debug, Default)]
pub struct Owner(Arc<Mutex<HashMap<LockKey, Weak<Hold>>>>);

impl Owner {
    /// An owner that holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// What it holds on `key` through `client`, at `now`.
    pub(super) fn hold(&self, key: &LockKey, client: ClientId, now: Instant) -> Option<Arc<Hold>> {
        let hold = self.0.lock().get(key)?.upgrade()?;
        (hold.nonce.client == client && hold.is_held(now)).then_some(hold)
    }

    pub(super) fn entered(&self, hold: &Arc<Hold>) {
        let mut holds = self.0.lock();
        if holds.len() >= SWEEP_AT {
            holds.retain(|_, hold| hold.upgrade().is_some_and(|hold| !hold.is_over()));
        }
        holds.insert(hold.key.clone(), Arc::downgrade(hold));
    }
}
