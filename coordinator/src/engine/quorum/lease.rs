//! One acquisition at all ranks of a key.

use std::{
    ops::Deref,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{
    super::{
        AcquireError,
        local::{Lease as _, LeaseState, Phase, Receiver, Replica, Terms, events},
        ring::{Declaration, Ring, ShardLease},
    },
    ballot::Ballot,
    ranks::{Rank, Ranks},
    vote::{Answer, Vote, vote},
};
use crate::{
    backoff::Backoff,
    clock::Instant,
    failpoint::{Rule, is_off},
    ids::{Nonce, Token},
    name::LockKey,
    sync::Mutex,
};

/// First and longest pause before ranks that did not grant are asked again.
const RETRY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(200));

/// One acquisition: a lease at each rank, of which a majority counts.
#[derive(Debug)]
pub(crate) struct ReplicatedLease {
    pub(super) state: LeaseState,
    pub(super) declaration: Declaration,
    pub(super) ring: Arc<Ring>,
    /// For how many callers it takes a place in the queue of the lead.
    pub(super) callers: AtomicU32,
    pub(super) ranks: Mutex<Ranks>,
    /// Whether it needed a second round trip.
    has_confirmed: AtomicBool,
    pub(super) retry: Mutex<Retry>,
    ballot: Arc<Ballot>,
    pub(super) me: Weak<Self>,
}

/// The pauses before ranks are asked again.
#[derive(Debug)]
pub(super) struct Retry {
    pub(super) backoff: Backoff,
    pub(super) is_due: bool,
}

impl Deref for ReplicatedLease {
    type Target = LeaseState;

    fn deref(&self) -> &LeaseState {
        &self.state
    }
}

impl ReplicatedLease {
    /// `nonce` gives the nonce of the lock, and then that of each rank.
    pub(super) fn begin(
        ring: &Arc<Ring>,
        declaration: Declaration,
        key: &LockKey,
        terms: Terms,
        tokens: u32,
        callers: u32,
        mut nonce: impl FnMut() -> Nonce,
    ) -> Result<Arc<Self>, AcquireError> {
        let replicas = declaration.replicas;
        let slots = ring.routing.slots().replicas(key.slot(), replicas);
        let requests = &ring.requests;
        requests.add_one().map_err(AcquireError::TooManyHeld)?;
        (1..replicas.get()).for_each(|_| requests.add_another());
        let of = nonce();
        let view = &ring.requests.around.view;
        let lease = Arc::new_cyclic(|me: &Weak<Self>| {
            let ballot = Arc::new(Ballot(me.clone()));
            let rank = |(slot, rank)| {
                let (key, nonce) = (key.at(slot), nonce());
                let state = LeaseState::new(key, nonce, terms.clone(), tokens, view);
                let state = state.with_replica(Some(Replica { of, rank }));
                Rank::new(ring.lease(declaration, state, 0, ballot.clone()))
            };
            let ranks = slots.zip(0..).map(rank).collect();
            Self {
                state: LeaseState::new(key.clone(), of, terms.clone(), tokens, view),
                declaration,
                ring: ring.clone(),
                callers: AtomicU32::new(callers),
                ranks: Mutex::new(Ranks {
                    all: ranks,
                    is_decided: false,
                    late_at: None,
                    useless_at: None,
                    free_looks: 0,
                }),
                has_confirmed: AtomicBool::new(false),
                retry: Mutex::new(Retry {
                    backoff: Backoff::new(RETRY.0, RETRY.1),
                    is_due: false,
                }),
                ballot,
                me: me.clone(),
            }
        });
        Ok(lease)
    }

    pub(super) fn now(&self) -> Instant {
        self.ring.requests.around.clock.now()
    }

    pub(super) fn callers(&self) -> u32 {
        self.callers.load(Relaxed)
    }

    /// For how many callers the rank at `index` is to queue: for none, unless it is the lead.
    pub(super) fn callers_at(&self, index: usize, lead: Option<usize>) -> u32 {
        match lead == Some(index) {
            true => self.callers(),
            false => 0,
        }
    }

    pub(super) fn local(&self) -> &dyn Receiver {
        &*self.ring.requests.local
    }

    /// Asks every rank that is neither granted nor asked already.
    pub(super) fn ask(&self) {
        let asked: Vec<_> = {
            let mut ranks = self.ranks.lock();
            if ranks.lead().is_none() {
                let all = ranks.all.iter_mut();
                all.for_each(|rank| rank.passed_over_at = None);
            }
            let lead = ranks.lead();
            let due = ranks.all.iter_mut().enumerate();
            let due = due.filter(|(_, rank)| rank.answer == Answer::NotGranted && !rank.is_wanted);
            due.map(|(index, rank)| {
                rank.want();
                (rank.lease.clone(), self.callers_at(index, lead))
            })
            .collect()
        };
        for (lease, callers) in asked {
            self.ring.requests.ask_for(&lease, callers);
        }
    }

    /// Decides from the answers there are.
    pub(super) fn count(&self) {
        if self.phase() != Phase::Asked {
            return self.look_after();
        }
        let now = self.now();
        let vote = {
            let mut ranks = self.ranks.lock();
            if ranks.is_decided {
                return;
            }
            let vote = vote(self.declaration.replicas, &ranks.answers(), now);
            let vote = self.in_turn(vote, &mut ranks, now);
            ranks.is_decided = matches!(vote, Vote::Held { .. });
            vote
        };
        match vote {
            Vote::Held { token, deadline } => self.held(token, deadline),
            Vote::Confirm { token, ranks } => {
                if !self.has_confirmed.swap(true, Relaxed) {
                    self.ring.routing.metrics(&self.key).second_round();
                }
                self.confirm(token, &ranks);
            }
            Vote::Wait => self.look_after(),
            Vote::GiveUp => self.give_way(),
        }
    }

    /// Has `ranks` confirm `token`.
    pub(super) fn confirm(&self, token: Token, ranks: &[usize]) {
        if is_off(Rule::Confirm) {
            return;
        }
        for &index in ranks {
            let lease = {
                let mut ranks = self.ranks.lock();
                let rank = &mut ranks.all[index];
                if std::mem::replace(&mut rank.is_confirming, true) {
                    continue;
                }
                rank.lease.clone()
            };
            self.send_confirm(lease, token, false);
        }
    }

    pub(super) fn send_confirm(&self, lease: Arc<ShardLease>, token: Token, install: bool) {
        let (me, nonce) = (self.me.clone(), lease.nonce);
        let confirmed = move |sent| {
            if let Some(me) = me.upgrade() {
                me.confirmed(nonce, token, sent);
            }
        };
        let requests = &self.ring.requests;
        if !requests.confirm(&lease, token, install, confirmed)
            && let Some((_, rank)) = self.ranks.lock().of(nonce)
        {
            // The answer to the renewal that is out has the answers counted again.
            rank.is_confirming = false;
        }
    }

    /// A rank answered to a confirmation of `token`: with the time when that left, if it has it.
    pub(super) fn confirmed(&self, nonce: Nonce, token: Token, sent: Option<Instant>) {
        let now = self.now();
        let kept = {
            let mut ranks = self.ranks.lock();
            let is_decided = ranks.is_decided;
            let is_held = self.phase() == Phase::Held;
            let Some((_, rank)) = ranks.of(nonce) else {
                return;
            };
            rank.is_confirming = false;
            match sent.filter(|&sent| rank.lease.granted(token, sent, now, None)) {
                Some(_) => {
                    events::replica_granted(&rank.lease, now);
                    rank.lease.end_with(&self.state);
                    let again = is_held && !rank.is_granted();
                    rank.granted(token, again);
                    Some(rank.lease.clone())
                }
                None if rank.is_granted() && !is_decided && !self.is_over() => {
                    let former = self.renew_rank(rank);
                    drop(ranks);
                    former.release_in_background(false);
                    None
                }
                None => {
                    let lease = rank.lease.clone();
                    let is_granted = rank.is_granted();
                    drop(ranks);
                    // A renewal that was due while the confirmation was out has not been sent.
                    if is_granted {
                        lease.keep();
                    }
                    None
                }
            }
        };
        let Some(lease) = kept else {
            return self.count();
        };
        lease.keep();
        self.clear_thin(&self.ranks.lock(), now);
        if self.phase() == Phase::Held {
            self.extend();
        }
        self.count();
    }

    /// Replaces the lease of `rank` by one that is not asked for yet: a nonce is never used again. Returns the former
    /// lease, to be released. Called under the lock of the ranks, and only before this lease is over.
    ///
    /// A holder outside of this process has the nonces, and goes on with them elsewhere: they stay. Then the former lease
    /// has ended, and is not released.
    pub(super) fn renew_rank(&self, rank: &mut Rank) -> Arc<ShardLease> {
        let requests = &self.ring.requests;
        requests.add_another();
        let (key, view) = (rank.lease.key.clone(), &requests.around.view);
        let nonce = match self.is_detached() {
            true => rank.lease.nonce,
            false => requests.next_nonce(),
        };
        let state = LeaseState::new(key, nonce, self.terms.clone(), self.tokens, view);
        let state = state.with_replica(rank.lease.replica);
        if self.is_detached() {
            state.detach();
        }
        let fresh = Rank {
            because: rank.because.take(),
            passed_over_at: rank.passed_over_at,
            gone: rank.gone,
            ..Rank::new(
                self.ring
                    .lease(self.declaration, state, 0, self.ballot.clone()),
            )
        };
        std::mem::replace(rank, fresh).lease
    }

    pub(super) fn refused(&self, refusal: &AcquireError) {
        self.local().refused(&self.state, refusal);
    }

    pub(super) fn contended(&self) {
        self.local().contended(&self.state);
    }

    pub(super) fn idle(&self) -> Option<Instant> {
        self.local().idle(&self.state)
    }
}
