//! The guards that come of a grant.

use std::sync::Arc;

use super::{super::AcquireError, KeyQueue, Lease, Waiter, events, grant::Grant, rules::Granted};
use crate::{clock::Instant, limits::REENTRY_MAX};

/// A grant to a waiter, and to waiters of the same owner that enter with it.
pub(super) struct LocalGrant {
    who: Waiter,
    grant: Arc<Grant>,
    handed: bool,
    was_refused: bool,
    at: Instant,
    with: Vec<Waiter>,
}

impl LocalGrant {
    pub(super) fn of(
        granted: Granted<Arc<dyn Lease>, Waiter>,
        queue: &mut KeyQueue,
        now: Instant,
    ) -> Self {
        let Granted {
            who,
            lease,
            token,
            handed,
        } = granted;
        if lease.state().idle_until().is_some() {
            lease.state().take_up();
            lease.clone().keep();
        }
        let was_refused = lease.state().refusal.lock().take().is_some();
        let grant = Grant::new(lease, token);
        let mut with = Vec::new();
        if let Some(owner) = &who.owner {
            owner.entered(&grant);
            with =
                queue.dismiss_where(|other| other.owner.as_ref().is_some_and(|its| its.is(owner)));
        }
        Self {
            who,
            grant,
            handed,
            was_refused,
            at: now,
            with,
        }
    }

    pub(super) fn deliver(self) {
        let Self {
            who,
            grant,
            handed,
            was_refused,
            at,
            with,
        } = self;
        events::granted(&grant, handed, at);
        for waiter in with {
            let entered = grant.enter();
            match entered {
                Ok(()) => waiter.grant(grant.clone(), was_refused),
                Err(_) => waiter.refuse(AcquireError::TooManyEntries(REENTRY_MAX)),
            }
        }
        who.grant(grant, was_refused);
    }
}
