//! What the ranks of a replicated lease answer.

use std::sync::{Arc, Weak};

use super::{
    super::{
        AcquireError,
        local::{Answer as Granted, Judged, LeaseState, Phase, Receiver, Waiting, events},
    },
    lease::ReplicatedLease,
    vote::Answer,
};
use crate::clock::Instant;

/// Receives the answers of the ranks of one lease. Those that come when nobody has the lease any more change nothing: it
/// was released.
#[derive(Debug)]
pub(super) struct Ballot(pub(super) Weak<ReplicatedLease>);

impl Ballot {
    fn lease(&self) -> Option<Arc<ReplicatedLease>> {
        self.0.upgrade()
    }
}

impl Receiver for Ballot {
    fn granted(&self, rank: &LeaseState, answer: Granted) -> Judged {
        let Some(lease) = self.lease() else {
            return Judged::Known;
        };
        let now = lease.now();
        let (judged, has_turn) = {
            let mut ranks = lease.ranks.lock();
            let lead = ranks.lead();
            let Some((index, found)) = ranks.of(rank.nonce).filter(|(_, its)| its.is_wanted) else {
                return Judged::Known;
            };
            let token = answer.tokens.first();
            match rank.granted(token, answer.sent, now, answer.claim) {
                true => {
                    events::replica_granted(rank, now);
                    found.granted(token, false);
                    (Judged::Held, Some(index) == lead)
                }
                false => (Judged::TooLate, false),
            }
        };
        if has_turn && lease.phase() == Phase::Asked {
            lease.ask();
        }
        if answer.contended {
            lease.contended();
        }
        lease.count();
        judged
    }

    fn waits(
        &self,
        rank: &LeaseState,
        because: &AcquireError,
        _dismissed: bool,
        _waiting: &dyn Fn() -> Waiting,
    ) -> Option<u32> {
        let lease = self.lease()?;
        let (is_lead, looks) = {
            let mut ranks = lease.ranks.lock();
            let (index, found) = ranks.of(rank.nonce).filter(|(_, its)| its.is_wanted)?;
            let waited = found.is_held();
            found.refused(because.clone());
            ranks.found_held(index, lease.terms.lease, lease.now());
            let is_lead = ranks.is_lead(index);
            if !is_lead {
                // It is asked again once the lead has granted, or after a pause.
                ranks.all[index].is_wanted = false;
            }
            let its = &ranks.all[index];
            let is_next = its.is_held() && its.lease.in_flight.lock().is_first;
            (is_lead, is_lead && waited && is_next)
        };
        // The local queue is told once no majority can come about.
        lease.count();
        if looks && lease.phase() == Phase::Asked {
            lease.ask();
        }
        is_lead.then(|| lease.callers())
    }

    fn refused(&self, rank: &LeaseState, refusal: &AcquireError) {
        let Some(lease) = self.lease() else { return };
        let is_lead = {
            let mut ranks = lease.ranks.lock();
            let Some((index, found)) = ranks.of(rank.nonce) else {
                return;
            };
            found.answer = Answer::NotGranted;
            found.is_wanted = false;
            // If no shard answers, no other rank has a better reason.
            let is_lead = ranks.lead().is_none_or(|lead| lead == index);
            ranks.all[index].because = Some(refusal.clone());
            is_lead
        };
        match is_lead {
            true => lease.refused(refusal),
            false => lease.count(),
        }
    }

    fn if_asked(&self, rank: &LeaseState, then: &mut dyn FnMut(u32)) -> bool {
        let Some(lease) = self.lease() else {
            return false;
        };
        let mut ranks = lease.ranks.lock();
        let lead = ranks.lead();
        let Some((index, _)) = ranks.of(rank.nonce).filter(|(_, its)| its.is_wanted) else {
            return false;
        };
        then(lease.callers_at(index, lead));
        true
    }

    fn renewed(&self, rank: &LeaseState, again: bool) {
        let Some(lease) = self.lease() else { return };
        {
            let mut ranks = lease.ranks.lock();
            let Some((_, found)) = ranks.of(rank.nonce).filter(|(_, its)| its.is_granted()) else {
                return;
            };
            found.granted(rank.token(), again);
        }
        lease.extend();
    }

    fn contended(&self, _rank: &LeaseState) {
        if let Some(lease) = self.lease() {
            lease.contended();
        }
    }

    fn over(&self, rank: &LeaseState) {
        if let Some(lease) = self.lease() {
            lease.rank_over(rank.nonce);
        }
    }

    fn idle(&self, _rank: &LeaseState) -> Option<Instant> {
        self.lease()?.idle()
    }
}
