//! What the local queue needs from the system that grants locks between processes.
//!
//! ```text
//! LocalQueues ── begin, request, keep, release, abandon ─► Authority, Lease
//! LocalQueues ◄─ granted, waits, refused, contended, over ── Authority
//! ```
//!
//! Today the shards of the ring are the only authority.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use ringfence_ring::ShardId;

use super::{
    super::{AcquireError, ReleaseAnswer},
    lease::LeaseState,
    terms::Terms,
};
use crate::{clock::Instant, name::LockKey, shard::QueuedGrant};

/// Grants locks to this process.
pub(crate) trait Authority: fmt::Debug + Send + Sync + 'static {
    /// A request for `key` on `terms`, for this many tokens, not sent yet. With `queues` it takes a
    /// place among the requests of other processes; otherwise it is answered at once.
    fn begin(
        &self,
        key: &LockKey,
        terms: Terms,
        tokens: u32,
        queues: bool,
    ) -> Result<Arc<dyn Lease>, AcquireError>;

    /// The last handle is gone: sends what is left to release, if other processes can see it.
    fn shut_down(&self);
}

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
