//! The state of one acquisition: tokens, deadline, phase.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU8, AtomicU32, AtomicU64,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    time::Duration,
};

use tokio::sync::Notify;

use super::{super::AcquireError, terms::Terms};
use crate::{
    clock::Instant,
    ids::{Nonce, Token},
    limits::{MARGIN, RHO_PERMILLE},
    name::LockKey,
    shard::LockMode,
    sync::Mutex,
    view::{Believed, ViewLease},
};

/// The phases of a grant. It only ever moves down this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Requested.
    Asked,
    /// Held, for as long as the clock is before the deadline.
    Held,
    /// Released, lost, or abandoned.
    Over,
}

impl From<u8> for Phase {
    fn from(number: u8) -> Self {
        match number {
            0 => Self::Asked,
            1 => Self::Held,
            _ => Self::Over,
        }
    }
}

/// The place of a lease among the replicas of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replica {
    /// The acquisition of the lock.
    pub(crate) of: Nonce,
    /// From 0.
    pub(crate) rank: u32,
}

/// One acquisition, as its holders see it. They have it one after the other.
#[derive(Debug)]
pub(crate) struct LeaseState {
    pub(crate) key: LockKey,
    pub(crate) nonce: Nonce,
    pub(crate) terms: Terms,
    /// How many tokens are requested.
    pub(crate) tokens: u32,
    /// None for a lock as its holders see it.
    pub(crate) replica: Option<Replica>,
    /// The first of its tokens, and their number.
    token: AtomicU64,
    granted: AtomicU32,
    deadline: AtomicU64,
    /// The time when the request left that the deadline counts from.
    sent: AtomicU64,
    /// The end of a fixed hold; otherwise never.
    ends: AtomicU64,
    /// The time until which it is kept without a holder; 0 while it has one.
    idle_until: AtomicU64,
    phase: AtomicU8,
    /// The view of the topology under which it was granted, if views expire.
    view: Option<Arc<ViewLease>>,
    believed: Mutex<Option<Believed>>,
    /// Its holder is outside of this process: it is renewed when the holder asks for that, and
    /// another process may go on with it.
    detached: AtomicBool,
    /// If it is detached: a renewal that left before this is not enough for its holder.
    wanted_since: AtomicU64,
    /// Another process waited for it when it was renewed.
    contended: AtomicBool,
    /// A writer has become a reader, in this local queue; otherwise 0.
    downgraded: AtomicU64,
    renewal_failed: AtomicBool,
    /// No more than a bare majority of its replicas has it.
    thin: AtomicBool,
    /// The clock of its shard stepped since the last renewal.
    clock_stepped: AtomicBool,
    /// The rest of the turn that granted it, when the turn arrived; 0 after a renewal, or without a
    /// turn.
    claim: AtomicU64,
    /// The reason why it is not granted yet.
    pub(crate) refusal: Mutex<Option<AcquireError>>,
    pub(crate) changed: Notify,
}

impl LeaseState {
    /// An acquisition that is about to be requested, under the present `view` of the topology.
    pub(crate) fn new(
        key: LockKey,
        nonce: Nonce,
        terms: Terms,
        tokens: u32,
        view: &Arc<ViewLease>,
    ) -> Self {
        Self {
            view: view.length().map(|_| view.clone()),
            believed: Mutex::default(),
            key,
            nonce,
            terms,
            tokens,
            replica: None,
            token: AtomicU64::new(0),
            granted: AtomicU32::new(1),
            deadline: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            ends: AtomicU64::new(u64::MAX),
            idle_until: AtomicU64::new(0),
            phase: AtomicU8::new(Phase::Asked as u8),
            detached: AtomicBool::new(false),
            wanted_since: AtomicU64::new(0),
            contended: AtomicBool::new(false),
            downgraded: AtomicU64::new(0),
            renewal_failed: AtomicBool::new(false),
            thin: AtomicBool::new(false),
            clock_stepped: AtomicBool::new(false),
            claim: AtomicU64::new(0),
            refusal: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// The same, as one of the replicas of a lock.
    pub(crate) fn with_replica(self, replica: Option<Replica>) -> Self {
        Self { replica, ..self }
    }

    /// The shard granted the request sent at `sent`, for a full lease; or, by a turn, for its claim
    /// time. Returns whether the grant is still of use at `now`.
    pub(crate) fn granted(
        &self,
        token: Token,
        sent: Instant,
        now: Instant,
        claim: Option<Duration>,
    ) -> bool {
        if let Some(hold_for) = self.terms.hold_for {
            // A turn answers a request that may be old: the fixed hold begins when the turn arrives.
            let begins = if claim.is_some() { now } else { sent };
            self.ends.store((begins + hold_for).as_nanos(), Relaxed);
        }
        self.token.store(token.get(), Relaxed);
        self.sent.store(sent.as_nanos(), Relaxed);
        let lease = claim.unwrap_or_else(|| self.lease_to_ask());
        let deadline = self.deadline_of(sent, lease);
        self.deadline.store(deadline.as_nanos(), Relaxed);
        let left = claim.map_or(0, |_| deadline.since(now).as_nanos() as u64);
        self.claim.store(left, Relaxed);
        if let Some(view) = &self.view {
            *self.believed.lock() = view.believed(now);
        }
        let useful = now < deadline && self.is_believed(now);
        let over = Phase::Over as u8;
        let held = |phase| (phase != over).then_some(Phase::Held as u8);
        useful && self.phase.fetch_update(Release, Relaxed, held).is_ok()
    }

    /// The shard renewed it, by a request sent at `sent`. Returns whether the renewal still counts:
    /// a guard past its deadline is gone, and no late answer revives it.
    pub(crate) fn renewed(&self, sent: Instant, now: Instant) -> bool {
        self.renewed_for(sent, now, self.lease_to_ask())
    }

    /// The same, for no more than `lease`.
    pub(crate) fn renewed_for(&self, sent: Instant, now: Instant, lease: Duration) -> bool {
        if !self.is_held(now) {
            return false;
        }
        self.sent.fetch_max(sent.as_nanos(), Relaxed);
        let deadline = self.deadline_of(sent, lease);
        self.deadline.fetch_max(deadline.as_nanos(), Relaxed);
        self.renewal_failed.store(false, Relaxed);
        self.clock_stepped.store(false, Relaxed);
        // After the deadline: a reader that finds a whole lease also finds its deadline.
        self.claim.store(0, Release);
        self.changed.notify_waiters();
        true
    }

    /// Whether an answer to a request sent at `sent` still counts at `now`.
    pub(crate) fn would_last(&self, sent: Instant, now: Instant) -> bool {
        now < self.deadline_of(sent, self.lease_to_ask())
    }

    /// Another shard adopted it, by a request sent at `sent`: from then on only that shard's
    /// answers count.
    pub(crate) fn adopted(&self, sent: Instant) {
        let deadline = self.deadline_of(sent, self.lease_to_ask());
        self.sent.store(sent.as_nanos(), Relaxed);
        self.deadline.store(deadline.as_nanos(), Relaxed);
        self.renewal_failed.store(false, Relaxed);
        self.clock_stepped.store(false, Relaxed);
        self.claim.store(0, Release);
        self.changed.notify_waiters();
    }

    /// Belief ends at `deadline`, if not before: fewer replicas have it.
    pub(crate) fn shorten(&self, deadline: Instant) {
        self.deadline.fetch_min(deadline.as_nanos(), Relaxed);
        self.changed.notify_waiters();
    }

    /// A renewal got no answer, or the answer "not now".
    pub(crate) fn renewal_failed(&self) {
        self.renewal_failed.store(true, Relaxed);
        self.changed.notify_waiters();
    }

    /// The clock of its shard stepped: its record may end before its deadline.
    pub(crate) fn endanger(&self) {
        self.clock_stepped.store(true, Relaxed);
        self.changed.notify_waiters();
    }

    /// Whether no more than a bare majority of its replicas has it.
    pub(crate) fn set_thin(&self, thin: bool) {
        if self.thin.swap(thin, Relaxed) != thin {
            self.changed.notify_waiters();
        }
    }

    /// Ends belief in it. Returns the phase until now.
    pub(crate) fn end(&self) -> Phase {
        let before = self.phase.swap(Phase::Over as u8, AcqRel);
        self.changed.notify_waiters();
        Phase::from(before)
    }

    /// Its holder is outside of this process from now on.
    pub(crate) fn detach(&self) {
        self.detached.store(true, Release);
    }

    /// Whether its holder is outside of this process. Then only the holder has it released: another
    /// process may have renewed it.
    pub(crate) fn is_detached(&self) -> bool {
        self.detached.load(Acquire)
    }

    /// Which share of the key it takes, or keeps.
    pub(crate) fn mode(&self) -> LockMode {
        match self.downgraded.load(Acquire) {
            0 => self.terms.mode,
            _ => LockMode::Read,
        }
    }

    /// Its local queue.
    pub(crate) fn share(&self) -> u64 {
        match self.downgraded.load(Acquire) {
            0 => self.terms.share,
            own => own,
        }
    }

    /// Its holder no longer writes, and has the local queue `share`. Returns whether it wrote until now.
    pub(crate) fn downgrade(&self, share: u64) -> bool {
        let is_writer = self.terms.mode == LockMode::Write;
        let downgraded = &self.downgraded;
        is_writer
            && downgraded
                .compare_exchange(0, share, AcqRel, Acquire)
                .is_ok()
    }

    /// Another process waits for it.
    pub(crate) fn contend(&self) {
        if !self.contended.swap(true, Relaxed) {
            self.changed.notify_waiters();
        }
    }

    /// How many tokens came with its grant, from the first one on.
    pub(crate) fn tokens_granted(&self) -> u32 {
        self.granted.load(Relaxed)
    }

    /// So many tokens came with its grant.
    pub(crate) fn set_tokens_granted(&self, tokens: u32) {
        self.granted.store(tokens, Relaxed);
    }

    /// Whether another process has waited for it.
    pub(crate) fn is_contended(&self) -> bool {
        self.contended.load(Relaxed)
    }

    /// Its holder asks for a renewal that leaves at `since` or later.
    pub(crate) fn want_renewal(&self, since: Instant) {
        self.wanted_since.fetch_max(since.as_nanos(), Relaxed);
    }

    /// A renewal that left before this is not enough for a holder outside of this process.
    pub(crate) fn wanted_since(&self) -> Instant {
        Instant::from_nanos(self.wanted_since.load(Relaxed))
    }

    /// Whether it has been renewed, or granted for a whole lease, by a request that left at `since`
    /// or later.
    pub(crate) fn is_renewed_since(&self, since: Instant) -> bool {
        self.claim.load(Acquire) == 0 && self.sent() >= since
    }

    /// Whether it is to be renewed. A detached lease is not, unless its holder asks for that.
    pub(crate) fn is_to_be_renewed(&self) -> bool {
        !self.is_detached() || !self.is_renewed_since(self.wanted_since())
    }

    /// It has no holder: it is kept until `until`.
    pub(crate) fn leave_idle(&self, until: Instant) {
        self.idle_until.store(until.as_nanos(), Relaxed);
    }

    /// It has a holder.
    pub(crate) fn take_up(&self) {
        self.idle_until.store(0, Relaxed);
    }

    /// The time until which it is kept, if it has no holder.
    pub(crate) fn idle_until(&self) -> Option<Instant> {
        let until = self.idle_until.load(Relaxed);
        (until > 0).then_some(Instant::from_nanos(until))
    }

    /// Whether it is held at `now`.
    pub(crate) fn is_held(&self, now: Instant) -> bool {
        let held = self.phase.load(Acquire) == Phase::Held as u8;
        held && now < self.deadline() && self.is_believed(now)
    }

    /// Whether the view under which it was granted is still valid.
    fn is_believed(&self, now: Instant) -> bool {
        let Some(view) = &self.view else {
            return true;
        };
        self.believed
            .lock()
            .is_some_and(|its| view.is_still(its, now))
    }

    pub(crate) fn phase(&self) -> Phase {
        Phase::from(self.phase.load(Acquire))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.phase() == Phase::Over
    }

    pub(crate) fn is_claimed(&self) -> bool {
        self.claim.load(Relaxed) > 0
    }

    /// How long it is held without another renewal: the lease, or the rest of a turn when it
    /// arrived.
    pub(crate) fn length(&self) -> Duration {
        match self.claim.load(Acquire) {
            0 => self.lease_to_ask(),
            claim => Duration::from_nanos(claim),
        }
    }

    /// The time when the lock comes into danger: less of the lease, or of the view, is left than
    /// its next renewal leaves in normal operation.
    pub(crate) fn danger_at(&self) -> Instant {
        // The length first: then a renewal in between only moves the deadline forward.
        let third = self.length() / 3;
        let of_lease = self.record_deadline() - third;
        let of_view = self.view.as_ref().map(|view| view.danger_at());
        of_view.map_or(of_lease, |of_view| of_lease.min(of_view))
    }

    pub(crate) fn has_failed_renewal(&self) -> bool {
        self.renewal_failed.load(Relaxed)
    }

    pub(crate) fn is_thin(&self) -> bool {
        self.thin.load(Relaxed)
    }

    pub(crate) fn is_by_a_stepped_clock(&self) -> bool {
        self.clock_stepped.load(Relaxed)
    }

    pub(crate) fn token(&self) -> Token {
        Token::from_number(self.token.load(Relaxed))
    }

    /// The time when the request left that the deadline counts from.
    pub(crate) fn sent(&self) -> Instant {
        Instant::from_nanos(self.sent.load(Relaxed))
    }

    pub(crate) fn deadline(&self) -> Instant {
        let deadline = self.record_deadline();
        let Some(view) = &self.view else {
            return deadline;
        };
        let its = *self.believed.lock();
        deadline.min(its.map_or_else(|| view.until(), |its| view.end_of(its)))
    }

    /// Until when its record lasts, whatever becomes of the view: with the view, it is not believed in any longer.
    pub(crate) fn record_deadline(&self) -> Instant {
        Instant::from_nanos(self.deadline.load(Relaxed))
    }

    /// The end of a fixed hold.
    pub(crate) fn ends(&self) -> Option<Instant> {
        let ends = || Instant::from_nanos(self.ends.load(Relaxed));
        self.terms.hold_for.map(|_| ends())
    }

    /// It ends with the lock of which it is a replica.
    pub(crate) fn end_with(&self, lock: &Self) {
        self.ends.fetch_min(lock.ends.load(Relaxed), Relaxed);
    }

    /// Whether the deadline is the requested end, which no renewal can move.
    pub(crate) fn is_final(&self) -> bool {
        self.deadline.load(Relaxed) >= self.ends.load(Relaxed)
    }

    /// Whether its holder means to hold it beyond the deadline.
    pub(crate) fn is_to_go_on(&self) -> bool {
        self.idle_until().is_none() && !self.is_final()
    }

    /// The lease to request: a fixed hold shorter than the lease requests no more than it needs.
    pub(crate) fn lease_to_ask(&self) -> Duration {
        match self.terms.hold_for {
            Some(hold_for) => lease_lasting(hold_for).min(self.terms.lease),
            None => self.terms.lease,
        }
    }

    /// The latest time of a request whose answer has belief last no longer than `deadline`.
    pub(crate) fn sent_for(&self, deadline: Instant) -> Instant {
        let lasts = believed(self.lease_to_ask());
        deadline - self.terms.hold_for.map_or(lasts, |hold| hold.min(lasts))
    }

    /// The time when belief ends, if a request sent at `sent` is answered: the shard counts the
    /// lease from no earlier than that, by a clock with a possibly different rate.
    fn deadline_of(&self, sent: Instant, lease: Duration) -> Instant {
        let ends = Instant::from_nanos(self.ends.load(Relaxed));
        (sent + believed(lease)).min(ends)
    }
}

/// How long after its request a grant of `lease` is believed.
fn believed(lease: Duration) -> Duration {
    (lease - lease * RHO_PERMILLE / 1000).saturating_sub(MARGIN)
}

/// The lease with a deadline at least `length` after the request.
fn lease_lasting(length: Duration) -> Duration {
    length.saturating_add(MARGIN).saturating_mul(1000) / (1000 - RHO_PERMILLE)
        + Duration::from_millis(1)
}
