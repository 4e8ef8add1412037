//! The state of the ranks of one replicated lease.

use std::{sync::Arc, time::Duration};

use ringfence_ring::ShardId;

use super::{
    super::{AcquireError, acquire::no_answer_yet, ring::ShardLease},
    vote::{Answer, Grant},
};
use crate::{
    clock::Instant,
    failpoint::{Rule, is_off},
    ids::{Nonce, Token},
};

/// How long the lead's answer is waited for, once a majority granted. After that, the order is not kept. As long as that,
/// answers are waited for that may make a second round trip needless.
pub(super) const SLOW_LEAD: Duration = Duration::from_millis(250);

/// The first waiter at the lead takes the lock without the lead when so many looks in a row found all others free: one
/// per re-check. Between the holders, they are free for a moment only.
const FREE_LOOKS: u8 = 2;

/// The lease at one rank.
#[derive(Debug)]
pub(super) struct Rank {
    pub(super) lease: Arc<ShardLease>,
    pub(super) answer: Answer,
    /// Whether a request for it may be sent, or repeated.
    pub(super) is_wanted: bool,
    /// Whether a confirmation is on its way.
    pub(super) is_confirming: bool,
    /// The reason why it is not granted; none if it was not asked since.
    pub(super) because: Option<AcquireError>,
    /// Since when requests do not queue there: the holder of the lock has no record there.
    pub(super) passed_over_at: Option<Instant>,
    /// When its record was written again, after the lock was granted.
    pub(super) written_at: Option<Instant>,
    /// Its record was found gone, and may have been released by force.
    pub(super) gone: Option<Gone>,
}

/// A record that was found gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    pub(super) found_at: Instant,
    /// When it was last seen, if it was found gone before its time, by force or by a step of the shard's clock, and nothing
    /// tells by which.
    pub(super) seen_at: Option<Instant>,
}

impl Rank {
    pub(super) fn new(lease: Arc<ShardLease>) -> Self {
        Self {
            lease,
            answer: Answer::NotGranted,
            is_wanted: false,
            is_confirming: false,
            because: None,
            passed_over_at: None,
            written_at: None,
            gone: None,
        }
    }

    /// Its shard gave a reason why it is not granted.
    pub(super) fn refused(&mut self, because: AcquireError) {
        self.answer = Answer::NotGranted;
        self.because = Some(because);
    }

    /// A request for it is about to be sent.
    pub(super) fn want(&mut self) {
        self.answer = Answer::Pending;
        self.is_wanted = true;
    }

    /// The shard granted or renewed it. `again`: it wrote the record of a lock that is held, and did not have it.
    pub(super) fn granted(&mut self, token: Token, again: bool) {
        self.is_wanted = false;
        self.because = None;
        self.gone = None;
        if again {
            self.written_at = Some(self.lease.sent());
        }
        // The lock has the same view, and ends with it.
        let deadline = self.lease.record_deadline();
        self.answer = Answer::Granted(Grant { token, deadline });
    }

    /// Its record is gone. Returns whether it may have been released by force.
    pub(super) fn found_gone(&mut self, now: Instant) -> bool {
        // At a shard that is new to the lock, memory was lost.
        let is_new = || self.lease.in_flight.lock().here.to_put_back;
        let may_be_taken = self.is_granted() && !is_new();
        if may_be_taken {
            self.gone = Some(Gone {
                found_at: now,
                seen_at: self.is_live(now).then(|| self.lease.sent()),
            });
        }
        may_be_taken
    }

    pub(super) fn is_granted(&self) -> bool {
        matches!(self.answer, Answer::Granted(_))
    }

    /// Whether it has a record that lasts at `now`.
    fn is_live(&self, now: Instant) -> bool {
        matches!(self.answer, Answer::Granted(grant) if now < grant.deadline)
    }

    /// Whether its record lasts at `now`, and is the one of `then`.
    fn had_it(&self, then: Instant, now: Instant) -> bool {
        self.is_live(now) && self.written_at.is_none_or(|at| at <= then)
    }

    /// Its shard, and the reason why that has not granted it, if the reason is no holder. `silent`: no answer yet is a
    /// reason, too.
    pub(super) fn failure(&self, silent: bool) -> Option<(ShardId, AcquireError)> {
        let failure = match &self.because {
            Some(_) if !self.is_failing() => None,
            None if silent && self.answer == Answer::Pending => Some(no_answer_yet()),
            because => because.clone(),
        };
        failure.map(|failure| (self.lease.renewer().driver.id().clone(), failure))
    }

    /// Whether its shard cannot grant, for a reason other than a holder.
    fn is_failing(&self) -> bool {
        self.because.is_some() && !self.is_held()
    }

    /// Whether another client has it, or goes first.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.because, Some(AcquireError::Held { .. }))
    }
}

/// Whose turn it is, by the lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// This client's.
    Own,
    /// Another client's.
    Later,
    /// The lead has not answered yet.
    Unknown,
}

/// The leases at all ranks.
#[derive(Debug)]
pub(super) struct Ranks {
    /// In the order of the ranks.
    pub(super) all: Vec<Rank>,
    /// Whether the lock is held by their grants, or is about to be: until it is over, none of them is given back.
    pub(super) is_decided: bool,
    /// From when on answers are not waited for any more. None: they are not waited for.
    pub(super) late_at: Option<Instant>,
    /// From when on a record at the lead is of no use: the holder of the others has none there. None: they are not held.
    pub(super) useless_at: Option<Instant>,
    /// How often in a row a majority granted, although the lead is held and no other client waits there.
    pub(super) free_looks: u8,
}

impl Ranks {
    /// The rank whose lease has `nonce`. None for a lease that was replaced.
    pub(super) fn of(&mut self, nonce: Nonce) -> Option<(usize, &mut Rank)> {
        let mut ranks = self.all.iter_mut().enumerate();
        ranks.find(|(_, rank)| rank.lease.nonce == nonce)
    }

    /// The rank at which requests queue: the first whose shard answers, and that is not passed over. None if there is none.
    pub(super) fn lead(&self) -> Option<usize> {
        let leads = |rank: &Rank| !rank.is_failing() && rank.passed_over_at.is_none();
        self.all.iter().position(leads)
    }

    /// Whether the rank at `index` is the lead.
    pub(super) fn is_lead(&self, index: usize) -> bool {
        self.lead() == Some(index)
    }

    /// Whose turn it is, if a majority granted. The order is kept for as long as the lead answers, and its holder can be
    /// the holder of the lock: a record may be left there, and it may take long to answer.
    pub(super) fn turn(&mut self, now: Instant) -> Turn {
        let Some(lead) = self.lead() else {
            return Turn::Own;
        };
        let lead = &self.all[lead];
        match lead.answer {
            Answer::Granted(_) => Turn::Own,
            Answer::NotGranted if lead.is_failing() => Turn::Own,
            Answer::NotGranted if lead.is_held() => {
                let is_next = lead.lease.in_flight.lock().is_first;
                self.late_at = None;
                self.free_looks = if is_next {
                    self.free_looks.saturating_add(1)
                } else {
                    0
                };
                match self.free_looks < FREE_LOOKS {
                    true => Turn::Later,
                    false => Turn::Own,
                }
            }
            Answer::Pending | Answer::NotGranted if self.is_late(now) => Turn::Own,
            Answer::Pending | Answer::NotGranted => Turn::Unknown,
        }
    }

    /// Whether answers have been waited for long enough.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.late_at.is_some_and(|late_at| late_at <= now)
    }

    /// No majority granted: another client may have the lock.
    pub(super) fn note_holder(&mut self) {
        let lead = self.lead();
        let mut others = self.all.iter().enumerate();
        if others.any(|(index, rank)| Some(index) != lead && rank.is_held()) {
            self.free_looks = 0;
        }
    }

    /// Whether this client's record at the lead has been of no use for long: others have the rest. After a hand-over the
    /// others are free within a moment. But a holder whose record at the lead was lost, with the memory of its shard, is to
    /// write it there again.
    pub(super) fn is_lead_useless(&mut self, now: Instant) -> bool {
        let has_lead = self.lead().is_some_and(|lead| self.all[lead].is_granted());
        let held = self.all.iter().filter(|rank| rank.is_held()).count();
        if !has_lead || 2 * held < self.all.len() || is_off(Rule::PassOverLead) {
            self.useless_at = None;
            return false;
        }
        now >= *self.useless_at.get_or_insert(now + SLOW_LEAD)
    }

    /// Another client has the rank at `index`, or waits there: requests queue there again. If others have the rest, not before
    /// `lease` is over since it was passed over: waiters would hand it on to each other, and the holder of the rest would
    /// not come to write its record there.
    pub(super) fn found_held(&mut self, index: usize, lease: Duration, now: Instant) {
        let others = self.all.iter().enumerate();
        let others = others.filter(|(other, rank)| *other != index && rank.is_held());
        let may_be_waiters = 2 * others.count() >= self.all.len();
        let rank = &mut self.all[index];
        let is_early = |at: Instant| may_be_waiters && now < at + lease;
        if rank.is_held() {
            rank.passed_over_at = rank.passed_over_at.filter(|at| is_early(*at));
        }
    }

    /// No request queues at the lead until another client has it.
    pub(super) fn pass_over_lead(&mut self, now: Instant) {
        self.useless_at = None;
        if let Some(lead) = self.lead() {
            self.all[lead].passed_over_at = Some(now);
        }
    }

    /// How many have a record that lasts at `now`.
    pub(super) fn live(&self, now: Instant) -> usize {
        self.all.iter().filter(|rank| rank.is_live(now)).count()
    }

    /// The ranks where a record may be written, of those that are `missing`.
    pub(super) fn to_install(&self, now: Instant, missing: impl Fn(&Rank) -> bool) -> Vec<usize> {
        let due = |(_, rank): &(usize, &Rank)| missing(rank) && self.may_install(rank, now);
        let due = self.all.iter().enumerate().filter(due);
        due.map(|(index, _)| index).collect()
    }

    /// If the record was found gone, or ended unheard of, it may have been released by force, and those of other ranks with
    /// it: a majority must have been renewed since.
    fn may_install(&self, rank: &Rank, now: Instant) -> bool {
        let Some(Gone { found_at, .. }) = rank.gone else {
            return true;
        };
        let is_renewed = |rank: &Rank| rank.is_live(now) && rank.lease.sent() >= found_at;
        self.is_majority(is_renewed)
    }

    /// Whether it may have been released by force, and be held by no more than what was written again since: a record was
    /// found gone before its time, and no majority has had its records since before that one was last seen.
    pub(super) fn may_be_taken(&self, now: Instant) -> bool {
        let seen = self.all.iter().filter_map(|rank| rank.gone?.seen_at);
        seen.min()
            .is_some_and(|seen_at| !self.is_majority(|rank| rank.had_it(seen_at, now)))
    }

    /// Records that were found gone were not released by force, if a majority had its records before, and was renewed since.
    pub(super) fn acquit(&mut self, now: Instant) {
        for index in 0..self.all.len() {
            let Some(gone) = self.all[index].gone else {
                continue;
            };
            let Some(seen_at) = gone.seen_at else {
                continue;
            };
            let is_renewed = |rank: &Rank| rank.lease.sent() >= gone.found_at;
            if self.is_majority(|rank| rank.had_it(seen_at, now) && is_renewed(rank)) {
                self.all[index].gone = Some(Gone {
                    seen_at: None,
                    ..gone
                });
            }
        }
    }

    fn is_majority(&self, is_such: impl Fn(&Rank) -> bool) -> bool {
        2 * self.all.iter().filter(|rank| is_such(rank)).count() > self.all.len()
    }

    pub(super) fn answers(&self) -> Vec<Answer> {
        self.all.iter().map(|rank| rank.answer).collect()
    }

    pub(super) fn leases(&self) -> Vec<Arc<ShardLease>> {
        self.all.iter().map(|rank| rank.lease.clone()).collect()
    }
}
