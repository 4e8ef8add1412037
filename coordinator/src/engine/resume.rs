//! Goes on with locks that another engine was granted for a holder outside of it.
//!
//! Two engines may go on with one lock: both renew one record, and neither releases it unless the
//! holder asks for that. So an engine that takes a lock up cannot take it from anyone.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{
    AcquireError, CoordinatorError, DetachedLease, Engine, LeaseRef, ReleaseAnswer,
    local::{Lease, LeaseState, Terms, events},
    ring::{Declaration, ShardLease, renewer::LeaseRenewer},
};
use crate::{
    backoff::Backoff,
    driver::Answered,
    ids::Token,
    shard::{Op, Reply, ShardError},
};

/// First and longest pause before the shard is asked again.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

impl Engine {
    /// Takes up a held lock, which another engine may have been granted, and renews it. None: it is
    /// not held any more. While the shard is in doubt, it is asked again for `wait`.
    ///
    /// The shard must have the record: unlike a renewal by an engine that has held the lock all
    /// the time, this puts no lost record back. Another holder may have had the lock meanwhile.
    ///
    /// # Errors
    ///
    /// [`AcquireError`]: it is not known whether the lock is held. In the recovery period of its
    /// shard, and while its slot migrates, only an engine that holds it can renew it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the lock renewed or not.
    pub async fn resume(
        &self,
        lease: &LeaseRef,
        wait: Duration,
    ) -> Result<Option<DetachedLease>, AcquireError> {
        self.has_shards()?;
        self.0.routing.check_single(&lease.key)?;
        let until = self.0.now() + wait;
        let mut pauses = Backoff::new(RETRY.0, RETRY.1);
        loop {
            let error = match self.take_up(lease).await {
                Err(error) => error,
                taken => return taken,
            };
            let pause = pauses.next(&self.0.around.random);
            let pause = error.retry_after().unwrap_or_default().max(pause);
            if !error.is_retryable() || self.0.now() + pause >= until {
                return Err(error);
            }
            sleep(pause).await;
        }
    }

    /// Releases a lock that another engine was granted, and returns whether it was held until now.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TooManyHeld`], [`AcquireError::Replicated`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock in the background.
    pub async fn release(&self, lease: &LeaseRef) -> Result<ReleaseAnswer, AcquireError> {
        self.has_shards()?;
        self.0.routing.check_single(&lease.key)?;
        let route = self.0.routing.route(&lease.key);
        let shard_lease = self.lease(lease, &route.renewer)?;
        {
            let mut in_flight = shard_lease.in_flight.lock();
            for renewer in route.renewers() {
                in_flight.at(&route.renewer, &renewer).comes();
            }
        }
        shard_lease.end_here();
        let answer = shard_lease.send_release(false, true).await;
        Ok(match answer {
            // It may have been at the other shard, which is asked in the background.
            ReleaseAnswer::Lost if route.migration.is_some() => ReleaseAnswer::Unknown,
            answer => answer,
        })
    }

    fn has_shards(&self) -> Result<(), AcquireError> {
        match &self.0.coordinators {
            None => Ok(()),
            Some(_) => {
                let message =
                    "only a client that reaches the shards goes on with a lock of another one";
                Err(CoordinatorError::refused(message).into())
            }
        }
    }

    async fn take_up(&self, lease: &LeaseRef) -> Result<Option<DetachedLease>, AcquireError> {
        let at = self.0.routing.route(&lease.key).renewer;
        let shard = || at.driver.id().to_string();
        let forced = self.0.routing.is_to_be_forced(&lease.key);
        let shard_lease = self.lease(lease, &at)?;
        let taken: Arc<dyn Lease> = shard_lease.clone();
        let taken = DetachedLease::new(taken, lease.token, self.0.queues.clone(), None);
        let Answered { reply, sent } = confirm(&shard_lease, lease.token, &at).await?;
        let now = self.0.now();
        match reply {
            Reply::Renewed { .. } if shard_lease.granted(lease.token, sent, now, None) => {
                events::renewed(&shard_lease, false, sent, now);
                at.keep(&shard_lease);
                Ok(Some(taken))
            }
            Reply::Renewed { .. } => Err(AcquireError::TooLate),
            Reply::Lost if !forced => Ok(None),
            Reply::Grace { retry_after } => Err(AcquireError::Grace {
                shard: shard(),
                new: self.0.routing.topology().is_new(at.driver.id()),
                retry_after,
            }),
            Reply::Moving { .. } => Err(AcquireError::Moving { shard: shard() }),
            Reply::Lost | Reply::Moved { .. } => {
                self.0.routing.refresh();
                Err(AcquireError::Moved)
            }
            reply => {
                let (what, reason) = ("confirm", format!("unexpected answer {reply:?}"));
                Err(ShardError::Refused { what, reason }.into())
            }
        }
    }

    /// A lease that is not held here yet.
    fn lease(
        &self,
        lease: &LeaseRef,
        at: &Arc<LeaseRenewer>,
    ) -> Result<Arc<ShardLease>, AcquireError> {
        let requests = &self.0.requests;
        requests.add_one().map_err(AcquireError::TooManyHeld)?;
        let terms = Terms {
            label: lease.label.clone(),
            mode: lease.mode,
            preferred: false,
            // It is in no queue.
            share: self.0.queues.place_for(lease.mode),
            lease: lease.lease,
            tokens: lease.tokens,
            hold_for: lease.hold_for,
        };
        let view = &self.0.around.view;
        let state = LeaseState::new(lease.key.clone(), lease.nonce, terms, lease.tokens, view);
        state.set_tokens_granted(lease.tokens);
        let receiver = requests.local.clone();
        // It requests nothing that depends on the declaration.
        let declaration = Declaration::NONE;
        Ok(ShardLease::new(
            declaration,
            state,
            false,
            at.clone(),
            receiver,
        ))
    }
}

/// Extends the record, if the shard has it.
async fn confirm(
    lease: &ShardLease,
    token: Token,
    at: &LeaseRenewer,
) -> Result<Answered, AcquireError> {
    let confirm = Op::Confirm {
        nonce: lease.nonce,
        label: lease.terms.label.clone(),
        token,
        tokens: lease.tokens,
        lease: lease.lease_to_ask(),
        install: false,
    };
    let request = at.request(&lease.key, confirm);
    match at.driver.submit(request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(AcquireError::Closed),
    }
}
