//! The local queue: for each key in use, its holder and its waiters in this process, first come,
//! first served. Sends nothing itself: an [`Authority`] does.
//!
//! ```text
//! join ─► rules: LocalQueue ─► Lease::request ┄► granted ─► deliver ─► guard ─► released ─► the next
//! ```
//!
//! | file | content |
//! |---|---|
//! | `authority.rs` | the seam: what grants locks to this process |
//! | `lease.rs` | one acquisition: tokens, deadline, phase |
//! | `rules.rs` | one key's local queue: pure |
//! | `record.rs` | how far a record is handed on: pure |
//! | `table.rs` | the local queues of some keys |
//! | `shares.rs` | which local queue an acquisition of a share takes |
//! | `terms.rs` | the terms of a lock |
//! | `tokens.rs` | the fencing tokens that came with a grant |
//! | `join.rs` | taking a place, waiting there, leaving it |
//! | `answers.rs` | the authority's answers |
//! | `deliver.rs` | the next grant, to its waiters |
//! | `grant.rs` | one holder's time with a lease |
//! | `guard.rs` | the holder's side of a grant |
//! | `detached.rs` | a held lock whose holder is outside of this process |
//! | `owner.rs` | re-entry |
//! | `waiting.rs` | the reason why an acquisition waits, for an observer |
//! | `events.rs` | requests about grants, and their answers, as debug events |

mod answers;
mod authority;
mod deliver;
mod detached;
pub(crate) mod events;
mod grant;
mod guard;
mod join;
mod lease;
mod owner;
mod record;
mod rules;
mod shares;
mod table;
mod terms;
mod tokens;
mod waiting;

#[cfg(test)]
mod tests;

use std::{
    array, fmt,
    ops::Deref,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
    time::Duration,
};

use hashbrown::HashMap;

use super::AcquireError;
use crate::{
    clock::{Clock, Instant},
    driver::Context,
    ids::{ClientId, Nonce},
    limits::{HANDOFF_FOR, HANDOFF_MAX},
    name::LockKey,
    sync::Mutex,
};
pub(crate) use answers::{Answer, Judged};
pub use authority::LiveReplicas;
pub(crate) use authority::{Authority, Flushing, Lease, Receiver, Releasing};
use deliver::LocalGrant;
pub use detached::{DetachedLease, LeaseRef};
pub use guard::Guard;
pub(crate) use join::{Joined, Waiter};
pub(crate) use lease::{LeaseState, Phase, Replica};
pub use owner::Owner;
use rules::{Effects, LocalQueue, Policy};
use table::{At, Table};
use terms::LeaseView;
pub(crate) use terms::Terms;
pub(crate) use tokens::Tokens;
pub use waiting::{WaitObserver, Waiting};

/// Tables that the local queues are spread over, by slot, so that no key waits for another's.
const TABLES: usize = 64;

type KeyQueue = LocalQueue<Arc<dyn Lease>, Waiter>;

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
pub(crate) struct LocalQueues {
    clock: Arc<dyn Clock>,
    client: ClientId,
    sharing: Sharing,
    closed: AtomicBool,
    /// Names the local queues of shares.
    shares: AtomicU64,
    tables: [Mutex<Table>; TABLES],
}

/// The local queues and their authority, as handles of the engine, waiters, and guards share them: the
/// last of these closes both.
pub(crate) struct Handle {
    queues: Arc<LocalQueues>,
    authority: Arc<dyn Authority>,
}

impl Handle {
    /// Of `queues`, whose requests `authority` grants.
    pub(crate) fn new(queues: Arc<LocalQueues>, authority: Arc<dyn Authority>) -> Arc<Self> {
        Arc::new(Self { queues, authority })
    }

    /// As [`Authority::flush`].
    pub(crate) fn flush(&self, grace: Duration) -> Flushing {
        self.authority.flush(grace)
    }
}

impl Deref for Handle {
    type Target = LocalQueues;

    fn deref(&self) -> &LocalQueues {
        &self.queues
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
        self.authority.shut_down();
    }
}

/// Closes the local queues at the end of its task.
struct ClosesWhenDropped(Arc<LocalQueues>);

impl Drop for ClosesWhenDropped {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The effects of a change.
struct Outcome {
    effects: Effects<Arc<dyn Lease>, Waiter, AcquireError>,
    turn: Option<LocalGrant>,
    beside: Vec<LocalGrant>,
}

impl LeaseView for Arc<dyn Lease> {
    type Id = Nonce;

    fn id(&self) -> Nonce {
        self.state().nonce
    }

    fn terms(&self) -> &Terms {
        &self.state().terms
    }

    fn is_held(&self, now: Instant) -> bool {
        self.state().is_held(now)
    }
}

impl LocalQueues {
    /// The local queues of a process. They dismiss all waiters when told to stop, or when the runtime
    /// ends.
    pub(crate) fn start(client: ClientId, sharing: Sharing, around: &Context) -> Arc<Self> {
        let queues = Arc::new(Self {
            clock: around.clock.clone(),
            client,
            sharing,
            closed: AtomicBool::new(false),
            shares: AtomicU64::new(0),
            tables: array::from_fn(|_| Mutex::default()),
        });
        let closes = ClosesWhenDropped(queues.clone());
        let stop = around.stop.clone();
        around.tasks.spawn(async move {
            let _closes = closes;
            stop.cancelled().await;
        });
        queues
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Changes `key`'s local queue, if it has one, and performs the effects.
    fn change<'a, T>(
        &self,
        at: impl Into<At<'a>>,
        change: impl FnOnce(&mut KeyQueue, Instant) -> T,
    ) -> Option<T> {
        let now = self.now();
        let (changed, due) = self.step(at.into(), now, |queue| change(queue, now))?;
        self.perform(due);
        Some(changed)
    }

    /// Changes `key`'s local queue, if it has one, and returns the effects.
    fn step<T>(
        &self,
        at: At<'_>,
        now: Instant,
        change: impl FnOnce(&mut KeyQueue) -> T,
    ) -> Option<(T, Outcome)> {
        let mut table = self.table(at.key).lock();
        let queue = table.get(at)?;
        let changed = change(queue);
        let due = self.next_effects(at, queue, now);
        if queue.is_empty() {
            table.remove(at);
        }
        Some((changed, due))
    }

    /// The effects. Leases and owners learn of them before any other task can look at this local
    /// queue.
    fn next_effects(&self, at: At<'_>, queue: &mut KeyQueue, now: Instant) -> Outcome {
        // A share is not kept: its queue is gone with its holders.
        let linger = self.linger(at.key).filter(|_| at.share == 0);
        let policy = Policy {
            handoff: self.sharing.handoff,
            lingers: linger.is_some(),
        };
        let mut effects = queue.next_effects(now, policy, |first, terms, tokens, callers| {
            let authority = &first.handle.authority;
            authority.begin(at.key, terms, tokens, callers)
        });
        if let (Some(lease), Some(linger)) = (&effects.linger, linger)
            && lease.state().idle_until().is_none()
        {
            let until = (now + linger).min(lease.state().deadline());
            lease.state().leave_idle(until);
            lease.clone().keep_idle(until);
        }
        let turn = effects
            .grant
            .take()
            .map(|granted| LocalGrant::of(granted, queue, now));
        let beside = std::mem::take(&mut effects.beside).into_iter();
        let beside = beside.map(|granted| LocalGrant::of(granted, queue, now));
        Outcome {
            beside: beside.collect(),
            effects,
            turn,
        }
    }

    /// Performs the effects.
    fn perform(&self, outcome: Outcome) {
        let Outcome {
            effects,
            turn,
            beside,
        } = outcome;
        if let Some(lease) = effects.give_back {
            lease.release_in_background(effects.yields);
        }
        if let Some(lease) = effects.abandon {
            lease.abandon();
        }
        if let Some(lease) = effects.ask {
            lease.request();
        }
        for grant in turn.into_iter().chain(beside) {
            grant.deliver();
        }
        for (waiter, refusal) in effects.refused {
            waiter.refuse(refusal);
        }
        if let Some((lease, waiters)) = effects.busy {
            let refusal = held_by(lease.state(), self.now());
            for waiter in waiters {
                waiter.refuse(refusal.clone());
            }
        }
    }

    /// The last guard of one holder of `lease` is gone. Returns the effects: it may be given back.
    fn released(&self, lease: &LeaseState, now: Instant) -> Option<Outcome> {
        let released = self.step(lease.into(), now, |queue| queue.released(lease.nonce));
        released.map(|((), due)| due)
    }

    /// The acquisitions in use, or kept.
    fn held(&self) -> Vec<Arc<dyn Lease>> {
        let mut found = Vec::new();
        for table in &self.tables {
            let table = table.lock();
            found.extend(table.all().filter_map(LocalQueue::held).cloned());
        }
        found
    }

    /// The record of `nonce` was taken from this process by force.
    pub(crate) fn taken(&self, key: &LockKey, nonce: Nonce) {
        let table = self.table(key).lock();
        let lease = table.find(key, nonce, LocalQueue::held);
        drop(table);
        if let Some(lease) = lease.filter(|lease| lease.has(nonce)) {
            lease.taken();
        }
    }

    /// Dismisses all waiters; records without a holder go back.
    pub(crate) fn close(&self) {
        self.closed.store(true, Release);
        for table in &self.tables {
            let places = table.lock().places();
            for (key, share) in places {
                let at = At { key: &key, share };
                let dismissed = self.change(at, |queue, _| queue.dismiss());
                for waiter in dismissed.into_iter().flatten() {
                    waiter.refuse(AcquireError::Closed);
                }
            }
        }
    }

    fn linger(&self, key: &LockKey) -> Option<Duration> {
        if self.sharing.linger.is_empty() || self.closed.load(Acquire) {
            return None;
        }
        self.sharing.linger.get(key.namespace()).copied()
    }

    fn table(&self, key: &LockKey) -> &Mutex<Table> {
        &self.tables[key.slot().index() % TABLES]
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queues.fmt(formatter)
    }
}

impl fmt::Debug for LocalQueues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LocalQueues")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// The answer to a caller that asks once while this process has the lock.
fn held_by(lease: &LeaseState, now: Instant) -> AcquireError {
    AcquireError::Held {
        holder: lease.terms.label.clone(),
        remaining: lease.deadline().since(now),
        ahead: None,
    }
}
