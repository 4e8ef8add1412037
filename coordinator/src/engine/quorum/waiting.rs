//! A replicated lease while it waits.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use ringfence_ring::ShardId;

use super::{
    super::{
        AcquireError,
        local::{Phase, Waiting},
    },
    handle::give_back,
    lease::ReplicatedLease,
    ranks::{Ranks, SLOW_LEAD, Turn},
    vote::{Answer, Vote, majority, may_hold_unconfirmed},
};
use crate::clock::{Instant, sleep_until};

impl ReplicatedLease {
    /// `vote`, unless another client comes first: it has the lead.
    pub(super) fn in_turn(&self, vote: Vote, ranks: &mut Ranks, now: Instant) -> Vote {
        if !matches!(vote, Vote::Held { .. } | Vote::Confirm { .. }) {
            ranks.note_holder();
            return vote;
        }
        let turn = ranks.turn(now);
        // With more answers, the token in the middle may be the lock's.
        let spares_confirm = matches!(vote, Vote::Confirm { .. })
            && !ranks.is_late(now)
            && may_hold_unconfirmed(self.declaration.replicas, &ranks.answers(), now);
        match turn {
            Turn::Later => Vote::GiveUp,
            Turn::Own if !spares_confirm => vote,
            Turn::Own | Turn::Unknown => {
                if ranks.late_at.is_none() {
                    ranks.late_at = Some(now + SLOW_LEAD);
                    self.after(SLOW_LEAD, Self::count);
                }
                Vote::Wait
            }
        }
    }

    /// No majority can come about for now: gives back everything but the lead, or the place there. The lead, too, if the
    /// other ranks cannot grant, or if it does not wait.
    pub(super) fn give_way(&self) {
        let (former, because) = {
            let mut ranks = self.ranks.lock();
            if self.is_over() || ranks.is_decided {
                drop(ranks);
                return self.look_after();
            }
            if ranks.is_lead_useless(self.now()) {
                ranks.pass_over_lead(self.now());
            }
            let lead = ranks.lead();
            let first = &ranks.all[lead.unwrap_or(0)].lease;
            let shard = first.renewer().driver.id().clone();
            let because = self.because(&ranks);
            let is_hopeless = matches!(because, Some(AcquireError::NoMajority { .. }));
            let lead_has_it = lead.is_some_and(|lead| ranks.all[lead].is_granted());
            let has_turn = lead_has_it && self.callers() > 0 && !is_hopeless;
            let kept = lead.filter(|_| has_turn || !lead_has_it);
            let used = ranks.all.iter_mut().enumerate();
            let used = used.filter(|(index, rank)| {
                (rank.is_granted() || rank.is_wanted) && Some(*index) != kept
            });
            let former: Vec<_> = used.map(|(_, rank)| self.renew_rank(rank)).collect();
            // With its turn, the others are about to be free.
            let because = because.filter(|_| !has_turn);
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
        if let Some(callers) = self.local().waits(&self.state, because, true, &waiting) {
            self.callers.store(callers, Relaxed);
        }
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
        let lead = ranks.lead().map(|lead| &ranks.all[lead]);
        let lead = lead.and_then(|lead| lead.because.clone());
        lead.or_else(|| ranks.all.iter().find_map(|rank| rank.because.clone()))
    }

    /// Asks ranks that are not granted again after a pause, if that can help.
    pub(super) fn look_after(&self) {
        // A holder outside of this process has it looked after by its renewals.
        if self.is_detached() {
            return;
        }
        let is_due = {
            let ranks = self.ranks.lock();
            let missing = ranks
                .all
                .iter()
                .any(|rank| rank.answer == Answer::NotGranted);
            let lead = ranks.lead().map(|lead| &ranks.all[lead]);
            let lead_waits = lead.is_some_and(|lead| lead.is_wanted && !lead.is_granted());
            let helps = self.phase() == Phase::Held || !lead_waits;
            missing && helps
        };
        let phase = self.phase();
        if !is_due || phase == Phase::Over {
            return;
        }
        let mut retry = self.retry.lock();
        if std::mem::replace(&mut retry.is_due, true) {
            return;
        }
        let pause = match phase {
            Phase::Held => self.terms.lease / 6,
            Phase::Asked | Phase::Over => retry.backoff.next(&self.ring.requests.around.random),
        };
        drop(retry);
        self.after(pause, move |me| {
            me.retry.lock().is_due = false;
            me.again(phase);
        });
    }

    /// Does `then` after `pause`, if this lease is still of use to anybody.
    fn after(&self, pause: Duration, then: impl FnOnce(&Self) + Send + 'static) {
        let around = &self.ring.requests.around;
        let at = around.clock.now() + pause;
        let (clock, stop, me) = (around.clock.clone(), around.stop.clone(), self.me.clone());
        around.tasks.spawn(async move {
            let slept = stop.run_until_cancelled(sleep_until(&*clock, at)).await;
            if let Some(me) = slept.and_then(|()| me.upgrade()) {
                then(&me);
            }
        });
    }

    /// It is time to ask ranks again that are not granted. `since`: the phase in which the pause began.
    fn again(&self, since: Phase) {
        match self.phase() {
            Phase::Asked => {
                self.ask();
                self.count();
            }
            Phase::Held => {
                self.repair(since == Phase::Held);
                self.look_after();
            }
            Phase::Over => {}
        }
    }
}
