//! One release of a lease at one shard.

use std::sync::Arc;

use super::{in_flight::Behind, renewer::LeaseRenewer, shard_lease::ShardLease};
use crate::{
    clock::Instant,
    driver::Respond,
    shard::{LockLane, Release},
};

/// A release that has to be sent, or sent again.
#[derive(Clone, Debug)]
pub(crate) struct Unsent {
    pub(crate) lease: Arc<ShardLease>,
    pub(crate) at: Arc<LeaseRenewer>,
    pub(crate) give_up: Instant,
    /// Its local queue waits for the first answer.
    pub(crate) yields: bool,
}

/// The shard of `lease`, and the other shards that may have something of it. Belief in it has ended,
/// so it moves no more.
///
/// Both are read under the lock under which it moves from one shard to another. Read one after the
/// other, both could name the shard that it leaves, and its record at the next shard would stay for
/// a lease.
pub(crate) fn places(lease: &ShardLease) -> (Arc<LeaseRenewer>, Vec<Arc<LeaseRenewer>>) {
    let in_flight = lease.in_flight.lock();
    (lease.renewer().clone(), in_flight.left_elsewhere())
}

pub(crate) fn release_behind(lease: &ShardLease, at: &Arc<LeaseRenewer>) -> Behind {
    let mut in_flight = lease.in_flight.lock();
    in_flight.at(&lease.renewer(), at).release_behind()
}

/// A release of `lease`, for the shard of `at`.
pub(crate) fn request(lease: &ShardLease, at: &LeaseRenewer) -> Release {
    let (map, declared) = at.versions(lease.key.slot());
    Release {
        key: lease.key.clone(),
        map,
        declared,
        nonce: lease.nonce,
    }
}

/// Sends a release of `lease` to the shard of `at`.
pub(crate) fn submit(lease: &ShardLease, at: &LeaseRenewer, lane: LockLane, respond: Respond) {
    at.driver.release(lane, request(lease, at), respond);
}
