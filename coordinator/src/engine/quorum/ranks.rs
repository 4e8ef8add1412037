//! The state of the ranks of one replicated lease.

use std::sync::Arc;

use ringfence_ring::ShardId;

use super::{
    super::{AcquireError, acquire::no_answer_yet, ring::ShardLease},
    vote::{Answer, Grant},
};
use crate::{
    clock::Instant,
    ids::{Nonce, Token},
};

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
}

impl Rank {
    pub(super) fn new(lease: Arc<ShardLease>) -> Self {
        Self {
            lease,
            answer: Answer::NotGranted,
            is_wanted: false,
            is_confirming: false,
            because: None,
        }
    }

    /// A request for it is about to be sent.
    pub(super) fn want(&mut self) {
        self.answer = Answer::Pending;
        self.is_wanted = true;
    }

    /// The shard granted or renewed it.
    pub(super) fn granted(&mut self, token: Token) {
        self.is_wanted = false;
        self.because = None;
        // The lock has the same view, and ends with it.
        let deadline = self.lease.record_deadline();
        self.answer = Answer::Granted(Grant { token, deadline });
    }

    pub(super) fn is_granted(&self) -> bool {
        matches!(self.answer, Answer::Granted(_))
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
        let held = |because: &AcquireError| matches!(because, AcquireError::Held { .. });
        self.because.as_ref().is_some_and(|because| !held(because))
    }
}

/// The leases at all ranks.
#[derive(Debug)]
pub(super) struct Ranks {
    /// In the order of the ranks.
    pub(super) all: Vec<Rank>,
    /// Whether the lock is held by their grants, or is about to be: until it is over, none of them is given back.
    pub(super) is_decided: bool,
}

impl Ranks {
    /// The rank whose lease has `nonce`. None for a lease that was replaced.
    pub(super) fn of(&mut self, nonce: Nonce) -> Option<(usize, &mut Rank)> {
        let mut ranks = self.all.iter_mut().enumerate();
        ranks.find(|(_, rank)| rank.lease.nonce == nonce)
    }

    /// The rank at which requests queue: the first whose shard answers.
    pub(super) fn lead(&self) -> usize {
        let answers = |rank: &Rank| !rank.is_failing();
        self.all.iter().position(answers).unwrap_or_default()
    }

    /// How many have a record that lasts at `now`.
    pub(super) fn live(&self, now: Instant) -> usize {
        let is_live = |rank: &&Rank| match rank.answer {
            Answer::Granted(grant) => now < grant.deadline,
            Answer::Pending | Answer::NotGranted => false,
        };
        self.all.iter().filter(is_live).count()
    }

    pub(super) fn answers(&self) -> Vec<Answer> {
        self.all.iter().map(|rank| rank.answer).collect()
    }

    pub(super) fn leases(&self) -> Vec<Arc<ShardLease>> {
        self.all.iter().map(|rank| rank.lease.clone()).collect()
    }
}
