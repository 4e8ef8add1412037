//! The work that a session waits for.

use std::{sync::Arc, time::Duration};

use futures_util::future::{AbortHandle, BoxFuture, FutureExt, abortable, join_all};
use hashbrown::HashMap;
use parking_lot::Mutex;
use ringfence_api::{Error, v1::AcquireRequest};
use ringfence_client::{DetachedLease, LeaseRef, ReleaseAnswer, Waiting};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until, timeout},
};

use super::Shared;
use crate::{
    access::Caller,
    deadline::Deadline,
    locks::{self, Asked},
};

/// Something that has happened.
pub(super) enum Event {
    /// The ask for a lock is answered.
    Granted(u64, Result<Arc<DetachedLease>, Error>),
    /// The ask for a lock was taken back.
    TakenBack,
    /// The ask for a release is answered.
    Released(u64, Result<ReleaseAnswer, Error>),
    /// The ask for a downgrade is answered.
    Downgraded(u64, Result<Arc<DetachedLease>, Error>),
    /// Another caller waits for the lock of an ask, or the lock has ended.
    Contended(u64, Arc<DetachedLease>),
    /// The lock of an ask has ended.
    Ended(u64),
    /// All shards have answered renewals, or it took too long.
    Renewed,
}

pub(super) type Work = BoxFuture<'static, Event>;

/// The reasons to wait that are not told yet: one per ask.
#[derive(Default)]
pub(super) struct Reasons {
    latest: Mutex<HashMap<u64, Waiting>>,
    pub(super) some: Notify,
}

impl Reasons {
    pub(super) fn take(&self) -> HashMap<u64, Waiting> {
        std::mem::take(&mut *self.latest.lock())
    }
}

/// Acquires a lock.
pub(super) fn acquire(
    shared: Arc<Shared>,
    id: u64,
    caller: Arc<Caller>,
    (ask, tokens): (AcquireRequest, u32),
    lease: Duration,
    reasons: Arc<Reasons>,
) -> (Work, AbortHandle) {
    let observe = move |waiting| {
        reasons.latest.lock().insert(id, waiting);
        reasons.some.notify_one();
    };
    let granted = async move {
        let asked = Asked {
            caller: &caller,
            ask: &ask,
            tokens,
            lease,
            deadline: Deadline::default(),
            observe: Some(Box::new(observe)),
        };
        locks::acquire(&shared.holds, &shared.stopping, asked).await
    };
    unless_taken_back(id, granted.boxed())
}

/// Goes on with a lock, if there is room for one more at its caller.
pub(super) fn resume(
    shared: Arc<Shared>,
    id: u64,
    caller: Arc<Caller>,
    lease: LeaseRef,
) -> Result<(Work, AbortHandle), Error> {
    let room = caller.room()?;
    let resumed = async move {
        let _room = room;
        shared.holds.renew(&lease, &caller).await
    };
    Ok(unless_taken_back(id, resumed.boxed()))
}

fn unless_taken_back(
    id: u64,
    granted: BoxFuture<'static, Result<Arc<DetachedLease>, Error>>,
) -> (Work, AbortHandle) {
    let (granted, abort) = abortable(granted);
    let work = granted.map(move |granted| match granted {
        Ok(granted) => Event::Granted(id, granted),
        Err(_) => Event::TakenBack,
    });
    (work.boxed(), abort)
}

/// Releases a lock.
pub(super) fn release(shared: Arc<Shared>, id: u64, caller: Arc<Caller>, lease: LeaseRef) -> Work {
    let released = async move { Event::Released(id, shared.holds.release(&lease, &caller).await) };
    released.boxed()
}

/// Makes a writer a reader.
pub(super) fn downgrade(
    shared: Arc<Shared>,
    id: u64,
    caller: Arc<Caller>,
    lease: LeaseRef,
) -> Work {
    let downgraded =
        async move { Event::Downgraded(id, shared.holds.downgrade(&lease, &caller).await) };
    downgraded.boxed()
}

/// Waits until another caller waits for a lock.
pub(super) fn watch_others(id: u64, lease: Arc<DetachedLease>) -> Work {
    async move {
        lease.contended().await;
        Event::Contended(id, lease)
    }
    .boxed()
}

/// Waits for the end of a lock.
pub(super) fn watch(id: u64, lease: Arc<DetachedLease>) -> Work {
    async move {
        lease.lost().await;
        Event::Ended(id)
    }
    .boxed()
}

/// Renews locks, at `at`, for at most `within`.
pub(super) fn renew(locks: Vec<Arc<DetachedLease>>, at: Instant, within: Duration) -> Work {
    async move {
        sleep_until(at).await;
        let renewals = join_all(locks.iter().map(|lease| lease.renew()));
        let _ = timeout(within, renewals).await;
        Event::Renewed
    }
    .boxed()
}
