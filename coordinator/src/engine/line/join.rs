//! Taking a place in a key's line, waiting there, leaving it.

use std::sync::{Arc, atomic::Ordering::Acquire};

use tokio::sync::oneshot;

use super::{
    super::{AcquireError, Guard, Inner, Owner, WaitObserver, grant::Grant},
    Lines, Terms, held_by,
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
    told: oneshot::Sender<Result<Guard, AcquireError>>,
}

/// A place in a line. Dropping it leaves the line, and releases a lock that was granted meanwhile.
pub(in super::super) struct Place<'a> {
    lines: &'a Arc<Lines>,
    key: &'a LockKey,
    id: WaiterId,
    told: oneshot::Receiver<Result<Guard, AcquireError>>,
    answered: bool,
}

/// The result of joining.
pub(in super::super) enum Joined<'a> {
    /// The owner has the lock already.
    Entered(Guard),
    Waits(Place<'a>),
}

impl Lines {
    /// Takes a place at the end of `key`'s line, on `terms`; or enters the lock that its owner has.
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
        let line = table.entry(key.clone()).or_default();
        if line.len() >= LINE_MAX {
            return Err(AcquireError::TooManyWaiters {
                retry_after: RECHECK_MAX,
            });
        }
        // The waiters were refused, and come first.
        if once
            && let Some(refusal) = line
                .asking()
                .and_then(|hold| hold.flow.lock().refusal.clone())
        {
            return Err(refusal);
        }
        let observer = observer.filter(|_| !once);
        let in_the_way = observer.and(line.held()).map(|hold| held_by(hold, now));
        let (tell, told) = oneshot::channel();
        let waiter = Waiter {
            engine: engine.clone(),
            owner: owner.cloned(),
            observer: observer.cloned(),
            told: tell,
        };
        let id = line.join(terms, once, waiter);
        let due = self.settle(key, line, now);
        if line.is_empty() {
            table.remove(key);
        }
        drop(table);
        self.perform(due);
        if let (Some(observer), Some(refusal)) = (observer, in_the_way) {
            self.tell(observer, key, &refusal);
        }
        Ok(Joined::Waits(Place {
            lines: self,
            key,
            id,
            told,
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
        let line = table.get(key)?;
        match line.held() {
            Some(hold) => Some(held_by(hold, self.around.clock.now())),
            None => line.asking()?.flow.lock().refusal.clone(),
        }
    }
}

impl Waiter {
    /// A waiter that has left by now drops the guard, which releases the lock.
    pub(super) fn grant(self, grant: Arc<Grant>) {
        drop(self.told.send(Ok(Guard::new(grant, self.engine))));
    }

    pub(super) fn refuse(self, refusal: AcquireError) {
        drop(self.told.send(Err(refusal)));
    }
}

impl Place<'_> {
    /// Waits for the grant, or for a final refusal.
    pub(in super::super) async fn turn(&mut self) -> Result<Guard, AcquireError> {
        let answer = (&mut self.told).await;
        self.answered = true;
        answer.unwrap_or(Err(AcquireError::Closed))
    }

    /// An answer that came at the last moment.
    pub(in super::super) fn late(&mut self) -> Option<Result<Guard, AcquireError>> {
        let answer = self.told.try_recv().ok()?;
        self.answered = true;
        Some(answer)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.lines.change(self.key, |line, _| line.leave(self.id));
        }
    }
}
