//! Locks with several replicas: the [`Authority`] of namespaces with 3 or 5 replicas (Redlock).
//!
//! A replica is a lease at a shard, under the slot of its rank. A majority of them is the lock. Rules:
//! docs/protocol.md, "Replicated namespaces".
//!
//! ```text
//! LocalQueues ─► ReplicatedLease ─► a ShardLease per rank ─► shards
//! LocalQueues ◄─ vote ◄─ Ballot ◄─ a ShardLease per rank ◄─ shards
//! ```
//!
//! | file | content |
//! |---|---|
//! | `lease.rs` | one acquisition at all ranks: requested, and decided by their answers |
//! | `waiting.rs` | while it waits |
//! | `holding.rs` | while it is held |
//! | `handle.rs` | as the local queue sees it |
//! | `resume.rs` | taken up from another engine |
//! | `ballot.rs` | what the ranks answer |
//! | `ranks.rs` | the state of the ranks |
//! | `vote.rs` | the decision, from the answers of the ranks |

mod ballot;
mod handle;
mod holding;
mod lease;
mod ranks;
mod resume;
mod vote;
mod waiting;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use ringfence_ring::Replicas;

pub(crate) use self::lease::ReplicatedLease;
use super::{
    AcquireError,
    local::{Authority, Flushing, Lease, Terms},
    ring::Ring,
};
use crate::{
    name::{LockKey, Namespace},
    shard::LockMode,
};

/// The shards of the ring: each key is at one, or has replicas at several, by its namespace.
#[derive(Debug)]
pub(crate) struct Shards(pub(crate) Arc<Ring>);

impl Authority for Shards {
    fn begin(
        &self,
        key: &LockKey,
        terms: Terms,
        tokens: u32,
        callers: u32,
    ) -> Result<Arc<dyn Lease>, AcquireError> {
        let Self(ring) = self;
        let declaration = ring.routing.declaration(key);
        match declaration.replicas {
            Replicas::One => ring.begin(declaration, key, terms, tokens, callers),
            replicas if terms.mode != LockMode::Exclusive => Err(AcquireError::Replicated {
                namespace: Namespace::new(key.namespace())?,
                replicas,
            }),
            _ => {
                let nonce = || ring.requests.next_nonce();
                let lease =
                    ReplicatedLease::begin(ring, declaration, key, terms, tokens, callers, nonce)?;
                Ok(lease)
            }
        }
    }

    fn flush(&self, grace: Duration) -> Flushing {
        let releases = self.0.requests.releases.clone();
        Box::pin(async move { releases.flush(grace).await })
    }

    fn shut_down(&self) {
        self.0.shut_down();
    }
}
