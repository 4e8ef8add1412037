//! The authority's answers to requests, and what it sends on its own. Any of them may be late, or
//! come twice: each names its lease, and changes nothing if that is over.

use std::time::Duration;

use ringfence_ring::ShardId;

use super::{
    super::AcquireError, At, KeyQueue, LeaseState, LocalQueues, Receiver, Waiting, events,
    rules::LocalQueue, tokens::Tokens,
};
use crate::{
    clock::Instant,
    name::LockKey,
    shard::{LockMode, Notification},
};

/// A request was granted.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) tokens: Tokens,
    /// Another process waits.
    pub(crate) contended: bool,
    /// The time when the answered request left.
    pub(crate) sent: Instant,
    /// The grant came late, and holds for this long without a renewal.
    pub(crate) claim: Option<Duration>,
}

/// The use of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// The lock is held from now on.
    Held,
    /// Too late to be believed.
    TooLate,
    /// The local queue does not ask for it any more, or has it already.
    Known,
}

impl Receiver for LocalQueues {
    fn granted(&self, lease: &LeaseState, answer: Answer) -> Judged {
        let Answer {
            tokens,
            contended,
            sent,
            claim,
        } = answer;
        let judged = self.change(lease, |queue, now| {
            if queue.is_asking(lease.nonce) {
                lease.set_tokens_granted(tokens.left());
                if !lease.granted(tokens.first(), sent, now, claim) {
                    return Judged::TooLate;
                }
                if contended {
                    lease.contend();
                }
                queue.granted(tokens, contended, now);
                return Judged::Held;
            }
            if queue.holds(lease.nonce) && claim.is_none() {
                // A turn came before this answer: the answer extends that grant, from its own send.
                if lease.token() == tokens.first() {
                    lease.renewed(sent, now);
                    events::renewed(lease, false, sent, now);
                }
                if contended {
                    queue.contended(now);
                }
            }
            Judged::Known
        });
        judged.unwrap_or(Judged::Known)
    }

    fn waits(
        &self,
        lease: &LeaseState,
        because: &AcquireError,
        dismissed: bool,
        waiting: &dyn Fn() -> Waiting,
    ) -> Option<u32> {
        *lease.refusal.lock() = Some(because.clone());
        let waits = |queue: &mut KeyQueue, _| {
            if !queue.is_asking(lease.nonce) {
                return None;
            }
            let callers = queue.callers();
            let once = match dismissed {
                true => queue.dismiss_once(),
                false => Vec::new(),
            };
            let waiters = queue.waiters().enumerate();
            let observers = waiters.filter_map(|(at, waiter)| Some((at, waiter.observer.clone()?)));
            Some((callers, once, observers.collect::<Vec<_>>()))
        };
        let (callers, once, observers) = self.change(lease, waits).flatten()?;
        if callers > 0 && lease.terms.mode == LockMode::Write {
            self.writer_waits(&lease.key);
        }
        for waiter in once {
            waiter.refuse(because.clone());
        }
        for (before, observer) in observers {
            observer.tell(waiting().behind(before));
        }
        Some(callers)
    }

    fn refused(&self, lease: &LeaseState, refusal: &AcquireError) {
        let dismissed = self.change(lease, |queue, _| {
            let asking = queue.is_asking(lease.nonce);
            asking.then(|| queue.dismiss())
        });
        for waiter in dismissed.flatten().into_iter().flatten() {
            waiter.refuse(refusal.clone());
        }
    }

    fn if_asked(&self, lease: &LeaseState, then: &mut dyn FnMut(u32)) -> bool {
        // Meanwhile nothing is granted.
        let asked = self.change(lease, |queue, _| {
            let asking = queue.is_asking(lease.nonce);
            if asking {
                then(queue.callers());
            }
            asking
        });
        asked.unwrap_or_default()
    }

    fn renewed(&self, _lease: &LeaseState, _again: bool) {}

    fn contended(&self, lease: &LeaseState) {
        lease.contend();
        self.change(lease, |queue, now| {
            if queue.holds(lease.nonce) {
                queue.contended(now);
            }
        });
    }

    fn over(&self, lease: &LeaseState) {
        self.change(lease, |queue, _| queue.over(lease.nonce));
    }

    fn idle(&self, lease: &LeaseState) -> Option<Instant> {
        let ended = |queue: &mut KeyQueue, now| {
            let until = lease.idle_until().filter(|_| queue.holds(lease.nonce))?;
            if until <= now {
                queue.tired();
            }
            Some(until)
        };
        self.change(lease, ended).flatten()
    }
}

impl LocalQueues {
    /// A message from `shard`.
    pub(crate) fn pushed(&self, shard: &ShardId, message: Notification) {
        match message {
            Notification::Granted(grant) => {
                let table = self.table(&grant.key).lock();
                let lease = table.find(&grant.key, grant.nonce, LocalQueue::asking);
                drop(table);
                if let Some(lease) = lease {
                    lease.pushed(shard, &grant);
                }
            }
            Notification::Contended { key, nonce } => {
                for share in [0].into_iter().chain(self.queues_together(&key)) {
                    self.change(At { key: &key, share }, |queue, now| {
                        // It may overtake the answer that gives this process the record.
                        let lease = queue.held().or(queue.asking());
                        if let Some(lease) = lease.filter(|lease| lease.has(nonce)) {
                            lease.state().contend();
                            queue.contended(now);
                        }
                    });
                }
                let detached = self.table(&key).lock().detached.get(&nonce).cloned();
                if let Some(lease) = detached.and_then(|lease| lease.upgrade()) {
                    lease.state().contend();
                }
            }
        }
    }

    /// No other reader comes to those of this process that have `key`: at their shard a writer waits.
    fn writer_waits(&self, key: &LockKey) {
        let readers = self.table(key).lock().readers.get(key).copied();
        if let Some(share) = readers {
            self.change(At { key, share }, |queue, now| {
                if queue.held().is_some() {
                    queue.contended(now);
                }
            });
        }
    }

    /// The queues to which readers and writers of `key` come.
    fn queues_together(&self, key: &LockKey) -> impl Iterator<Item = u64> + use<> {
        let table = self.table(key).lock();
        let queues = [&table.readers, &table.writers].map(|queues| queues.get(key).copied());
        queues.into_iter().flatten()
    }

    /// The clock of `shard` stepped: locks held there may end earlier than their holders believe.
    pub(crate) fn clock_stepped(&self, shard: &ShardId) {
        let held = self.held();
        held.iter().for_each(|lease| lease.clock_stepped(shard));
    }
}
