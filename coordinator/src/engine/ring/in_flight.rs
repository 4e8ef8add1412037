//! The unanswered requests of one nonce, so that nothing overtakes them.

use std::{sync::Arc, time::Duration};

use super::routing::Declaration;
use crate::{
    backoff::Backoff,
    driver::{Answer, Answered},
    failpoint::{Rule, is_off},
    shard::{Effect, LockLane, Proof, Reply},
};

/// First and longest pause before a shard in trouble is asked again.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// Requests of one kind, of which at most one is out.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    out: bool,
    /// A request got no answer and may still arrive: until its lane has answered another one.
    unanswered: bool,
}

impl Outstanding {
    pub(crate) fn is_out(&self) -> bool {
        self.out
    }

    pub(crate) fn sent(&mut self) {
        self.out = true;
    }

    pub(crate) fn answered(&mut self, answer: &Answer) {
        self.out = false;
        self.unanswered = match answer {
            Ok(_) => false,
            Err(error) => self.unanswered || error.effect() == Effect::Unknown,
        };
    }

    fn is_in_doubt(&self) -> bool {
        self.out || self.unanswered
    }
}

/// The unanswered requests to one shard.
#[derive(Debug, Default)]
pub(crate) struct ShardInFlight {
    pub(crate) asking: Outstanding,
    /// Renewals, and requests that move a lock here from another shard.
    pub(crate) renewing: Outstanding,
    /// A grant or a ticket may be there.
    left: bool,
    /// The lease was at a shard that has left the ring, and has not been renewed here yet.
    pub(crate) to_put_back: bool,
}

/// The lane for a release, so that it overtakes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// On that lane, behind every unanswered request of the nonce.
    Lane(LockLane),
    /// On both lanes, one after the other: a request may still arrive on each.
    Both,
}

impl ShardInFlight {
    fn asked(&mut self, answer: &Answer, ticket: bool) {
        self.asking.answered(answer);
        self.left |= match answer {
            Ok(Answered { reply, .. }) => match reply {
                Reply::Granted { .. } => true,
                Reply::Held { .. } | Reply::Grace { .. } | Reply::NeedProof { .. } => ticket,
                _ => false,
            },
            Err(error) => error.effect() == Effect::Unknown,
        };
    }

    /// The lock was adopted there, or another engine's record may be there.
    pub(crate) fn comes(&mut self) {
        self.left = true;
    }

    fn is_in_doubt(&self) -> bool {
        self.asking.is_in_doubt() || self.renewing.is_in_doubt()
    }

    /// Whether the shard may have a record or ticket of the nonce, or may yet get one.
    pub(crate) fn may_be_there(&self) -> bool {
        self.left || self.is_in_doubt()
    }

    /// The lane for a release.
    pub(crate) fn release_behind(&self) -> Behind {
        let renewing = self.renewing.is_in_doubt() && !is_off(Rule::ReleaseBehindRenewal);
        match (self.asking.is_in_doubt(), renewing) {
            (_, false) => Behind::Lane(LockLane::Work),
            (false, true) => Behind::Lane(LockLane::Renew),
            (true, true) => Behind::Both,
        }
    }
}

/// The unanswered requests of one nonce to shards `S`.
#[derive(Debug)]
pub(crate) struct InFlight<S> {
    /// The declaration by which the shards to ask were chosen.
    pub(crate) declaration: Declaration,
    /// To the present shard.
    pub(crate) here: ShardInFlight,
    /// To other shards: the slot moves, or has moved.
    elsewhere: Vec<(Arc<S>, ShardInFlight)>,
    /// For how many callers the next request queues.
    pub(crate) callers: u32,
    /// Whether its place in the queue is the first, by the last answer that tells.
    pub(crate) is_first: bool,
    /// The former shard's last answer on how many holders it has left.
    pub(crate) proof: Option<Proof>,
    pub(crate) search: Search,
    /// How many requests in a row an outdated picture of the ring sent to the wrong shard.
    pub(crate) stale_routes: u8,
    /// Pauses after requests that failed.
    pub(crate) retry: Backoff,
}

/// The search for the shard that may grant, since the last pause.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// At the slot's former shard, the key is held.
    pub(crate) held_there: bool,
    /// The former shard has told how many shares it has left.
    pub(crate) proved: bool,
    /// The slot's next shard needs a proof.
    pub(crate) unproven: bool,
    /// How often the search went from one shard to the other.
    pub(crate) turns: u8,
}

impl<S> InFlight<S> {
    /// No request is out yet.
    pub(crate) fn new(declaration: Declaration, callers: u32) -> Self {
        Self {
            declaration,
            here: ShardInFlight::default(),
            elsewhere: Vec::new(),
            callers,
            is_first: false,
            proof: None,
            search: Search::default(),
            stale_routes: 0,
            retry: Backoff::new(RETRY.0, RETRY.1),
        }
    }

    /// A request to acquire that was sent to `at`, while the lease is at `here`, has ended.
    pub(crate) fn asked(&mut self, here: &Arc<S>, at: &Arc<S>, answer: &Answer) {
        let ticket = self.callers > 0;
        self.at(here, at).asked(answer, ticket);
    }

    /// The unanswered requests to `at`, while the lease is at `here`.
    pub(crate) fn at(&mut self, here: &Arc<S>, at: &Arc<S>) -> &mut ShardInFlight {
        if Arc::ptr_eq(here, at) {
            return &mut self.here;
        }
        let known = self
            .elsewhere
            .iter()
            .position(|(its, _)| Arc::ptr_eq(its, at));
        let index = known.unwrap_or_else(|| {
            self.elsewhere.push((at.clone(), ShardInFlight::default()));
            self.elsewhere.len() - 1
        });
        &mut self.elsewhere[index].1
    }

    /// The lease is at `to` from now on, no longer at `from`.
    pub(crate) fn goes(&mut self, from: &Arc<S>, to: &Arc<S>) {
        let there = std::mem::take(self.at(from, to));
        self.elsewhere.retain(|(its, _)| !Arc::ptr_eq(its, to));
        let here = std::mem::replace(&mut self.here, there);
        self.elsewhere.push((from.clone(), here));
    }

    /// Nothing of the nonce is left at `at`, while the lease is at `here`: it was removed there.
    pub(crate) fn removed(&mut self, here: &Arc<S>, at: &Arc<S>) {
        self.at(here, at).left = false;
    }

    /// Whether a request may still reach a shard and make a record there.
    pub(crate) fn is_in_doubt(&self) -> bool {
        let mut elsewhere = self.elsewhere.iter();
        self.here.is_in_doubt() || elsewhere.any(|(_, traffic)| traffic.is_in_doubt())
    }

    /// The other shards that may have, or may yet get, something of the nonce.
    pub(crate) fn left_elsewhere(&self) -> Vec<Arc<S>> {
        let left = self
            .elsewhere
            .iter()
            .filter(|(_, traffic)| traffic.may_be_there());
        left.map(|(shard, _)| shard.clone()).collect()
    }
}
