//! Taking a place in a key's local queue, waiting there, leaving it.

use std::sync::{Arc, atomic::Ordering::Acquire};

use tokio::sync::oneshot;

use super::{
    super::{AcquireError, Guard, Inner, Owner, WaitObserver, grant::Grant},
    LocalQueues, Terms, held_by,
    rules::WaiterId,
};
use crate::{
    clock::Instant,
    limits::{LINE_MAX, RECHECK_MAX, REENTRY_MAX},
    name::LockKey,
};

/// A waiter in this process.
pub(in super::super) struct Waiter {
    pub(in super::super) engine: Arc<Inner>,
    pub(in super::super) owner: Option<Owner>,
    pub(in super::super) observer: Option<WaitObserver>,
    events: oneshot::Sender<Result<Guard, AcquireError>>,
}

/// A place in a local queue. Dropping it leaves the local queue, and releases a lock that was granted meanwhile.
pub(in super::super) struct Place<'a> {
    queues: &'a Arc<LocalQueues>,
    key: &'a LockKey,
    id: WaiterId,
    events: oneshot::Receiver<Result<Guard, AcquireError>>,
    answered: bool,
}

/// The result of joining.
pub(in super::super) enum Joined<'a> {
    /// The owner has the lock already.
    Entered(Guard),
    Waits(Place<'a>),
}

impl LocalQueues {
    /// Takes a place at the end of `key`'s local queue, on `terms`; or enters the lock that its owner has.
    /// With `once` it takes the first answer, and waits for no other.
    pub(in super::super) fn join<'a>(
        self: &'a Arc<Self>,
        key: &'a LockKey,
        terms: Terms,
        once: bool,
        (engine, owner, observer): (&Arc<Inner>, Option<&Owner>, Option<&WaitObserver>),
    ) -> Result<Joined<'a>, AcquireError> {
        let now = self.around.clock.now();
        let mut table = self.table(key).lock();
        if self.closed.load(Acquire) {
            return Err(AcquireError::Closed);
        }
        if let Some(guard) = self.enter(key, engine, owner, now)? {
            return Ok(Joined::Entered(guard));
        }
        let queue = table.entry(key.clone()).or_default();
        if queue.len() >= LINE_MAX {
            return Err(AcquireError::TooManyWaiters {
                retry_after: RECHECK_MAX,
            });
        }
        // The waiters were refused, and come first.
        if once
            && let Some(refusal) = queue
                .asking()
                .and_then(|hold| hold.in_flight.lock().refusal.clone())
        {
            return Err(refusal);
        }
        let observer = observer.filter(|_| !once);
        let in_the_way = observer.and(queue.held()).map(|hold| held_by(hold, now));
        let (tell, events) = oneshot::channel();
        let waiter = Waiter {
            engine: engine.clone(),
            owner: owner.cloned(),
            observer: observer.cloned(),
            events: tell,
        };
        let id = queue.join(terms, once, waiter);
        let due = self.settle(key, queue, now);
        if queue.is_empty() {
            table.remove(key);
        }
        drop(table);
        self.perform(due);
        if let (Some(observer), Some(refusal)) = (observer, in_the_way) {
            self.tell(observer, key, &refusal);
        }
        Ok(Joined::Waits(Place {
            queues: self,
            key,
            id,
            events,
            answered: false,
        }))
    }

    fn enter(
        &self,
        key: &LockKey,
        engine: &Arc<Inner>,
        owner: Option<&Owner>,
        now: Instant,
    ) -> Result<Option<Guard>, AcquireError> {
        let Some(grant) = owner.and_then(|owner| owner.grant(key, self.client, now)) else {
            return Ok(None);
        };
        match grant.enter() {
            Ok(()) => Ok(Some(Guard::new(grant, engine.clone()))),
            Err(0) => Ok(None),
            Err(_) => Err(AcquireError::TooManyEntries(REENTRY_MAX)),
        }
    }

    /// The reason why `key` is not granted yet.
    pub(in super::super) fn refusal(&self, key: &LockKey) -> Option<AcquireError> {
        let table = self.table(key).lock();
        let queue = table.get(key)?;
        match queue.held() {
            Some(hold) => Some(held_by(hold, self.around.clock.now())),
            None => queue.asking()?.in_flight.lock().refusal.clone(),
        }
    }
}

impl Waiter {
    /// A waiter that has left by now drops the guard, which releases the lock.
    pub(super) fn grant(self, grant: Arc<Grant>) {
        drop(self.events.send(Ok(Guard::new(grant, self.engine))));
    }

    pub(super) fn refuse(self, refusal: AcquireError) {
        drop(self.events.send(Err(refusal)));
    }
}

impl Place<'_> {
    /// Waits for the grant, or for a final refusal.
    pub(in super::super) async fn turn(&mut self) -> Result<Guard, AcquireError> {
        let answer = (&mut self.events).await;
        self.answered = true;
        answer.unwrap_or(Err(AcquireError::Closed))
    }

    /// An answer that came at the last moment.
    pub(in super::super) fn late(&mut self) -> Option<Result<Guard, AcquireError>> {
        let answer = self.events.try_recv().ok()?;
        self.answered = true;
        Some(answer)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.queues
                .change(self.key, |queue, _| queue.leave(self.id));
        }
    }
}
