//! What the local queue needs from the system that grants locks between processes.
//!
//! ```text
//! LocalQueues ── begin, request, keep, release, abandon ─► Authority, Lease
//! LocalQueues ◄─ granted, waits, refused, contended, over ── Receiver ── Lease
//! ```
//!
//! The shards of the ring are an authority. So are the replicas of a lock: each of them is a lease at a shard, whose
//! receiver is the replicated lease. So are coordinators, for a process that reaches no shard.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use ringfence_ring::ShardId;

use super::{
    super::{AcquireError, ReleaseAnswer},
    answers::{Answer, Judged},
    lease::LeaseState,
    terms::Terms,
    waiting::Waiting,
};
use crate::{clock::Instant, ids::Nonce, name::LockKey, shard::QueuedGrant};

/// Grants locks to this process.
pub(crate) trait Authority: fmt::Debug + Send + Sync + 'static {
    /// A request for `key` on `terms`, for this many tokens, not sent yet. For `callers` that wait it takes a place among
    /// the requests of other processes; for none it is answered at once.
    fn begin(
        &self,
        key: &LockKey,
        terms: Terms,
        tokens: u32,
        callers: u32,
    ) -> Result<Arc<dyn Lease>, AcquireError>;

    /// Waits until no release is without an answer, for at most `grace`. Returns how many are left; their locks expire.
    fn flush(&self, grace: Duration) -> Flushing;

    /// The last handle is gone: sends what is left to release, if other processes can see it.
    fn shut_down(&self);
}

/// The replicas of a lock, and those of them that have a record of its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveReplicas {
    /// Those whose record certainly has not expired.
    pub live: u32,
    /// All of them: 1, 3 or 5.
    pub all: u32,
}

/// Receives what comes of a lease: the answers to its requests, and what the authority sends on its own. Any of them may
/// be late, or come twice; it changes nothing if the lease is over.
pub(crate) trait Receiver: fmt::Debug + Send + Sync + 'static {
    /// The request was granted.
    fn granted(&self, lease: &LeaseState, answer: Answer) -> Judged;

    /// The request waits, for the time being. `dismissed`: that is an answer for waiters that ask once. Returns for
    /// how many callers the request is to queue, if it is still wanted.
    fn waits(
        &self,
        lease: &LeaseState,
        because: &AcquireError,
        dismissed: bool,
        waiting: &dyn Fn() -> Waiting,
    ) -> Option<u32>;

    /// The request is refused.
    fn refused(&self, lease: &LeaseState, refusal: &AcquireError);

    /// Calls `then` if the request is still wanted, and tells it for how many callers the request is to queue. Returns
    /// whether it is wanted.
    fn if_asked(&self, lease: &LeaseState, then: &mut dyn FnMut(u32)) -> bool;

    /// It was renewed, or adopted by another shard; `again`: its record was lost, and is written again.
    fn renewed(&self, lease: &LeaseState, again: bool);

    /// Another process waits for it.
    fn contended(&self, lease: &LeaseState);

    /// Nothing of it counts any more, or its release for another process was answered.
    fn over(&self, lease: &LeaseState);

    /// It is time to look after it, while it has no holder: returns until when it may be kept, if it still is.
    fn idle(&self, lease: &LeaseState) -> Option<Instant>;
}

/// The number of releases without an answer.
pub(crate) type Flushing = Pin<Box<dyn Future<Output = usize> + Send>>;

/// The outcome of a release.
pub(crate) type Releasing = Pin<Box<dyn Future<Output = ReleaseAnswer> + Send>>;

/// One request of this process, from before it is sent until nothing is left of it; its holders in
/// this process have its grant one after the other.
///
/// # Contract
///
/// No method blocks. Each may be called late, and more than once. Nothing is sent for a lease that is
/// over, except its release. A [detached](LeaseState::is_detached) lease is released by
/// [`release`](Self::release) only.
pub(crate) trait Lease: fmt::Debug + Send + Sync + 'static {
    /// The state that holders see.
    fn state(&self) -> &LeaseState;

    /// Whether `nonce` is its nonce, or the nonce of one of its replicas.
    fn has(&self, nonce: Nonce) -> bool {
        self.state().nonce == nonce
    }

    /// The acquisitions at its replicas, in the order of their ranks. None for a lock with one replica.
    fn replica_nonces(&self) -> Vec<Nonce> {
        Vec::new()
    }

    /// Its holder is outside of this process from now on.
    fn detach(&self) {
        self.state().detach();
    }

    /// The reason why it is not granted yet, if there was an answer.
    fn refusal(&self) -> Option<AcquireError> {
        self.state().refusal.lock().clone()
    }

    /// How many of its replicas have it at `now`.
    fn replicas(&self, now: Instant) -> LiveReplicas {
        LiveReplicas {
            live: u32::from(self.state().is_held(now)),
            all: 1,
        }
    }

    /// Sends the request.
    fn request(self: Arc<Self>);

    /// Takes the request back, with a grant that it may have got.
    fn abandon(self: Arc<Self>);

    /// It has no holder, and is kept until `until`.
    fn keep_idle(self: Arc<Self>, until: Instant);

    /// It has a holder again.
    fn keep(self: Arc<Self>);

    /// Renews it at once, unless a renewal is under way: then after that one's answer, if it is still
    /// to be renewed.
    fn renew(self: Arc<Self>);

    /// Ends it here, without a release: another process may go on with it.
    fn leave(self: Arc<Self>);

    /// Ends it, and releases it in the background. If it `yields` to another process, the local queue
    /// is told with the first answer that it is over.
    fn release_in_background(self: Arc<Self>, yields: bool);

    /// Ends it, and releases it. `held`: it was certainly held until now. Dropping the future goes on
    /// in the background. None if it had ended before: the local queue is told that it is over.
    fn release(self: Arc<Self>, yields: bool, held: bool) -> Option<Releasing>;

    /// A late grant that `shard` sent on its own.
    fn pushed(self: Arc<Self>, shard: &ShardId, grant: &QueuedGrant);

    /// It was taken from this process by force.
    fn taken(self: Arc<Self>);

    /// The clock of `shard` stepped.
    fn clock_stepped(&self, shard: &ShardId);
}
