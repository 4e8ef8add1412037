//! The locks of callers that this coordinator goes on with.
//!
//! The record at the shard ends with the caller's lease: only a renewal by the caller renews it, here
//! or at another coordinator. So a lock that ends here is dropped without a release.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use hashbrown::{HashMap, hash_map::Entry};
use parking_lot::Mutex;
use ringfence_api::{Error, Reason};
use ringfence_client::{
    Client, Clock, DetachedLease, Instant, LeaseRef, LockMode, Nonce, ReleaseAnswer,
    limits::RHO_PERMILLE,
};
use ringfence_coordinator::clock::sleep_until;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::repeats::{Acquisition, Repeats};
use crate::{access::Caller, errors};

/// How long a shard in doubt is asked again about a lock of another coordinator.
const RESUME_FOR: Duration = Duration::from_secs(2);

/// The locks of callers.
pub(crate) struct Holds {
    pub(super) client: Client,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) repeats: Arc<Repeats>,
    table: Mutex<Table>,
    earlier: Notify,
    empty: Notify,
}

#[derive(Default)]
struct Table {
    held: HashMap<Nonce, Kept>,
    /// The times at which to look at them.
    looks: BTreeSet<(Instant, Nonce)>,
    /// The time until which the task sleeps; none: until it is notified.
    asleep_until: Option<Instant>,
}

/// A lock.
struct Kept {
    lease: Arc<DetachedLease>,
    /// Of its caller.
    _room: Option<OwnedSemaphorePermit>,
    /// For repeats of its request.
    _acquisition: Option<Arc<Acquisition>>,
    /// When to look at it: its end, unless it was renewed since.
    look: Instant,
}

impl Holds {
    /// Holds no lock yet. [`run`](Self::run) must run.
    pub(crate) fn new(client: Client, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            client,
            clock,
            repeats: Arc::default(),
            table: Mutex::default(),
            earlier: Notify::new(),
            empty: Notify::new(),
        })
    }

    /// Keeps `lease` until its end. If two calls took up the same lock, the first one's stays.
    pub(super) fn add(
        &self,
        lease: DetachedLease,
        room: Option<OwnedSemaphorePermit>,
        acquisition: Option<Arc<Acquisition>>,
    ) -> Arc<DetachedLease> {
        let (nonce, look) = (lease.nonce(), lease.deadline());
        let mut table = self.table.lock();
        let Table {
            held,
            looks,
            asleep_until,
        } = &mut *table;
        let lease = Arc::new(lease);
        let kept = Kept {
            lease: lease.clone(),
            _room: room,
            _acquisition: acquisition,
            look,
        };
        match held.entry(nonce) {
            Entry::Occupied(first) if first.get().lease.is_held() => {
                return first.get().lease.clone();
            }
            Entry::Occupied(mut ended) => {
                looks.remove(&(ended.get().look, nonce));
                ended.insert(kept);
            }
            Entry::Vacant(place) => {
                place.insert(kept);
            }
        }
        looks.insert((look, nonce));
        let wake = asleep_until.is_none_or(|until| look < until);
        drop(table);
        if wake {
            self.earlier.notify_one();
        }
        lease
    }

    /// Makes a writer a reader at its shard. Returns the lock.
    pub(crate) async fn downgrade(
        &self,
        lease: &LeaseRef,
        caller: &Caller,
    ) -> Result<Arc<DetachedLease>, Error> {
        if !matches!(lease.mode, LockMode::Read | LockMode::Write) {
            let limit = "the handle of a writer";
            return Err(Error::invalid("handle", "that of another mode", limit));
        }
        let held = self.renew(lease, caller).await?;
        match held.downgrade().await {
            Ok(()) => Ok(held),
            Err(_) => {
                self.remove(lease.nonce);
                Err(lost())
            }
        }
    }

    /// Renews the lock at its shard, for `caller`. Returns the lock.
    pub(crate) async fn renew(
        &self,
        lease: &LeaseRef,
        caller: &Caller,
    ) -> Result<Arc<DetachedLease>, Error> {
        if let Some(held) = self.get(lease.nonce) {
            // Another coordinator may have downgraded it.
            let renewed = match lease.mode {
                LockMode::Read if held.reference().mode == LockMode::Write => {
                    held.downgrade().await
                }
                _ => held.renew().await,
            };
            if renewed.is_ok() {
                return Ok(held);
            }
            // Another coordinator may have renewed it.
            self.remove(lease.nonce);
        }
        if lease.hold_for.is_some_and(|hold_for| hold_for.is_zero()) {
            return Err(lost());
        }
        caller.may_ask()?;
        let resumed = self.client.resume(lease, RESUME_FOR).await;
        let Some(resumed) = resumed.map_err(|error| errors::lock(&error))? else {
            caller.asked_in_vain();
            return Err(lost());
        };
        Ok(self.add(resumed, None, None))
    }

    /// Releases the lock, for `caller`. It may be one of another coordinator.
    pub(crate) async fn release(
        &self,
        lease: &LeaseRef,
        caller: &Caller,
    ) -> Result<ReleaseAnswer, Error> {
        if let Some(held) = self.remove(lease.nonce)
            && held.is_held()
        {
            return Ok(held.release().await);
        }
        caller.may_ask()?;
        let released = self.client.release(lease).await;
        let released = released.map_err(|error| errors::lock(&error))?;
        if released != ReleaseAnswer::Held {
            caller.asked_in_vain();
        }
        Ok(released)
    }

    fn get(&self, nonce: Nonce) -> Option<Arc<DetachedLease>> {
        let table = self.table.lock();
        table.held.get(&nonce).map(|kept| kept.lease.clone())
    }

    fn remove(&self, nonce: Nonce) -> Option<Arc<DetachedLease>> {
        let mut table = self.table.lock();
        let kept = table.held.remove(&nonce);
        if let Some(Kept { look, .. }) = &kept {
            table.looks.remove(&(*look, nonce));
        }
        let is_empty = table.held.is_empty();
        drop(table);
        if is_empty {
            self.empty.notify_waiters();
        }
        kept.map(|kept| kept.lease)
    }

    /// Drops locks whose leases have ended, for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let next = {
                let mut table = self.table.lock();
                table.asleep_until = table.looks.first().map(|(ends, _)| *ends);
                table.asleep_until
            };
            match next {
                None => self.earlier.notified().await,
                Some(ends) => tokio::select! {
                    biased;
                    () = self.earlier.notified() => {}
                    () = sleep_until(&*self.clock, ends) => {}
                },
            }
            self.look(self.clock.now());
        }
    }

    fn look(&self, now: Instant) {
        let mut ended = Vec::new();
        let mut table = self.table.lock();
        while let Some((at, nonce)) = table.looks.first().copied()
            && at <= now
        {
            table.looks.pop_first();
            let Table { held, looks, .. } = &mut *table;
            match held.get_mut(&nonce) {
                Some(kept) if kept.lease.is_held() => {
                    kept.look = kept.lease.deadline();
                    looks.insert((kept.look, nonce));
                }
                Some(_) => ended.extend(held.remove(&nonce)),
                None => {}
            }
        }
        let is_empty = table.held.is_empty();
        drop(table);
        // Not under the lock of the table.
        drop(ended);
        if is_empty {
            self.empty.notify_waiters();
        }
    }

    /// Waits until no lock is held.
    pub(crate) async fn none_held(&self) {
        loop {
            let empty = self.empty.notified();
            tokio::pin!(empty);
            empty.as_mut().enable();
            if self.table.lock().held.is_empty() {
                return;
            }
            empty.await;
        }
    }

    /// Drops all locks, without their release: their callers may rely on them for the rest of their
    /// leases. Returns their number.
    pub(crate) fn forget(&self) -> usize {
        let table = std::mem::take(&mut *self.table.lock());
        table.held.len()
    }
}

/// The time that a caller may rely on: less than is left, since its clock may be slower than this one.
pub(crate) fn valid_for(lease: &DetachedLease) -> Duration {
    let left = lease.remaining();
    left - left * RHO_PERMILLE / 1000
}

fn lost() -> Error {
    let message = "the lock is not held any more: it was released, or its lease has ended";
    Error::new(Reason::LockLost, message)
}
