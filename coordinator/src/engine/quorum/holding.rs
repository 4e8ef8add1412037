//! A replicated lease while it is held: as many replicas as possible have it, and it ends with the majority.

use super::{
    super::local::{Answer as Granted, Judged, Lease, Phase, Tokens, events},
    handle::give_back,
    lease::ReplicatedLease,
    ranks::Ranks,
    vote::{Answer, deadline, majority},
};
use crate::{
    clock::Instant,
    ids::{Nonce, Token},
};

impl ReplicatedLease {
    /// A majority granted with `token`, until `deadline` at least.
    pub(super) fn held(&self, token: Token, deadline: Instant) {
        let answer = Granted {
            tokens: Tokens::new(token, self.tokens),
            // A rank may have told so while it was not granted yet.
            contended: self.is_contended(),
            sent: self.sent_for(deadline),
            claim: None,
        };
        match self.local().granted(&self.state, answer) {
            Judged::Held => {
                for lease in self.ranks.lock().leases() {
                    lease.end_with(&self.state);
                }
                // A rank may have been lost since the answers were counted.
                self.shorten();
            }
            Judged::TooLate => {
                self.ranks.lock().is_decided = false;
                self.give_way();
            }
            // It was taken back, or is about to be.
            Judged::Known => {}
        }
    }

    /// Confirms the token where a record has a lower one. The lock is held without that, and most locks end before their first
    /// renewal.
    fn confirm_lower(&self) {
        let token = self.token();
        let lower =
            |answer: &Answer| matches!(answer, Answer::Granted(grant) if grant.token < token);
        let lower: Vec<_> = {
            let ranks = self.ranks.lock();
            let ranks = ranks.all.iter().enumerate();
            ranks
                .filter(|(_, rank)| lower(&rank.answer))
                .map(|(index, _)| index)
                .collect()
        };
        self.confirm(token, &lower);
    }

    /// Writes the grant where no rank has it, while it is held. `late`: a bare majority has lasted for long enough to be a
    /// danger.
    pub(super) fn repair(&self, late: bool) {
        let token = self.token();
        let now = self.now();
        let missing: Vec<_> = {
            let mut ranks = self.ranks.lock();
            if self.is_over() || self.is_detached() {
                return;
            }
            if late {
                self.state.set_thin(self.has_bare_majority(&ranks, now));
            }
            let missing = ranks.to_install(now, |rank| !rank.is_granted() && !rank.is_confirming);
            let install = |index: usize| {
                let rank = &mut ranks.all[index];
                // A request that is out would make a grant of its own.
                let former = self.renew_rank(rank);
                rank.is_confirming = true;
                (former, rank.lease.clone())
            };
            missing.into_iter().map(install).collect()
        };
        for (former, fresh) in missing {
            give_back(former, false);
            self.send_confirm(fresh, token, true);
        }
        self.confirm_lower();
    }

    /// Its holder, outside of this process, renews it: writes the grant where no rank has it. Not on its own account: the
    /// holder may have released it elsewhere. And not while a request is out that may be granted.
    pub(super) fn install(&self) {
        let token = self.token();
        let missing: Vec<_> = {
            let mut ranks = self.ranks.lock();
            let missing = ranks.to_install(self.now(), |rank| {
                !rank.is_granted() && !rank.is_confirming && !rank.is_wanted
            });
            let install = |index: usize| {
                let rank = &mut ranks.all[index];
                rank.is_confirming = true;
                rank.lease.clone()
            };
            missing.into_iter().map(install).collect()
        };
        for lease in missing {
            self.send_confirm(lease, token, true);
        }
        self.confirm_lower();
    }

    /// A rank has it again: ends the danger of a bare majority if there is more than that.
    pub(super) fn clear_thin(&self, ranks: &Ranks, now: Instant) {
        if self.is_thin() && !self.has_bare_majority(ranks, now) {
            self.state.set_thin(false);
        }
    }

    /// Whether no more than a bare majority has it.
    pub(super) fn has_bare_majority(&self, ranks: &Ranks, now: Instant) -> bool {
        ranks.live(now) <= majority(self.declaration.replicas)
    }

    /// A rank was renewed: the lock lasts as long as a majority.
    pub(super) fn extend(&self) {
        let renewed = {
            // Under the lock, so that no rank is lost in between.
            let mut ranks = self.ranks.lock();
            let now = self.now();
            ranks.acquit(now);
            if ranks.may_be_taken(now) {
                drop(ranks);
                return self.shorten();
            }
            self.clear_thin(&ranks, now);
            let deadline = deadline(self.declaration.replicas, &ranks.answers());
            let sent = deadline.map(|deadline| self.sent_for(deadline));
            let sent = sent.filter(|&sent| self.state.renewed(sent, now));
            sent.map(|sent| (sent, now))
        };
        match renewed {
            Some((sent, now)) => {
                events::renewed(&self.state, false, sent, now);
                self.confirm_lower();
            }
            None => self.count(),
        }
    }

    /// The record of a rank is lost, or past its time; or its release for another process was answered.
    pub(super) fn rank_over(&self, nonce: Nonce) {
        if self.is_over() {
            return self.local().over(&self.state);
        }
        let others = {
            let mut ranks = self.ranks.lock();
            let found = ranks.of(nonce).filter(|_| !self.is_over());
            let may_be_taken = found.is_some_and(|(_, rank)| {
                let may_be_taken = rank.found_gone(self.now());
                self.renew_rank(rank);
                may_be_taken
            });
            let others = ranks
                .all
                .iter()
                .filter(|rank| may_be_taken && rank.is_granted());
            others.map(|rank| rank.lease.clone()).collect::<Vec<_>>()
        };
        match self.phase() {
            Phase::Held => {
                self.shorten();
                // Before a record is written there again.
                others.into_iter().for_each(Lease::renew);
            }
            Phase::Asked | Phase::Over => self.count(),
        }
    }

    /// A rank does not have it any more: the lock lasts as long as a majority of the others.
    pub(super) fn shorten(&self) {
        let now = self.now();
        let is_held = {
            let ranks = self.ranks.lock();
            let deadline = deadline(self.declaration.replicas, &ranks.answers());
            let deadline = deadline.filter(|&deadline| now < deadline);
            let deadline = deadline.filter(|_| !ranks.may_be_taken(now));
            deadline.map(|deadline| self.state.shorten(deadline))
        };
        match is_held {
            Some(()) => self.look_after(),
            None => self.lose(),
        }
    }

    /// Fewer than a majority have it.
    pub(super) fn lose(&self) {
        if self.state.end() == Phase::Held {
            events::lost(&self.state, self.now());
        }
        self.local().over(&self.state);
        if !self.is_detached() {
            return self.give_back(false);
        }
        // Another process may have renewed it.
        let leases = self.ranks.lock().leases();
        leases.into_iter().for_each(Lease::leave);
    }
}
