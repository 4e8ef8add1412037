//! One acquisition at a coordinator.

use std::sync::Arc;

use ringfence_ring::ShardId;

use super::{
    super::{
        ReleaseAnswer,
        local::{Lease, LeaseState, Phase, Receiver, Releasing},
    },
    session::Session,
};
use crate::{
    clock::{Instant, sleep_until},
    shard::QueuedGrant,
};

/// One acquisition at a coordinator: from before its first request to after its last one.
#[derive(Debug)]
pub(super) struct RemoteLease {
    pub(super) state: LeaseState,
    session: Arc<Session>,
    /// Whether its first request waits for the lock.
    pub(super) queues: bool,
}

impl RemoteLease {
    pub(super) fn new(state: LeaseState, session: Arc<Session>, queues: bool) -> Self {
        Self {
            state,
            session,
            queues,
        }
    }

    /// Identifies it in its session.
    pub(super) fn sequence(&self) -> u64 {
        self.state.nonce.sequence
    }

    /// Ends belief in it, once. Returns the phase until now.
    pub(super) fn end_here(&self) -> Phase {
        let before = self.state.end();
        if before != Phase::Over {
            self.session.requests.remove_one();
        }
        before
    }
}

impl Lease for RemoteLease {
    fn state(&self) -> &LeaseState {
        &self.state
    }

    fn request(self: Arc<Self>) {
        self.session.ask(&self);
    }

    fn abandon(self: Arc<Self>) {
        self.end_here();
        self.session.give_up(&self);
        self.session.send_last();
    }

    fn keep_idle(self: Arc<Self>, until: Instant) {
        let session = self.session.clone();
        let around = &session.requests.around;
        let (clock, tasks) = (around.clock.clone(), around.tasks.clone());
        let idle = async move {
            let mut until = Some(until);
            while let Some(at) = until.filter(|_| !self.state.is_over()) {
                sleep_until(&*clock, at).await;
                // A holder that took it meanwhile has it kept anew.
                let kept = self.session.requests.local.idle(&self.state);
                until = kept.filter(|until| *until > clock.now());
            }
        };
        tasks.spawn_on(idle, &session.runtime);
    }

    /// Pings keep it.
    fn keep(self: Arc<Self>) {}

    fn renew(self: Arc<Self>) {
        self.session.renew(&self);
    }

    /// No other process can go on with it.
    fn leave(self: Arc<Self>) {
        self.release_in_background(false);
    }

    fn release_in_background(self: Arc<Self>, yields: bool) {
        if self.end_here() == Phase::Held {
            self.session.release(&self, yields, None);
            self.session.send_last();
        }
    }

    fn release(self: Arc<Self>, yields: bool, held: bool) -> Option<Releasing> {
        // Belief ends before the release is sent.
        if self.end_here() != Phase::Held {
            return None;
        }
        let (tell, told) = tokio::sync::oneshot::channel();
        self.session.release(&self, yields, Some(tell));
        self.session.send_last();
        Some(Box::pin(async move {
            match told.await.unwrap_or(ReleaseAnswer::Unknown) {
                ReleaseAnswer::Held if !held => ReleaseAnswer::Lost,
                answer => answer,
            }
        }))
    }

    /// Coordinators send late grants as they send others.
    fn pushed(self: Arc<Self>, _shard: &ShardId, _grant: &QueuedGrant) {}

    /// The coordinator tells it.
    fn taken(self: Arc<Self>) {}

    fn clock_stepped(&self, _shard: &ShardId) {}
}
