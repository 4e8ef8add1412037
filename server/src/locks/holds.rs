//! The locks held for callers. A caller renews its lock; otherwise its lease ends, and the lock is
//! released.
//!
//! Two leases protect a lock: the engine renews the record at the shard while this process lives, and
//! the caller renews its lease here. The caller's belief ends before either does.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use hashbrown::{HashMap, hash_map::Entry};
use parking_lot::Mutex;
use ringfence_api::{Error, Reason};
use ringfence_client::{Clock, Guard, Instant, limits::RHO_PERMILLE};
use ringfence_coordinator::{clock::sleep_until, random::Random};
use tokio::sync::Notify;

/// Identifies a held lock: 128 random bits that only its holder knows.
type Handle = u128;

/// The locks held for callers, by handle.
pub(crate) struct Holds {
    clock: Arc<dyn Clock>,
    random: Random,
    table: Mutex<Table>,
    earlier: Notify,
    empty: Notify,
}

#[derive(Default)]
struct Table {
    held: HashMap<Handle, Held>,
    /// The ends of all leases.
    ends: BTreeSet<(Instant, Handle)>,
    /// The time until which the task sleeps; none: until it is notified.
    asleep_until: Option<Instant>,
}

struct Held {
    guard: Guard,
    lease: Duration,
    /// The end of the lease, unless the caller renews it.
    ends: Instant,
}

impl Holds {
    /// Holds no lock yet. [`run`](Self::run) must run.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            clock,
            random: Random::from_os(),
            table: Mutex::default(),
            earlier: Notify::new(),
            empty: Notify::new(),
        })
    }

    /// Holds `guard` until its caller releases it, or does not renew it for `lease`. Returns its
    /// handle, and the time that the caller may rely on.
    pub(crate) fn add(&self, guard: Guard, lease: Duration) -> (Vec<u8>, Duration) {
        let now = self.clock.now();
        let held = Held {
            guard,
            lease,
            ends: now + lease,
        };
        let valid_for = held.valid_for(now);
        let ends = held.ends;
        let mut table = self.table.lock();
        let handle = loop {
            let handle = self.random.id();
            if let Entry::Vacant(place) = table.held.entry(handle) {
                place.insert(held);
                break handle;
            }
        };
        table.ends.insert((ends, handle));
        let wake = table.asleep_until.is_none_or(|until| ends < until);
        drop(table);
        if wake {
            self.earlier.notify_one();
        }
        (handle.to_be_bytes().to_vec(), valid_for)
    }

    /// Renews the lease of `handle`, to its full length. Returns the time that the caller may rely
    /// on.
    pub(crate) fn renew(&self, handle: &[u8]) -> Result<Duration, Error> {
        let handle = parse(handle)?;
        let now = self.clock.now();
        let mut table = self.table.lock();
        let table = &mut *table;
        let held = table.held.get_mut(&handle);
        // A lease that has ended but whose lock is still held here has no other holder.
        let held = held.filter(|held| held.guard.is_held()).ok_or_else(lost)?;
        table.ends.remove(&(held.ends, handle));
        held.ends = now + held.lease;
        table.ends.insert((held.ends, handle));
        Ok(held.valid_for(now))
    }

    /// Takes the lock of `handle` out, to be released.
    pub(crate) fn take(&self, handle: &[u8]) -> Result<Option<Guard>, Error> {
        let handle = parse(handle)?;
        let mut table = self.table.lock();
        let held = table.held.remove(&handle);
        if let Some(held) = &held {
            table.ends.remove(&(held.ends, handle));
        }
        let is_empty = table.held.is_empty();
        drop(table);
        if is_empty {
            self.empty.notify_waiters();
        }
        Ok(held.map(|held| held.guard))
    }

    /// Releases locks whose leases have ended, for ever.
    pub(crate) async fn run(&self) {
        loop {
            let next = {
                let mut table = self.table.lock();
                table.asleep_until = table.ends.first().map(|(ends, _)| *ends);
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
            self.expire(self.clock.now());
        }
    }

    fn expire(&self, now: Instant) {
        let mut expired = Vec::new();
        let mut table = self.table.lock();
        while let Some((ends, handle)) = table.ends.first().copied()
            && ends <= now
        {
            table.ends.pop_first();
            expired.extend(table.held.remove(&handle));
        }
        let is_empty = table.held.is_empty();
        drop(table);
        // The drop of a guard releases its lock: not under the lock of the table.
        drop(expired);
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

    /// Lets go of all locks without their release: their callers may rely on them for the rest of
    /// their leases. The records at the shards last longer. Returns their number.
    pub(crate) fn forget(&self) -> usize {
        let mut table = self.table.lock();
        table.ends.clear();
        let held = std::mem::take(&mut table.held);
        let count = held.len();
        held.into_values()
            .for_each(|held| std::mem::forget(held.guard));
        count
    }
}

impl Held {
    /// The time that the caller may rely on, at `now`: less than is left, since its clock may be
    /// slower than this one.
    fn valid_for(&self, now: Instant) -> Duration {
        let left = self.ends.since(now).min(self.guard.remaining());
        left - left * RHO_PERMILLE / 1000
    }
}

fn parse(handle: &[u8]) -> Result<Handle, Error> {
    match handle.try_into() {
        Ok(bytes) => Ok(Handle::from_be_bytes(bytes)),
        Err(_) => {
            let value = format!("{} bytes long", handle.len());
            Err(Error::invalid("handle", value, "the handle of a grant"))
        }
    }
}

fn lost() -> Error {
    let message = "the lock is not held any more: it was released, or its lease has ended";
    Error::new(Reason::LockLost, message)
}
