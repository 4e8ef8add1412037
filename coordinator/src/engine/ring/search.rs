//! The shard to ask while the slot is migrating.
//!
//! ```text
//! not listed:  A, sealed: absent ─► B, with this proof
//! listed:      B ── needs a proof ─► A ─► B
//! ```
//!
//! B must not grant a key that A holds, and A grants nothing. So a request goes from one to the
//! other, with its nonce and its ticket, and queues at B behind earlier tickets there. Anything it
//! leaves behind is released with it.

use std::sync::Arc;

use super::{
    super::{
        AcquireError,
        local::{Phase, events},
    },
    Requests,
    in_flight::Search,
    renewer::LeaseRenewer,
    request::Verdict,
    routing::MigrationEnds,
    shard_lease::ShardLease,
};
use crate::{ids::Epoch, shard::Proof};

/// How often a request goes from one shard to the other before it pauses: the two may disagree for
/// a moment.
const TURNS_MAX: u8 = 4;

/// With fewer misled requests than this there is no sweep.
const SWEEP_MIN: usize = 1024;

/// Requests that an outdated picture of the ring has sent to the wrong shard, and that wait for a
/// new picture.
#[derive(Debug, Default)]
pub(crate) struct StaleRoutes {
    leases: Vec<Arc<ShardLease>>,
    /// The number at which requests that no longer wait are removed: twice the number left by the
    /// last sweep, so that the cost per request is constant.
    sweep_at: usize,
}

impl StaleRoutes {
    pub(crate) fn add(&mut self, lease: &Arc<ShardLease>) {
        if self.leases.len() >= self.sweep_at {
            self.leases.retain(|lease| lease.phase() == Phase::Asked);
            self.sweep_at = SWEEP_MIN.max(2 * self.leases.len());
        }
        self.leases.push(lease.clone());
    }
}

impl Requests {
    /// The picture of the ring has changed.
    pub(crate) fn look_again(self: &Arc<Self>) {
        let stale_routes = std::mem::take(&mut *self.stale_routes.lock());
        stale_routes
            .leases
            .iter()
            .for_each(|lease| self.recheck(lease));
    }

    /// The slot is not at this shard since `epoch`: not yet, or not any more.
    pub(crate) fn moved(
        &self,
        lease: &ShardLease,
        at: &Arc<LeaseRenewer>,
        epoch: Epoch,
    ) -> Verdict {
        let Some(routing) = self.routing() else {
            return self.trouble(lease, AcquireError::Moved);
        };
        let coming = routing.route(&lease.key).migration;
        let mut in_flight = lease.in_flight.lock();
        let proven_at = in_flight.proof.map(|proof| proof.epoch);
        let goes_on = |migration: MigrationEnds| {
            // If it is sealed at the former shard, it is about to arrive; if shut there, it has
            // arrived.
            let arrives = Arc::ptr_eq(&migration.to, at) && proven_at == Some(migration.epoch);
            let arrived = Arc::ptr_eq(&migration.from, at) && epoch == migration.epoch;
            (arrives || arrived).then_some(migration.to)
        };
        if let Some(to) = coming.and_then(goes_on) {
            in_flight.search.turns += 1;
            if in_flight.search.turns <= TURNS_MAX {
                return Verdict::GoOn(to);
            }
        }
        drop(in_flight);
        routing.refresh();
        self.trouble(lease, AcquireError::Moved)
    }

    /// The shard has sealed the slot.
    pub(crate) fn sealed(
        &self,
        lease: &ShardLease,
        at: &Arc<LeaseRenewer>,
        epoch: Epoch,
        left: Option<u32>,
    ) -> Verdict {
        let Some(migration) = self.migration(lease, epoch) else {
            return self.trouble(lease, AcquireError::Moved);
        };
        let mut in_flight = lease.in_flight.lock();
        match left {
            Some(left) => {
                in_flight.proof = Some(Proof { epoch, left });
                in_flight.search.proved = true;
            }
            None => in_flight.search.held_there = true,
        }
        self.turn_to(
            lease,
            at,
            &mut in_flight.search,
            (&migration.to, &migration),
        )
    }

    /// The shard needs a proof that its predecessor does not hold the key.
    pub(crate) fn unproven(
        &self,
        lease: &ShardLease,
        at: &Arc<LeaseRenewer>,
        epoch: Epoch,
    ) -> Verdict {
        let Some(migration) = self.migration(lease, epoch) else {
            return self.trouble(lease, AcquireError::Moved);
        };
        let mut in_flight = lease.in_flight.lock();
        in_flight.search.unproven = true;
        // There is no room beside the shares left there, or beside earlier waiters.
        let some_left = in_flight.proof.is_some_and(|proof| proof.left > 0);
        in_flight.search.held_there |= in_flight.search.proved && some_left;
        self.turn_to(
            lease,
            at,
            &mut in_flight.search,
            (&migration.from, &migration),
        )
    }

    fn migration(&self, lease: &ShardLease, epoch: Epoch) -> Option<MigrationEnds> {
        self.routing()?.migration(&lease.key, epoch)
    }

    /// Goes on to the `other` shard at once, unless neither grants: then it waits at the shard
    /// where it has its ticket.
    fn turn_to(
        &self,
        lease: &ShardLease,
        at: &Arc<LeaseRenewer>,
        search: &mut Search,
        (other, migration): (&Arc<LeaseRenewer>, &MigrationEnds),
    ) -> Verdict {
        search.turns += 1;
        let futile = search.held_there && search.unproven;
        if !futile && search.turns <= TURNS_MAX {
            return Verdict::GoOn(other.clone());
        }
        let because = AcquireError::Moving {
            shard: at.driver.id().to_string(),
        };
        Verdict::GoAndWait {
            to: migration.to.clone(),
            because,
            pause: self.until_recheck(lease),
        }
    }

    /// Goes on to the shard of `to`, if it still waits. Returns whether it does.
    pub(super) fn goes(&self, lease: &Arc<ShardLease>, to: &Arc<LeaseRenewer>) -> bool {
        lease.receiver.if_asked(lease, &mut |_| lease.go(to))
    }
}

impl ShardLease {
    /// Moves its request to the shard of `to`, unless it is there, or taken back.
    pub(super) fn go(&self, to: &Arc<LeaseRenewer>) {
        let mut in_flight = self.in_flight.lock();
        let from = self.renewer();
        if !Arc::ptr_eq(&from, to) && !self.is_over() && from.hand_over(self, to) {
            in_flight.goes(&from, to);
            events::moving(self, from.around.clock.now());
        }
    }
}
