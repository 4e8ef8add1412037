//! A replicated lease while it waits.

use ringfence_ring::ShardId;

use super::{
    super::{
        AcquireError,
        local::{Phase, Waiting},
    },
    handle::give_back,
    lease::ReplicatedLease,
    ranks::Ranks,
    vote::{Answer, majority},
};
use crate::clock::sleep_until;

impl ReplicatedLease {
    /// No majority can come about for now: gives back everything but the place at the lead.
    pub(super) fn give_way(&self) {
        let (former, because) = {
            let mut ranks = self.ranks.lock();
            let lead = ranks.lead();
            let shard = ranks.all[lead].lease.renewer().driver.id().clone();
            let because = self.because(&ranks);
            if self.is_over() || ranks.is_decided || ranks.all[lead].is_granted() {
                drop(ranks);
                // Its turn: the others are about to be free, if they answer.
                if let Some(because @ AcquireError::NoMajority { .. }) = because {
                    self.waits(&because, &shard);
                }
                return self.look_after();
            }
            let others = ranks.all.iter_mut().enumerate();
            let others = others.filter(|(index, _)| *index != lead);
            let used = others.filter(|(_, rank)| rank.is_granted() || rank.is_wanted);
            let former: Vec<_> = used.map(|(_, rank)| self.renew_rank(rank)).collect();
            (former, because.map(|because| (because, shard)))
        };
        for lease in former {
            give_back(lease, false);
        }
        if let Some((because, shard)) = because {
            self.waits(&because, &shard);
        }
        self.look_after();
    }

    /// Tells the local queue why it waits.
    pub(super) fn waits(&self, because: &AcquireError, lead: &ShardId) {
        let grace = self.ring.routing.topology().constants.grace();
        let waiting = || Waiting::new(because, lead, grace);
        self.local().waits(&self.state, because, true, &waiting);
    }

    /// Why no majority has granted it: too few ranks can, or another holder has it.
    pub(super) fn because(&self, ranks: &Ranks) -> Option<AcquireError> {
        let replicas = self.declaration.replicas;
        for silent in [false, true] {
            let failures = ranks.all.iter().filter_map(|rank| rank.failure(silent));
            let shards: Vec<_> = failures.collect();
            if ranks.all.len() - shards.len() < majority(replicas) {
                return Some(AcquireError::NoMajority { replicas, shards });
            }
        }
        let lead = ranks.all[ranks.lead()].because.clone();
        lead.or_else(|| ranks.all.iter().find_map(|rank| rank.because.clone()))
    }

    /// Asks ranks that are not granted again after a pause, if that can help.
    pub(super) fn look_after(&self) {
        let is_due = {
            let ranks = self.ranks.lock();
            let missing = ranks
                .all
                .iter()
                .any(|rank| rank.answer == Answer::NotGranted);
            let lead = &ranks.all[ranks.lead()];
            missing && (self.phase() == Phase::Held || lead.is_granted() || !lead.is_wanted)
        };
        if !is_due || self.is_over() {
            return;
        }
        let mut retry = self.retry.lock();
        if std::mem::replace(&mut retry.is_due, true) {
            return;
        }
        let around = &self.ring.requests.around;
        let pause = match self.phase() {
            Phase::Held => self.terms.lease / 6,
            Phase::Asked | Phase::Over => retry.backoff.next(&around.random),
        };
        drop(retry);
        let (at, clock, me) = (
            around.clock.now() + pause,
            around.clock.clone(),
            self.me.clone(),
        );
        let stop = around.stop.clone();
        around.tasks.spawn(async move {
            let slept = stop.run_until_cancelled(sleep_until(&*clock, at)).await;
            if let Some(me) = slept.and_then(|()| me.upgrade()) {
                me.retry.lock().is_due = false;
                me.again();
            }
        });
    }

    /// It is time to ask ranks again that are not granted.
    pub(super) fn again(&self) {
        match self.phase() {
            Phase::Asked => self.ask(),
            Phase::Held => {
                self.repair();
                self.look_after();
            }
            Phase::Over => {}
        }
    }
}
