//! One acquisition at a shard.

use std::{ops::Deref, sync::Arc};

use ringfence_ring::ShardId;

use super::{
    super::local::{Lease, LeaseState, Phase, Receiver, Releasing},
    current_shard::{CurrentShard, Found},
    in_flight::InFlight,
    renewer::LeaseRenewer,
    routing::Declaration,
    wheel::{Place, Tended},
};
use crate::{clock::Instant, shard::QueuedGrant, sync::Mutex};

/// One acquisition at a shard: from before its first request to after its last one.
#[derive(Debug)]
pub(crate) struct ShardLease {
    state: LeaseState,
    /// The present shard. Changed under the lock of `in_flight`, and outside that shard's wheel.
    current_shard: CurrentShard<LeaseRenewer>,
    place: Place,
    pub(crate) receiver: Arc<dyn Receiver>,
    pub(crate) in_flight: Mutex<InFlight<LeaseRenewer>>,
}

impl Deref for ShardLease {
    type Target = LeaseState;

    fn deref(&self) -> &LeaseState {
        &self.state
    }
}

impl ShardLease {
    /// A lease that is about to be requested. The request queues for so many callers.
    pub(crate) fn new(
        declaration: Declaration,
        state: LeaseState,
        callers: u32,
        renewer: Arc<LeaseRenewer>,
        receiver: Arc<dyn Receiver>,
    ) -> Arc<Self> {
        Arc::new(Self {
            state,
            current_shard: CurrentShard::new(renewer),
            place: Place::default(),
            receiver,
            in_flight: Mutex::new(InFlight::new(declaration, callers)),
        })
    }

    /// The renewer of the present shard.
    pub(crate) fn renewer(&self) -> Found<'_, LeaseRenewer> {
        self.current_shard.get()
    }

    /// Whether the lease is at the shard of `renewer`.
    pub(crate) fn is_at(&self, renewer: &LeaseRenewer) -> bool {
        std::ptr::eq(&**self.current_shard.get(), renewer)
    }

    /// The lease is at the shard of `renewer` from now on.
    pub(crate) fn set_renewer(&self, renewer: &Arc<LeaseRenewer>) {
        self.current_shard.set(renewer);
    }

    /// Ends belief in it, once. Returns the phase until now.
    pub(crate) fn end_here(&self) -> Phase {
        let before = self.state.end();
        if before != Phase::Over {
            // It may be moving from one shard to another.
            while !self.renewer().forget(self) {}
            self.renewer().requests.remove_one();
        }
        if before == Phase::Held {
            self.count_if_expired();
        }
        before
    }

    /// Counts it as expired if its deadline has passed, although its holder meant to hold it for longer. Counted wherever it ends:
    /// a holder that is told at the deadline may be quicker than the renewer.
    fn count_if_expired(&self) {
        let renewer = self.renewer();
        let is_over = self.deadline() <= renewer.around.clock.now();
        if is_over && self.is_to_go_on() {
            renewer.driver.metrics().expired();
        }
    }
}

impl Tended for ShardLease {
    fn place(&self) -> &Place {
        &self.place
    }
}

impl Lease for ShardLease {
    fn state(&self) -> &LeaseState {
        &self.state
    }

    fn request(self: Arc<Self>) {
        self.renewer().requests.ask(&self);
    }

    fn abandon(self: Arc<Self>) {
        self.renewer().requests.abandon(&self);
    }

    fn keep_idle(self: Arc<Self>, until: Instant) {
        self.renewer().tend_by(&self, until);
    }

    fn keep(self: Arc<Self>) {
        self.renewer().keep_on(&self);
    }

    fn renew(self: Arc<Self>) {
        let renewer = self.renewer().clone();
        renewer.tend(&self);
    }

    fn leave(self: Arc<Self>) {
        self.end_here();
    }

    fn release_in_background(self: Arc<Self>, yields: bool) {
        if self.end_here() == Phase::Held {
            self.renewer().requests.releases.send(&self, yields);
        }
    }

    fn release(self: Arc<Self>, yields: bool, held: bool) -> Option<Releasing> {
        // Belief ends before the release is sent.
        let was_held = self.end_here() == Phase::Held;
        was_held.then(|| Box::pin(self.send_release(yields, held)) as Releasing)
    }

    fn pushed(self: Arc<Self>, shard: &ShardId, grant: &QueuedGrant) {
        if self.nonce == grant.nonce {
            self.renewer().requests.pushed(&self, shard, grant);
        }
    }

    fn taken(self: Arc<Self>) {
        self.renewer().requests.lost(&self);
    }

    fn clock_stepped(&self, shard: &ShardId) {
        if self.renewer().driver.id() == shard {
            self.state.endanger();
        }
    }
}
