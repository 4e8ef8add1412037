//! The requests of this process to all shards.

use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use ringfence_ring::ShardId;

use super::{
    super::local::{Answer, Judged, LocalQueues, Phase, Tokens},
    Releases, Routing,
    search::StaleRoutes,
    shard_lease::ShardLease,
};
use crate::{
    driver::Context,
    ids::{ClientId, Nonce},
    limits::HELD_MAX,
    shard::QueuedGrant,
    sync::Mutex,
};

/// The requests of this process to all shards.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) around: Context,
    pub(crate) releases: Arc<Releases>,
    /// Receives the answers.
    pub(crate) local: Arc<LocalQueues>,
    client: ClientId,
    sequence: AtomicU64,
    held: AtomicUsize,
    /// Requests that an outdated picture of the ring has sent to the wrong shard, and that wait for
    /// a new picture.
    pub(super) stale_routes: Mutex<StaleRoutes>,
    routing: OnceLock<Weak<Routing>>,
}

impl Requests {
    pub(crate) fn new(
        client: ClientId,
        local: Arc<LocalQueues>,
        releases: Arc<Releases>,
        around: &Context,
    ) -> Arc<Self> {
        Arc::new(Self {
            around: around.clone(),
            releases,
            local,
            client,
            sequence: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            stale_routes: Mutex::default(),
            routing: OnceLock::new(),
        })
    }

    /// Routes by `routing` from now on.
    pub(crate) fn start(&self, routing: &Arc<Routing>) {
        let routing = Arc::downgrade(routing);
        self.routing.set(routing).expect("started once");
    }

    /// None once the engine is gone and only its last requests are still answered.
    pub(super) fn routing(&self) -> Option<Arc<Routing>> {
        self.routing.get().and_then(Weak::upgrade)
    }

    /// Requests and records at shards.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// Counts one more lease; the error is how many there are already.
    pub(crate) fn add_one(&self) -> Result<(), usize> {
        let held = self.held.fetch_add(1, Relaxed);
        if held >= HELD_MAX {
            self.remove_one();
            return Err(held);
        }
        Ok(())
    }

    /// Counts one more lease, however many there are.
    pub(crate) fn add_another(&self) {
        self.held.fetch_add(1, Relaxed);
    }

    /// The nonce of an acquisition.
    pub(crate) fn next_nonce(&self) -> Nonce {
        Nonce {
            client: self.client,
            sequence: self.sequence.fetch_add(1, Relaxed),
        }
    }

    /// A lease has ended.
    pub(crate) fn remove_one(&self) {
        self.held.fetch_sub(1, Relaxed);
    }

    /// `lease` is lost or past its time, and has no holder any more: the waiters ask anew. Returns
    /// the phase until now.
    pub(super) fn over(&self, lease: &ShardLease) -> Phase {
        let before = lease.end_here();
        lease.receiver.over(lease);
        before
    }

    /// The shard has no record of `lease` any more. Its unanswered requests must not make one, unless
    /// another process may have it at another shard.
    pub(super) fn lost(&self, lease: &Arc<ShardLease>) {
        let was_held = self.over(lease) == Phase::Held;
        if was_held && !lease.is_detached() && lease.in_flight.lock().is_in_doubt() {
            self.releases.send(lease, false);
        }
    }

    /// A late grant, which `shard` sent on its own.
    pub(super) fn pushed(&self, lease: &Arc<ShardLease>, shard: &ShardId, grant: &QueuedGrant) {
        let Some(there) = self.routing().and_then(|routing| routing.renewer(shard)) else {
            return;
        };
        // Its ticket may have moved with its slot, or the request may have moved on before this
        // message came.
        lease.receiver.if_asked(lease, &mut |_| lease.go(&there));
        let answer = Answer {
            tokens: Tokens::new(grant.token, grant.tokens),
            contended: grant.contended,
            sent: grant.sent,
            claim: Some(grant.claim),
        };
        // After its deadline it is ignored: the next re-check decides.
        if lease.receiver.granted(lease, answer) == Judged::Held {
            // Only for the claim time: it is renewed at the next tick.
            there.tend_at(lease, self.around.clock.now());
        }
    }
}
