//! Messages from the shard, and the guard that comes of a grant.

use std::sync::Arc;

use ringfence_ring::ShardId;

use super::{
    super::{AcquireError, events, grant::Grant, hold::Hold},
    KeyQueue, LocalQueues, Waiter,
    rules::Granted,
    search::go,
    tokens::Tokens,
};
use crate::{
    clock::Instant,
    limits::REENTRY_MAX,
    shard::{self, Wake},
};

impl LocalQueues {
    /// A message from a shard. It may be late, or repeated.
    pub(in super::super) fn woken(self: &Arc<Self>, shard: &ShardId, wake: Wake) {
        match wake {
            Wake::Turn(turn) => self.turned(shard, &turn),
            Wake::Wanted { key, nonce } => {
                self.change(&key, |queue, now| {
                    // It may overtake the answer that gives this process the record.
                    let hold = queue.held().or(queue.asking());
                    if hold.is_some_and(|hold| hold.nonce == nonce) {
                        queue.wanted(now);
                    }
                });
            }
        }
    }

    /// The late answer to the request whose `sent` it echoes.
    fn turned(self: &Arc<Self>, shard: &ShardId, turn: &shard::QueuedGrant) {
        let Some(there) = self.routing().and_then(|routing| routing.renewer(shard)) else {
            return;
        };
        self.change(&turn.key, |queue, now| {
            let Some(hold) = queue
                .asking()
                .filter(|hold| hold.nonce == turn.nonce)
                .cloned()
            else {
                return;
            };
            // Its ticket may have moved with its slot, or the request may have moved on before this
            // message came.
            go(&hold, &there);
            // After its deadline it is ignored: the next re-check decides.
            if hold.granted(turn.token, turn.sent, now, Some(turn.claim)) {
                // Only for the claim time: it is renewed at the next tick.
                there.tend_at(&hold, now);
                let tokens = Tokens::new(turn.token, turn.tokens);
                queue.granted(&hold, tokens, turn.wanted, now);
            }
        });
    }

    /// Another process waits for `hold`.
    pub(in super::super) fn wanted(self: &Arc<Self>, hold: &Arc<Hold>) {
        self.change(&hold.key, |queue, now| {
            if queue.holds(hold) {
                queue.wanted(now);
            }
        });
    }
}

/// A grant to a waiter, and to waiters of the same owner that enter with it.
pub(super) struct LocalGrant {
    who: Waiter,
    grant: Arc<Grant>,
    handed: bool,
    at: Instant,
    with: Vec<Waiter>,
}

impl LocalGrant {
    pub(super) fn of(
        granted: Granted<Arc<Hold>, Waiter>,
        queue: &mut KeyQueue,
        now: Instant,
    ) -> Self {
        let Granted {
            who,
            hold,
            token,
            handed,
        } = granted;
        if hold.idle_until().is_some() {
            hold.take_up();
            hold.renewer().keep_on(&hold);
        }
        let grant = Grant::new(hold, token);
        let mut with = Vec::new();
        if let Some(owner) = &who.owner {
            owner.entered(&grant);
            with = queue.dismiss_who(|other| other.owner.as_ref().is_some_and(|its| its.is(owner)));
        }
        Self {
            who,
            grant,
            handed,
            at: now,
            with,
        }
    }

    pub(super) fn deliver(self) {
        let Self {
            who,
            grant,
            handed,
            at,
            with,
        } = self;
        events::granted(&grant, handed, at);
        for waiter in with {
            let entered = grant.enter();
            match entered {
                Ok(()) => waiter.grant(grant.clone()),
                Err(_) => waiter.refuse(AcquireError::TooManyEntries(REENTRY_MAX)),
            }
        }
        who.grant(grant);
    }
}
