//! The local queue: for each key in use, its holder and its waiters in this process, first come,
//! first served.
//!
//! ```text
//! join ─► rules: LocalQueue ─► ask ─► shard ─► answered, or a turn ─► guard ─► released ─► the next
//! ```
//!
//! | file | content |
//! |---|---|
//! | `rules.rs` | one key's local queue: pure |
//! | `record.rs` | how far a record is handed on: pure |
//! | `tokens.rs` | the fencing tokens that came with a grant |
//! | `join.rs` | taking a place, waiting there, leaving it |
//! | `ask.rs` | the request at the shard for the whole local queue |
//! | `search.rs` | the shard to ask, while the slot is on its way |
//! | `turn.rs` | messages from the shard; the next grant |

mod ask;
mod join;
mod record;
mod rules;
mod search;
mod tokens;
mod turn;

#[cfg(test)]
mod tests;

use std::{
    array, fmt,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    time::Duration,
};

use hashbrown::{HashMap, hash_map::EntryRef};

use super::{
    AcquireError,
    hold::{Hold, Phase},
    release::Releases,
    renewer::LeaseRenewer,
    routing::Routing,
};
use crate::{
    clock::Instant,
    driver::Context,
    ids::{ClientId, Nonce},
    limits::{HANDOFF_FOR, HANDOFF_MAX},
    name::LockKey,
    sync::Mutex,
};
pub(super) use join::{Joined, Waiter};
use rules::{Effects, LocalQueue, Policy};
pub(super) use rules::{LeaseView, Terms};
use search::StaleRoutes;
use turn::LocalGrant;

/// Tables that the local queues are spread over, by slot, so that no key waits for another's.
const TABLES: usize = 64;

type KeyQueue = LocalQueue<Arc<Hold>, Waiter>;

/// How a process shares held locks among its own tasks.
#[derive(Clone, Debug, Default)]
pub struct Sharing {
    /// The limits once another process waits.
    pub handoff: Handoff,
    /// How long it keeps a lock without a holder, by namespace; default: 0.
    pub linger: HashMap<String, Duration>,
}

/// How often and how long a process hands a lock from task to task once another process waits for
/// it. While none waits there is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// At most this many times. With 0 it never hands on: each task asks the shard.
    pub max: u32,
    /// For at most this long.
    pub length: Duration,
}

impl Default for Handoff {
    fn default() -> Self {
        Self {
            max: HANDOFF_MAX,
            length: HANDOFF_FOR,
        }
    }
}

/// The local queues of every key in use.
pub(super) struct LocalQueues {
    around: Context,
    releases: Arc<Releases>,
    routing: OnceLock<Weak<Routing>>,
    client: ClientId,
    sequence: AtomicU64,
    /// Requests and records at shards.
    held: AtomicUsize,
    sharing: Sharing,
    closed: AtomicBool,
    /// Requests that an outdated picture of the ring has sent to the wrong shard, and that wait for
    /// a new picture.
    stale_routes: Mutex<StaleRoutes>,
    tables: [Mutex<HashMap<LockKey, KeyQueue>>; TABLES],
}

/// Closes the local queues at the end of its task.
struct ClosesWhenDropped(Arc<LocalQueues>);

impl Drop for ClosesWhenDropped {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The effects of a change.
pub(super) struct Outcome {
    pub(super) effects: Effects<Arc<Hold>, Waiter, AcquireError>,
    turn: Option<LocalGrant>,
}

impl LocalQueues {
    pub(super) fn new(
        client: ClientId,
        sharing: Sharing,
        releases: Arc<Releases>,
        around: &Context,
    ) -> Arc<Self> {
        Arc::new(Self {
            around: around.clone(),
            releases,
            routing: OnceLock::new(),
            client,
            sequence: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            sharing,
            closed: AtomicBool::new(false),
            stale_routes: Mutex::default(),
            tables: array::from_fn(|_| Mutex::default()),
        })
    }

    /// Sends requests by `routing` from now on. Dismisses all waiters when told to stop, or when
    /// the runtime ends.
    pub(super) fn start(self: &Arc<Self>, routing: &Arc<Routing>) {
        self.routing
            .set(Arc::downgrade(routing))
            .expect("started once");
        let closes = ClosesWhenDropped(self.clone());
        self.around.tasks.spawn(async move {
            closes.0.around.stop.cancelled().await;
        });
    }

    /// Requests and records at shards.
    pub(super) fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// Changes `key`'s local queue, if it has one, and performs the effects.
    fn change<T>(
        self: &Arc<Self>,
        key: &LockKey,
        change: impl FnOnce(&mut KeyQueue, Instant) -> T,
    ) -> Option<T> {
        let now = self.around.clock.now();
        let (changed, due) = self.step(key, now, |queue| change(queue, now))?;
        self.perform(due);
        Some(changed)
    }

    /// Changes `key`'s local queue, if it has one, and returns the effects.
    fn step<T>(
        &self,
        key: &LockKey,
        now: Instant,
        change: impl FnOnce(&mut KeyQueue) -> T,
    ) -> Option<(T, Outcome)> {
        let mut table = self.table(key).lock();
        let EntryRef::Occupied(mut entry) = table.entry_ref(key) else {
            return None;
        };
        let queue = entry.get_mut();
        let changed = change(queue);
        let due = self.settle(key, queue, now);
        if queue.is_empty() {
            entry.remove();
        }
        Some((changed, due))
    }

    /// The effects. Holds and owners learn of them before any other task can look at this local queue.
    fn settle(&self, key: &LockKey, queue: &mut KeyQueue, now: Instant) -> Outcome {
        let linger = self.linger(key);
        let policy = Policy {
            handoff: self.sharing.handoff,
            lingers: linger.is_some(),
        };
        let mut effects = queue.settle(now, policy, |first, terms, tokens, patient| {
            self.begin(key, first, terms, tokens, patient)
        });
        if let (Some(hold), Some(linger)) = (&effects.linger, linger)
            && hold.idle_until().is_none()
        {
            let until = (now + linger).min(hold.deadline());
            hold.leave_idle(until);
            hold.renewer().tend_by(hold, until);
        }
        let turn = effects
            .grant
            .take()
            .map(|granted| LocalGrant::of(granted, queue, now));
        Outcome { effects, turn }
    }

    /// Performs the effects.
    pub(super) fn perform(self: &Arc<Self>, Outcome { effects, turn }: Outcome) {
        if let Some(hold) = effects.give_back {
            match self.end(&hold) {
                Phase::Held => self.releases.send(&hold, effects.yields),
                Phase::Asked | Phase::Over => self.yielded(&hold),
            }
        }
        if let Some(hold) = effects.abandon {
            self.abandon(&hold);
        }
        if let Some(hold) = effects.ask {
            self.ask(&hold);
        }
        if let Some(turn) = turn {
            turn.deliver();
        }
        for (waiter, refusal) in effects.refused {
            waiter.refuse(refusal);
        }
        if let Some((hold, waiters)) = effects.busy {
            let refusal = held_by(&hold, self.around.clock.now());
            for waiter in waiters {
                waiter.refuse(refusal.clone());
            }
        }
    }

    /// Ends belief in `hold`, once. Returns the phase until now.
    pub(super) fn end(&self, hold: &Hold) -> Phase {
        let before = hold.end();
        if before != Phase::Over {
            // It may be moving from one shard to another.
            while !hold.renewer().forget(hold) {}
            self.held.fetch_sub(1, Relaxed);
        }
        before
    }

    /// `hold` is lost or past its time, and has no holder any more: the waiters ask anew. Returns
    /// the phase until now.
    pub(super) fn over(self: &Arc<Self>, hold: &Arc<Hold>) -> Phase {
        let before = self.end(hold);
        self.change(&hold.key, |queue, _| queue.over(hold));
        before
    }

    /// The release of `hold`, for which another process waited, was answered or cannot be sent.
    pub(super) fn yielded(self: &Arc<Self>, hold: &Arc<Hold>) {
        self.change(&hold.key, |queue, _| queue.yielded(hold));
    }

    /// The shard has no record of `hold` any more. Its unanswered requests must not make one.
    pub(super) fn lost(self: &Arc<Self>, hold: &Arc<Hold>) {
        if self.over(hold) == Phase::Held && hold.in_flight.lock().is_in_doubt() {
            self.releases.send(hold, false);
        }
    }

    /// The record of `nonce` was taken from this process by force.
    pub(super) fn taken(self: &Arc<Self>, key: &LockKey, nonce: Nonce) {
        let table = self.table(key).lock();
        let hold = table.get(key).and_then(|queue| queue.held().cloned());
        drop(table);
        if let Some(hold) = hold.filter(|hold| hold.nonce == nonce) {
            self.lost(&hold);
        }
    }

    /// The holds of this process at the shard of `renewer`.
    pub(super) fn held_at(&self, renewer: &LeaseRenewer) -> Vec<Arc<Hold>> {
        let mut found = Vec::new();
        for table in &self.tables {
            let table = table.lock();
            let held = table.values().filter_map(LocalQueue::held);
            found.extend(held.filter(|hold| hold.is_at(renewer)).cloned());
        }
        found
    }

    /// The last guard of one holder of `hold` is gone. Returns the effects: the record may be given
    /// back to the shard.
    pub(super) fn released(&self, hold: &Arc<Hold>, now: Instant) -> Option<Outcome> {
        let released = self.step(&hold.key, now, |queue| queue.released(hold));
        released.map(|((), due)| due)
    }

    /// It is time to tend `hold`, which has no holder: returns until when it may be kept, if it
    /// still is.
    pub(super) fn idle(self: &Arc<Self>, hold: &Arc<Hold>) -> Option<Instant> {
        let ended = |queue: &mut KeyQueue, now| {
            let until = hold.idle_until().filter(|_| queue.holds(hold))?;
            if until <= now {
                queue.tired();
            }
            Some(until)
        };
        self.change(&hold.key, ended).flatten()
    }

    /// Dismisses all waiters; records without a holder go back.
    pub(super) fn close(self: &Arc<Self>) {
        self.closed.store(true, Release);
        for table in &self.tables {
            let keys: Vec<LockKey> = table.lock().keys().cloned().collect();
            for key in keys {
                let dismissed = self.change(&key, |queue, _| queue.dismiss());
                for waiter in dismissed.into_iter().flatten() {
                    waiter.refuse(AcquireError::Closed);
                }
            }
        }
    }

    /// None once the engine is gone and only its last requests are still answered.
    pub(super) fn routing(&self) -> Option<Arc<Routing>> {
        self.routing.get().and_then(Weak::upgrade)
    }

    fn linger(&self, key: &LockKey) -> Option<Duration> {
        if self.sharing.linger.is_empty() || self.closed.load(Acquire) {
            return None;
        }
        self.sharing.linger.get(key.namespace()).copied()
    }

    fn table(&self, key: &LockKey) -> &Mutex<HashMap<LockKey, KeyQueue>> {
        &self.tables[key.slot().index() % TABLES]
    }
}

impl fmt::Debug for LocalQueues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Lines")
            .field("held", &self.held())
            .finish_non_exhaustive()
    }
}

/// The answer to a caller that asks once while this process has the lock.
fn held_by(hold: &Hold, now: Instant) -> AcquireError {
    AcquireError::Held {
        holder: hold.terms.label.clone(),
        remaining: hold.deadline().since(now),
    }
}
