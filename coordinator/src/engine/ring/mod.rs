//! Locks at the shards of the ring: the [`Authority`] of this process's local queues.
//!
//! ```text
//! request ─► driver ─► shard ─► request: judged ─► LocalQueues
//!    └─ search: the shard to ask, while the slot is migrating
//! ```
//!
//! A lease knows the renewer of its present shard, and the wheel of the renewer holds its leases. So these two files name
//! each other; no other files of the engine do.
//!
//! | file | content |
//! |---|---|
//! | `shard_lease.rs` | one acquisition at a shard |
//! | `current_shard.rs` | the shard that it is at |
//! | `in_flight.rs` | its unanswered requests |
//! | `requests.rs` | the requests of this process to all shards |
//! | `request.rs` | the request, and the meaning of its answers |
//! | `search.rs` | the shard to ask, while the slot is migrating |
//! | `release.rs` | the release that a caller waits for |
//! | `releases.rs` | releases in the background, until they are done |
//! | `last_releases.rs` | the thread that sends them when no task is left |
//! | `unsent.rs` | one release at one shard |
//! | `renewer.rs` | renewals, one task per shard |
//! | `moving.rs` | a holder moves with its slot |
//! | `confirm.rs` | the replicas of a lock agree on its token |
//! | `resume.rs` | a lease that another engine was granted: confirmed, or released |
//! | `wheel.rs` | the times at which to tend each lease |
//! | `routing.rs` | key → shard |
//! | `map.rs` | the slots a shard has at rest |
//! | `monitor.rs` | arms shards and marks them quiet, follows the topology |
//! | `clock.rs` | whose clock stepped: that of a server, or the own one |
//! | `checks.rs` | checks again and again whether servers are set up as required |

pub(crate) mod checks;
mod clock;
mod confirm;
mod current_shard;
mod in_flight;
pub(crate) mod last_releases;
mod map;
pub(crate) mod monitor;
mod moving;
mod release;
mod releases;
pub(crate) mod renewer;
mod request;
mod requests;
mod resume;
pub(crate) mod routing;
mod search;
mod shard_lease;
mod unsent;
mod wheel;

use std::sync::Arc;

pub(crate) use self::shard_lease::ShardLease;
use super::{
    AcquireError,
    local::{Lease, LeaseState, Receiver, Terms},
};
use crate::name::LockKey;
pub use monitor::ShardStatus;
pub(crate) use releases::Releases;
pub(crate) use requests::Requests;
pub(crate) use routing::{Declaration, Routing};

/// The shards of the ring.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) requests: Arc<Requests>,
    pub(crate) routing: Arc<Routing>,
}

impl Ring {
    /// A lease at the shard of its key, not requested yet.
    pub(crate) fn lease(
        &self,
        declaration: Declaration,
        state: LeaseState,
        callers: u32,
        receiver: Arc<dyn Receiver>,
    ) -> Arc<ShardLease> {
        let renewer = self.routing.route(&state.key).renewer;
        ShardLease::new(declaration, state, callers, renewer, receiver)
    }

    /// A lease of a lock with one replica.
    pub(crate) fn begin(
        &self,
        declaration: Declaration,
        key: &LockKey,
        terms: Terms,
        tokens: u32,
        callers: u32,
    ) -> Result<Arc<dyn Lease>, AcquireError> {
        let requests = &self.requests;
        requests.add_one().map_err(AcquireError::TooManyHeld)?;
        let nonce = requests.next_nonce();
        let view = &requests.around.view;
        let state = LeaseState::new(key.clone(), nonce, terms, tokens, view);
        Ok(self.lease(declaration, state, callers, requests.local.clone()))
    }

    pub(crate) fn shut_down(&self) {
        self.requests.around.stop.cancel();
        self.requests.releases.take_over();
    }
}
