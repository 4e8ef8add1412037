//! One acquisition at all ranks of a key.

use std::{
    ops::Deref,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use ringfence_ring::ShardId;

use super::{
    super::{
        AcquireError, ReleaseAnswer,
        local::{
            Answer as Granted, Judged, Lease, LeaseState, LiveReplicas, Phase, Receiver, Releasing,
            Replica, Terms, Tokens, Waiting, events,
        },
        ring::{Declaration, Ring, ShardLease},
    },
    ballot::Ballot,
    ranks::{Rank, Ranks},
    vote::{Answer, Vote, deadline, majority, vote},
};
use crate::{
    backoff::Backoff,
    clock::{Instant, sleep_until},
    failpoint::{Rule, is_off},
    ids::{Nonce, Token},
    name::LockKey,
    shard::QueuedGrant,
    sync::Mutex,
};

/// First and longest pause before ranks that did not grant are asked again.
const RETRY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(200));

/// One acquisition: a lease at each rank, of which a majority counts.
#[derive(Debug)]
pub(super) struct ReplicatedLease {
    state: LeaseState,
    declaration: Declaration,
    ring: Arc<Ring>,
    /// Whether it takes a place in the queue of the lead.
    pub(super) queues: bool,
    pub(super) ranks: Mutex<Ranks>,
    /// Whether it needed a second round trip.
    has_confirmed: AtomicBool,
    retry: Mutex<Retry>,
    ballot: Arc<Ballot>,
    me: Weak<Self>,
}

/// The pauses before ranks are asked again.
#[derive(Debug)]
struct Retry {
    backoff: Backoff,
    is_due: bool,
}

impl Deref for ReplicatedLease {
    type Target = LeaseState;

    fn deref(&self) -> &LeaseState {
        &self.state
    }
}

impl ReplicatedLease {
    pub(super) fn begin(
        ring: &Arc<Ring>,
        declaration: Declaration,
        key: &LockKey,
        terms: Terms,
        tokens: u32,
        queues: bool,
    ) -> Result<Arc<Self>, AcquireError> {
        let replicas = declaration.replicas;
        let slots = ring.routing.slots().replicas(key.slot(), replicas);
        let requests = &ring.requests;
        requests.add_one().map_err(AcquireError::TooManyHeld)?;
        (1..replicas.get()).for_each(|_| requests.add_another());
        let of = requests.next_nonce();
        let view = &ring.requests.around.view;
        let lease = Arc::new_cyclic(|me: &Weak<Self>| {
            let ballot = Arc::new(Ballot(me.clone()));
            let rank = |(slot, rank)| {
                let (key, nonce) = (key.at(slot), requests.next_nonce());
                let state = LeaseState::new(key, nonce, terms.clone(), tokens, view);
                let state = state.with_replica(Some(Replica { of, rank }));
                Rank::new(ring.lease(declaration, state, false, ballot.clone()))
            };
            let ranks = slots.zip(0..).map(rank).collect();
            Self {
                state: LeaseState::new(key.clone(), of, terms.clone(), tokens, view),
                declaration,
                ring: ring.clone(),
                queues,
                ranks: Mutex::new(Ranks {
                    all: ranks,
                    is_decided: false,
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

    fn local(&self) -> &dyn Receiver {
        &*self.ring.requests.local
    }

    /// Asks every rank that is neither granted nor asked already.
    fn ask(&self) {
        let asked: Vec<_> = {
            let mut ranks = self.ranks.lock();
            let lead = ranks.lead();
            let due = ranks.all.iter_mut().enumerate();
            let due = due.filter(|(_, rank)| rank.answer == Answer::NotGranted && !rank.is_wanted);
            due.map(|(index, rank)| {
                rank.want();
                (rank.lease.clone(), self.queues && index == lead)
            })
            .collect()
        };
        for (lease, queues) in asked {
            self.ring.requests.ask_in_queue(&lease, queues);
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

    /// A majority granted with `token`, until `deadline` at least.
    fn held(&self, token: Token, deadline: Instant) {
        let answer = Granted {
            tokens: Tokens::new(token, self.tokens),
            // A rank may have told so while it was not granted yet.
            contended: self.is_contended(),
            sent: self.sent_for(deadline),
            claim: None,
        };
        match self.local().granted(&self.state, answer) {
            Judged::Held => {
                let ranks = self.lower(token);
                self.confirm(token, &ranks);
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

    /// The ranks whose records have a lower token.
    fn lower(&self, token: Token) -> Vec<usize> {
        let ranks = self.ranks.lock();
        let lower =
            |answer: &Answer| matches!(answer, Answer::Granted(grant) if grant.token < token);
        let ranks = ranks.all.iter().enumerate();
        ranks
            .filter(|(_, rank)| lower(&rank.answer))
            .map(|(index, _)| index)
            .collect()
    }

    /// Has `ranks` confirm `token`.
    fn confirm(&self, token: Token, ranks: &[usize]) {
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

    fn send_confirm(&self, lease: Arc<ShardLease>, token: Token, install: bool) {
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
    fn confirmed(&self, nonce: Nonce, token: Token, sent: Option<Instant>) {
        let now = self.now();
        let kept = {
            let mut ranks = self.ranks.lock();
            let is_decided = ranks.is_decided;
            let Some((_, rank)) = ranks.of(nonce) else {
                return;
            };
            rank.is_confirming = false;
            match sent.filter(|&sent| rank.lease.granted(token, sent, now, None)) {
                Some(_) => {
                    events::replica_granted(&rank.lease, now);
                    rank.granted(token);
                    Some(rank.lease.clone())
                }
                None if rank.is_granted() && !is_decided && !self.is_over() => {
                    let former = self.renew_rank(rank);
                    drop(ranks);
                    former.release_in_background(false);
                    None
                }
                None => None,
            }
        };
        if let Some(lease) = kept {
            lease.keep();
            self.clear_thin(&self.ranks.lock(), now);
        }
        self.count();
    }

    /// Replaces the lease of `rank` by one that is not asked for yet: a nonce is never used again. Returns the former
    /// lease, to be released. Called under the lock of the ranks, and only before this lease is over.
    fn renew_rank(&self, rank: &mut Rank) -> Arc<ShardLease> {
        let requests = &self.ring.requests;
        requests.add_another();
        let (key, nonce) = (rank.lease.key.clone(), requests.next_nonce());
        let view = &requests.around.view;
        let state = LeaseState::new(key, nonce, self.terms.clone(), self.tokens, view);
        let state = state.with_replica(rank.lease.replica);
        let fresh = Rank {
            because: rank.because.take(),
            ..Rank::new(
                self.ring
                    .lease(self.declaration, state, false, self.ballot.clone()),
            )
        };
        std::mem::replace(rank, fresh).lease
    }

    /// No majority can come about for now: gives back everything but the place at the lead.
    fn give_way(&self) {
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
    fn waits(&self, because: &AcquireError, lead: &ShardId) {
        let grace = self.ring.routing.topology().constants.grace();
        let waiting = || Waiting::new(because, lead, grace);
        self.local().waits(&self.state, because, true, &waiting);
    }

    /// Why no majority has granted it: too few ranks can, or another holder has it.
    fn because(&self, ranks: &Ranks) -> Option<AcquireError> {
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
    fn look_after(&self) {
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
    fn again(&self) {
        match self.phase() {
            Phase::Asked => self.ask(),
            Phase::Held => {
                self.repair();
                self.look_after();
            }
            Phase::Over => {}
        }
    }

    /// Writes the grant where no rank has it, while it is held.
    fn repair(&self) {
        let token = self.token();
        let now = self.now();
        let missing: Vec<_> = {
            let mut ranks = self.ranks.lock();
            if self.is_over() {
                return;
            }
            self.state.set_thin(self.has_bare_majority(&ranks, now));
            let missing = ranks
                .all
                .iter_mut()
                .filter(|rank| !rank.is_granted() && !rank.is_confirming);
            missing
                .map(|rank| {
                    // A request that is out would make a grant of its own.
                    let former = self.renew_rank(rank);
                    rank.is_confirming = true;
                    (former, rank.lease.clone())
                })
                .collect()
        };
        for (former, fresh) in missing {
            give_back(former, false);
            self.send_confirm(fresh, token, true);
        }
        let lower = self.lower(token);
        self.confirm(token, &lower);
    }

    /// A rank has it again: ends the danger of a bare majority if there is more than that.
    fn clear_thin(&self, ranks: &Ranks, now: Instant) {
        if self.is_thin() && !self.has_bare_majority(ranks, now) {
            self.state.set_thin(false);
        }
    }

    /// Whether no more than a bare majority has it.
    fn has_bare_majority(&self, ranks: &Ranks, now: Instant) -> bool {
        ranks.live(now) <= majority(self.declaration.replicas)
    }

    /// A rank was renewed: the lock lasts as long as a majority.
    pub(super) fn extend(&self) {
        let renewed = {
            // Under the lock, so that no rank is lost in between.
            let ranks = self.ranks.lock();
            let now = self.now();
            self.clear_thin(&ranks, now);
            let deadline = deadline(self.declaration.replicas, &ranks.answers());
            let sent = deadline.map(|deadline| self.sent_for(deadline));
            let sent = sent.filter(|&sent| self.state.renewed(sent, now));
            sent.map(|sent| (sent, now))
        };
        match renewed {
            Some((sent, now)) => events::renewed(&self.state, false, sent, now),
            None => self.count(),
        }
    }

    /// The record of a rank is lost, or past its time; or its release for another process was answered.
    pub(super) fn rank_over(&self, nonce: Nonce) {
        if self.is_over() {
            return self.local().over(&self.state);
        }
        {
            let mut ranks = self.ranks.lock();
            if let Some((_, rank)) = ranks.of(nonce).filter(|_| !self.is_over()) {
                self.renew_rank(rank);
            }
        }
        match self.phase() {
            Phase::Held => self.shorten(),
            Phase::Asked | Phase::Over => self.count(),
        }
    }

    /// A rank does not have it any more: the lock lasts as long as a majority of the others.
    fn shorten(&self) {
        let now = self.now();
        let is_held = {
            let ranks = self.ranks.lock();
            let deadline = deadline(self.declaration.replicas, &ranks.answers());
            let deadline = deadline.filter(|&deadline| now < deadline);
            deadline.map(|deadline| self.state.shorten(deadline))
        };
        match is_held {
            Some(()) => self.look_after(),
            None => self.lose(),
        }
    }

    /// Fewer than a majority have it.
    fn lose(&self) {
        if self.state.end() == Phase::Held {
            events::lost(&self.state, self.now());
        }
        self.local().over(&self.state);
        self.give_back(false);
    }

    /// Releases everything in the background, at the lead last: its next waiter finds the others free.
    fn give_back(&self, yields: bool) {
        let leases = self.ranks.lock().leases();
        let teller = self.teller(&leases, yields);
        for (index, lease) in leases.into_iter().enumerate().rev() {
            give_back(lease, Some(index) == teller);
        }
    }

    /// If it `yields`: the rank whose answered release tells the local queue, the first that has a grant. If none has one,
    /// the local queue is told at once.
    fn teller(&self, leases: &[Arc<ShardLease>], yields: bool) -> Option<usize> {
        let is_held = |lease: &Arc<ShardLease>| lease.phase() == Phase::Held;
        let first = leases.iter().position(is_held);
        if yields && first.is_none() {
            self.local().over(&self.state);
        }
        first.filter(|_| yields)
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

impl Lease for ReplicatedLease {
    fn state(&self) -> &LeaseState {
        &self.state
    }

    fn has(&self, nonce: Nonce) -> bool {
        self.nonce == nonce || self.ranks.lock().of(nonce).is_some()
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
        for lease in self.ranks.lock().leases() {
            lease.renew();
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
        let teller = self.teller(&leases, yields);
        let mut releases = FuturesUnordered::new();
        for (index, lease) in leases.into_iter().enumerate().rev() {
            match lease.phase() {
                Phase::Held => releases.extend(lease.release(Some(index) == teller, held)),
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

/// Releases what a shard may have of `lease`, in the background.
fn give_back(lease: Arc<ShardLease>, yields: bool) {
    match lease.phase() {
        Phase::Held => lease.release_in_background(yields),
        Phase::Asked | Phase::Over => lease.abandon(),
    }
}

/// The answer of a majority.
async fn released(mut releases: FuturesUnordered<Releasing>, majority: usize) -> ReleaseAnswer {
    let (mut held, mut lost) = (0, 0);
    while let Some(answer) = releases.next().await {
        match answer {
            ReleaseAnswer::Held => held += 1,
            ReleaseAnswer::Lost => lost += 1,
            _ => {}
        }
        if held >= majority {
            return ReleaseAnswer::Held;
        }
        if lost >= majority {
            return ReleaseAnswer::Lost;
        }
    }
    ReleaseAnswer::Unknown
}
