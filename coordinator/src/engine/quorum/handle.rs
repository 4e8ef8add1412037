//! A replicated lease as the local queue sees it.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use ringfence_ring::ShardId;
use tokio::time::timeout;

use super::{
    super::{
        AcquireError, ReleaseAnswer,
        local::{Lease, LeaseState, LiveReplicas, Phase, Releasing},
        ring::ShardLease,
    },
    lease::ReplicatedLease,
    ranks::SLOW_LEAD,
    vote::majority,
};
use crate::{clock::Instant, ids::Nonce, shard::QueuedGrant};

impl ReplicatedLease {
    /// Releases everything in the background, at the lead last: its next waiter finds the others free.
    pub(super) fn give_back(&self, yields: bool) {
        let leases = self.ranks.lock().leases();
        let teller = self.teller(&leases, yields);
        for (index, lease) in leases.into_iter().enumerate().rev() {
            give_back(lease, Some(index) == teller);
        }
    }

    /// If it `yields`: the rank whose answered release tells the local queue, the first that has a grant. If none has one,
    /// the local queue is told at once.
    fn teller(&self, leases: &[Arc<ShardLease>], yields: bool) -> Option<usize> {
        let first = first_held(leases);
        if yields && first.is_none() {
            self.local().over(&self.state);
        }
        first.filter(|_| yields)
    }
}

impl Lease for ReplicatedLease {
    fn state(&self) -> &LeaseState {
        &self.state
    }

    fn has(&self, nonce: Nonce) -> bool {
        self.nonce == nonce || self.ranks.lock().of(nonce).is_some()
    }

    fn replica_nonces(&self) -> Vec<Nonce> {
        let leases = self.ranks.lock().leases();
        leases.iter().map(|lease| lease.nonce).collect()
    }

    fn detach(&self) {
        // Under the lock under which leases of ranks are replaced.
        let ranks = self.ranks.lock();
        self.state.detach();
        ranks.all.iter().for_each(|rank| rank.lease.detach());
    }

    fn refusal(&self) -> Option<AcquireError> {
        self.because(&self.ranks.lock())
    }

    fn replicas(&self, now: Instant) -> LiveReplicas {
        let ranks = self.ranks.lock();
        let live = match self.is_held(now) {
            true => ranks.live(now),
            false => 0,
        };
        LiveReplicas {
            live: live.try_into().unwrap_or_default(),
            all: self.declaration.replicas.get(),
        }
    }

    fn request(self: Arc<Self>) {
        self.ask();
    }

    fn abandon(self: Arc<Self>) {
        self.state.end();
        self.give_back(false);
    }

    fn keep_idle(self: Arc<Self>, until: Instant) {
        for lease in self.ranks.lock().leases() {
            lease.leave_idle(until);
            lease.keep_idle(until);
        }
    }

    fn keep(self: Arc<Self>) {
        for lease in self.ranks.lock().leases() {
            lease.take_up();
            lease.keep();
        }
    }

    fn renew(self: Arc<Self>) {
        // A rank may have ended, and takes the lock then.
        let leases = self.ranks.lock().leases();
        for lease in leases {
            lease.want_renewal(self.wanted_since());
            lease.renew();
        }
        if self.is_detached() {
            self.install();
        }
    }

    fn leave(self: Arc<Self>) {
        self.state.end();
        for lease in self.ranks.lock().leases() {
            lease.leave();
        }
    }

    fn release_in_background(self: Arc<Self>, yields: bool) {
        if self.state.end() == Phase::Held {
            self.give_back(yields);
        }
    }

    fn release(self: Arc<Self>, yields: bool, held: bool) -> Option<Releasing> {
        if self.state.end() != Phase::Held {
            return None;
        }
        let leases = self.ranks.lock().leases();
        let (first, teller) = (first_held(&leases), self.teller(&leases, yields));
        let mut releases = FuturesUnordered::new();
        for (index, lease) in leases.into_iter().enumerate().rev() {
            match lease.phase() {
                Phase::Held => {
                    let released = lease.release(Some(index) == teller, held);
                    let of_lead = Some(index) == first;
                    releases.extend(released.map(|its| its.map(move |answer| (of_lead, answer))));
                }
                Phase::Asked | Phase::Over => lease.abandon(),
            }
        }
        Some(Box::pin(released(
            releases,
            majority(self.declaration.replicas),
        )))
    }

    fn pushed(self: Arc<Self>, shard: &ShardId, grant: &QueuedGrant) {
        let lease = {
            let mut ranks = self.ranks.lock();
            ranks.of(grant.nonce).map(|(_, rank)| rank.lease.clone())
        };
        if let Some(lease) = lease {
            lease.pushed(shard, grant);
        }
    }

    fn taken(self: Arc<Self>) {
        if self.phase() == Phase::Held {
            self.lose();
        }
    }

    fn clock_stepped(&self, shard: &ShardId) {
        let leases = self.ranks.lock().leases();
        if leases
            .iter()
            .any(|lease| lease.renewer().driver.id() == shard)
        {
            self.state.endanger();
        }
    }
}

/// The lead, or the rank after it that has a grant.
fn first_held(leases: &[Arc<ShardLease>]) -> Option<usize> {
    leases.iter().position(|lease| lease.phase() == Phase::Held)
}

/// Releases what a shard may have of `lease`, in the background.
pub(super) fn give_back(lease: Arc<ShardLease>, yields: bool) {
    match lease.phase() {
        Phase::Held => lease.release_in_background(yields),
        Phase::Asked | Phase::Over => lease.abandon(),
    }
}

/// The answer of a majority. Waits for the lead, too, but not for long: until it has answered, it refuses others.
pub(super) async fn released<F>(mut releases: FuturesUnordered<F>, majority: usize) -> ReleaseAnswer
where
    F: Future<Output = (bool, ReleaseAnswer)>,
{
    let (mut held, mut lost, mut lead_answered) = (0, 0, false);
    while let Some((of_lead, answer)) = releases.next().await {
        lead_answered |= of_lead;
        match answer {
            ReleaseAnswer::Held => held += 1,
            ReleaseAnswer::Lost => lost += 1,
            _ => {}
        }
        let answer = match (held >= majority, lost >= majority) {
            (true, _) => ReleaseAnswer::Held,
            (_, true) => ReleaseAnswer::Lost,
            _ => continue,
        };
        let of_lead =
            async { while !lead_answered && releases.next().await.is_some_and(|(is, _)| !is) {} };
        let _ = timeout(SLOW_LEAD, of_lead).await;
        return answer;
    }
    ReleaseAnswer::Unknown
}
