//! What is known of one grant.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU8, AtomicU64, AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    clock::Instant,
    driver::Answer,
    engine::keeper::{Keeper, Place},
    failpoint::{Rule, is_off},
    ids::{Nonce, Token},
    limits::{MARGIN, REENTRY_MAX, RHO_PERMILLE},
    name::{Label, LockKey},
    shard::{Effect, Lane},
};

/// Where a grant is in its life. Only ever moves down this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Phase {
    /// Asked for.
    Asked,
    /// Held, for as long as the clock is before the deadline.
    Held,
    /// Given back, lost, or given up.
    Over,
}

/// One acquisition: from before its first request leaves to after its last.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) key: LockKey,
    pub(super) nonce: Nonce,
    pub(super) label: Label,
    pub(super) lease: Duration,
    /// How long it is wanted, for a fixed hold; the engine renews until then.
    pub(super) hold_for: Option<Duration>,
    /// Of the shard it is at.
    pub(super) keeper: Arc<Keeper>,
    pub(super) place: Place,
    token: AtomicU64,
    deadline: AtomicU64,
    /// The end of a fixed hold; otherwise never.
    ends: AtomicU64,
    phase: AtomicU8,
    renewal_failed: AtomicBool,
    guards: AtomicUsize,
    pub(super) flow: Mutex<Flow>,
    pub(super) changed: Notify,
}

/// What is on its way, so that nothing overtakes it.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// A renewal is out: a release must go behind it, on its connection.
    pub(super) renewing: bool,
    /// A renewal got no answer, and may still arrive: until that lane has an answer again, a release
    /// must go behind it, on the connection that ended the former.
    pub(super) unanswered: bool,
}

impl Flow {
    /// A renewal came to its end.
    pub(super) fn answered(&mut self, answer: &Answer) {
        self.renewing = false;
        self.unanswered = match answer {
            Ok(_) => false,
            Err(error) => self.unanswered || error.effect() == Effect::Unknown,
        };
    }

    /// Where a release overtakes nothing.
    pub(super) fn lane_of_release(&self) -> Lane {
        let under_way = self.renewing || self.unanswered;
        if under_way && !is_off(Rule::ReleaseBehindRenewal) {
            Lane::Renew
        } else {
            Lane::Work
        }
    }
}

impl Hold {
    pub(super) fn new(
        key: LockKey,
        nonce: Nonce,
        label: Label,
        lease: Duration,
        hold_for: Option<Duration>,
        keeper: Arc<Keeper>,
    ) -> Arc<Self> {
        Arc::new(Self {
            key,
            nonce,
            label,
            lease,
            hold_for,
            keeper,
            place: Place::default(),
            token: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            ends: AtomicU64::new(u64::MAX),
            phase: AtomicU8::new(Phase::Asked as u8),
            renewal_failed: AtomicBool::new(false),
            guards: AtomicUsize::new(1),
            flow: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// The shard granted a request that had been sent at `sent`. Whether that is of use at `now`.
    pub(super) fn granted(&self, token: Token, sent: Instant, now: Instant) -> bool {
        if let Some(hold_for) = self.hold_for {
            self.ends.store((sent + hold_for).as_nanos(), Relaxed);
        }
        self.token.store(token.get(), Relaxed);
        self.deadline
            .store(self.deadline_of(sent).as_nanos(), Relaxed);
        let useful = now < self.deadline();
        if useful {
            self.phase.store(Phase::Held as u8, Release);
        }
        useful
    }

    /// The shard renewed it, asked at `sent`. Whether that still counts: a guard past its deadline
    /// is gone, and no late answer revives it.
    pub(super) fn renewed(&self, sent: Instant, now: Instant) -> bool {
        if !self.is_held(now) {
            return false;
        }
        self.deadline
            .fetch_max(self.deadline_of(sent).as_nanos(), Relaxed);
        self.renewal_failed.store(false, Relaxed);
        self.changed.notify_waiters();
        true
    }

    /// A renewal got no answer, or one that means: not now.
    pub(super) fn renewal_failed(&self) {
        self.renewal_failed.store(true, Relaxed);
        self.changed.notify_waiters();
    }

    /// Ends belief in it. Whether it was believed in until now, by the phase alone.
    pub(super) fn end(&self) -> bool {
        let before = self.phase.swap(Phase::Over as u8, AcqRel);
        self.changed.notify_waiters();
        before == Phase::Held as u8
    }

    /// Whether it is held at `now`.
    pub(super) fn is_held(&self, now: Instant) -> bool {
        self.phase.load(Acquire) == Phase::Held as u8 && now < self.deadline()
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase.load(Acquire) == Phase::Over as u8
    }

    pub(super) fn has_failed_renewal(&self) -> bool {
        self.renewal_failed.load(Relaxed)
    }

    pub(super) fn token(&self) -> Token {
        Token::from_number(self.token.load(Relaxed))
    }

    pub(super) fn deadline(&self) -> Instant {
        Instant::from_nanos(self.deadline.load(Relaxed))
    }

    /// Whether the deadline is the end that was asked for, which no renewal can move.
    pub(super) fn is_final(&self) -> bool {
        self.deadline.load(Relaxed) >= self.ends.load(Relaxed)
    }

    /// One more guard, unless the last is gone or there are too many: then how many there are.
    pub(super) fn enter(&self) -> Result<(), usize> {
        let entered = self.guards.fetch_update(AcqRel, Acquire, |guards| {
            (guards > 0 && guards < REENTRY_MAX).then_some(guards + 1)
        });
        entered.map(drop)
    }

    /// One guard less. Whether that was the last.
    pub(super) fn leave(&self) -> bool {
        self.guards.fetch_sub(1, AcqRel) == 1
    }

    /// What to ask for: a fixed hold shorter than the lease asks for no more than it needs.
    pub(super) fn lease_to_ask(&self) -> Duration {
        match self.hold_for {
            Some(hold_for) => lease_lasting(hold_for).min(self.lease),
            None => self.lease,
        }
    }

    /// When belief ends, if a request sent at `sent` is answered: the lease counts from no earlier
    /// than that at the shard, by a clock whose rate may differ.
    fn deadline_of(&self, sent: Instant) -> Instant {
        let lease = self.lease_to_ask();
        let believed = (lease - lease * RHO_PERMILLE / 1000).saturating_sub(MARGIN);
        let ends = Instant::from_nanos(self.ends.load(Relaxed));
        (sent + believed).min(ends)
    }
}

/// The lease whose deadline is at least `length` after it was asked for.
fn lease_lasting(length: Duration) -> Duration {
    (length + MARGIN) * 1000 / (1000 - RHO_PERMILLE) + Duration::from_millis(1)
}
