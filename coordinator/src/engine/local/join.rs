//! Taking a place in a key's local queue, waiting there, leaving it.

use std::sync::{Arc, atomic::Ordering::Acquire};

use tokio::sync::oneshot;

use super::{
    super::AcquireError, At, Guard, Handle, Lease, Owner, Terms, WaitObserver, Waiting,
    grant::Grant, held_by, rules::WaiterId,
};
use crate::{
    clock::Instant,
    limits::{LINE_MAX, RECHECK_MAX, REENTRY_MAX},
    name::LockKey,
    shard::{LockKind, LockMode},
};

/// A waiter in this process.
pub(crate) struct Waiter {
    pub(super) handle: Arc<Handle>,
    pub(crate) owner: Option<Owner>,
    pub(crate) observer: Option<WaitObserver>,
    /// Others in this process came first.
    is_behind: bool,
    events: oneshot::Sender<Result<Guard, AcquireError>>,
}

/// A place in a local queue. Dropping it leaves the local queue, and releases a lock that was granted meanwhile.
pub(crate) struct Place<'a> {
    queues: &'a Arc<Handle>,
    at: At<'a>,
    id: WaiterId,
    events: oneshot::Receiver<Result<Guard, AcquireError>>,
    answered: bool,
}

/// The result of joining.
pub(crate) enum Joined<'a> {
    /// The owner has the lock already.
    Entered(Guard),
    Waits(Place<'a>),
}

impl Handle {
    /// Takes a place at the end of `key`'s local queue, on `terms`; or enters the lock that its owner has.
    /// With `once` it takes the first answer, and waits for no other.
    pub(crate) fn join<'a>(
        self: &'a Arc<Self>,
        key: &'a LockKey,
        mut terms: Terms,
        once: bool,
        (owner, observer): (Option<&Owner>, Option<&WaitObserver>),
    ) -> Result<Joined<'a>, AcquireError> {
        let now = self.now();
        // Declared before the table, which it locks when it is dropped: also if what follows panics.
        let place;
        let mut table = self.table(key).lock();
        if self.closed.load(Acquire) {
            return Err(AcquireError::Closed);
        }
        let owner = owner.filter(|_| terms.mode.kind() != LockKind::Semaphore);
        if let Some(guard) = self.enter(key, owner, terms.mode, now)? {
            return Ok(Joined::Entered(guard));
        }
        terms.share = self.place_in(&mut table, key, &terms, now);
        let at = At {
            key,
            share: terms.share,
        };
        let queue = table.entry(at);
        if queue.len() >= LINE_MAX {
            return Err(AcquireError::TooManyWaiters {
                retry_after: RECHECK_MAX,
            });
        }
        // The waiters were refused, and come first.
        if once
            && let Some(refusal) = queue
                .asking()
                .and_then(|lease| lease.state().refusal.lock().clone())
        {
            return Err(refusal);
        }
        let observer = observer.filter(|_| !once);
        // Another reader has the record at once, and so has anybody once its last holder is done.
        let is_in_use = |lease: &&Arc<dyn Lease>| lease.state().idle_until().is_none();
        let held = queue
            .held()
            .filter(|_| !terms.is_shared())
            .filter(is_in_use);
        let in_the_way = observer.and(held).map(|lease| Waiting::Held {
            holder: lease.state().terms.label.clone(),
            remaining: lease.state().deadline().since(now),
            ahead: Some(queue.len() as u32),
        });
        let is_behind = held.is_some() || queue.waiters().next().is_some();
        let (tell, events) = oneshot::channel();
        let waiter = Waiter {
            handle: self.clone(),
            owner: owner.cloned(),
            observer: observer.cloned(),
            is_behind,
            events: tell,
        };
        let id = queue.join(terms, once, waiter);
        place = Place {
            queues: self,
            at,
            id,
            events,
            answered: false,
        };
        let due = self.next_effects(at, queue, now);
        if queue.is_empty() {
            table.remove(at);
        }
        drop(table);
        self.perform(due);
        if let (Some(observer), Some(waiting)) = (observer, in_the_way) {
            observer.tell(waiting);
        }
        Ok(Joined::Waits(place))
    }

    fn enter(
        self: &Arc<Self>,
        key: &LockKey,
        owner: Option<&Owner>,
        mode: LockMode,
        now: Instant,
    ) -> Result<Option<Guard>, AcquireError> {
        let Some(grant) = owner.and_then(|owner| owner.grant(key, self.client, now)) else {
            return Ok(None);
        };
        match (grant.lease().mode(), mode) {
            (LockMode::Read, LockMode::Write) => return Err(AcquireError::Upgrade),
            (held, asked) if held.kind() != asked.kind() => return Ok(None),
            _ => {}
        }
        match grant.enter() {
            Ok(()) => Ok(Some(Guard::new(grant, self.clone(), false))),
            Err(0) => Ok(None),
            Err(_) => Err(AcquireError::TooManyEntries(REENTRY_MAX)),
        }
    }
}

impl Waiter {
    /// `grant` came at once, or after its shard had refused it. A waiter that has left by now drops the guard, which
    /// releases the lock.
    pub(crate) fn grant(self, grant: Arc<Grant>, was_refused: bool) {
        let has_waited = self.is_behind || was_refused;
        drop(
            self.events
                .send(Ok(Guard::new(grant, self.handle, has_waited))),
        );
    }

    pub(crate) fn refuse(self, refusal: AcquireError) {
        drop(self.events.send(Err(refusal)));
    }
}

impl Place<'_> {
    /// The reason why it is not granted yet.
    pub(crate) fn refusal(&self) -> Option<AcquireError> {
        let mut table = self.queues.table(self.at.key).lock();
        let queue = table.get(self.at)?;
        match queue.held() {
            Some(lease) => Some(held_by(lease.state(), self.queues.now())),
            None => queue.asking()?.refusal(),
        }
    }

    /// Waits for the grant, or for a final refusal.
    pub(crate) async fn turn(&mut self) -> Result<Guard, AcquireError> {
        let answer = (&mut self.events).await;
        self.answered = true;
        answer.unwrap_or(Err(AcquireError::Closed))
    }

    /// An answer that came at the last moment.
    pub(crate) fn late(&mut self) -> Option<Result<Guard, AcquireError>> {
        let answer = self.events.try_recv().ok()?;
        self.answered = true;
        Some(answer)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.queues.change(self.at, |queue, _| queue.leave(self.id));
        }
    }
}
