//! Re-entry: an owner that holds a lock may acquire it again.

use std::sync::{Arc, Weak};

use hashbrown::HashMap;

use super::grant::Grant;
use crate::{clock::Instant, ids::ClientId, name::LockKey, sync::Mutex};

/// Number of entries kept before those of ended leases are removed.
const SWEEP_AT: usize = 32;

/// An owner that may enter a lock more than once: a request or a job with this handle.
///
/// It is never a thread or a task: these do not hold locks, and a guard may move between them.
/// Clones are the same owner.
#[derive(Clone, Debug, Default)]
pub struct Owner(Arc<Mutex<HashMap<LockKey, Weak<Grant>>>>);

impl Owner {
    /// An owner that holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether `other` is the same owner.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its lease on `key` through `client`, at `now`.
    pub(crate) fn grant(
        &self,
        key: &LockKey,
        client: ClientId,
        now: Instant,
    ) -> Option<Arc<Grant>> {
        let grant = self.0.lock().get(key)?.upgrade()?;
        (grant.lease().nonce.client == client && grant.is_held(now)).then_some(grant)
    }

    pub(crate) fn entered(&self, grant: &Arc<Grant>) {
        let mut grants = self.0.lock();
        if grants.len() >= SWEEP_AT {
            grants.retain(|_, grant| {
                grant
                    .upgrade()
                    .is_some_and(|grant| !grant.lease().is_over())
            });
        }
        grants.insert(grant.lease().key.clone(), Arc::downgrade(grant));
    }
}
