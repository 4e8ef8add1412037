//! Goes on with locks that another engine was granted for a holder outside of it.
//!
//! Two engines may go on with one lock: both renew one record, and neither releases it unless the
//! holder asks for that. So an engine that takes a lock up cannot take it from anyone.

use std::{sync::Arc, time::Duration};

use ringfence_ring::Replicas;
use tokio::time::sleep;

use super::{
    AcquireError, CoordinatorError, DetachedLease, Engine, Inner, LeaseRef, ReleaseAnswer,
    local::{LeaseState, Terms, events},
    quorum::ReplicatedLease,
    ring::{Declaration, Ring, ShardLease},
};
use crate::backoff::Backoff;

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
    /// shard, and while its slot migrates, only an engine that holds it can renew it. A lock with replicas is taken up if a
    /// majority of them has its record: one shard of three may be away.
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
    /// [`AcquireError::TooManyHeld`], [`AcquireError::Moved`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the lock in the background.
    pub async fn release(&self, lease: &LeaseRef) -> Result<ReleaseAnswer, AcquireError> {
        self.has_shards()?;
        Ok(match self.found(lease)? {
            Found::Single(shard_lease) => shard_lease.release_of_another(&self.0.routing).await,
            Found::Replicated(replicated) => replicated.release_at_all().await,
            Found::Nowhere => ReleaseAnswer::Lost,
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
        let detached = |taken| DetachedLease::new(taken, lease.token, self.0.queues.clone(), None);
        match self.found(lease)? {
            Found::Single(shard_lease) => {
                let taken = detached(shard_lease.clone());
                let at = shard_lease.renewer().clone();
                let confirmed = shard_lease.confirmed(&self.0.routing, lease.token, &at);
                let Some(sent) = confirmed.await? else {
                    return Ok(None);
                };
                let now = self.0.now();
                if !shard_lease.granted(lease.token, sent, now, None) {
                    return Err(AcquireError::TooLate);
                }
                events::renewed(&shard_lease, false, sent, now);
                at.keep(&shard_lease);
                Ok(Some(taken))
            }
            Found::Replicated(replicated) => {
                let taken = detached(replicated.clone());
                Ok(replicated.take_up(lease.token).await?.then_some(taken))
            }
            Found::Nowhere => Ok(None),
        }
    }

    /// A lease that is not held here yet.
    fn found(&self, lease: &LeaseRef) -> Result<Found, AcquireError> {
        let Inner {
            requests,
            routing,
            queues,
            around,
            ..
        } = &*self.0;
        let terms = Terms {
            label: lease.label.clone(),
            mode: lease.mode,
            preferred: false,
            // It is in no queue.
            share: queues.place_for(lease.mode),
            lease: lease.lease,
            tokens: lease.tokens,
            hold_for: lease.hold_for,
        };
        let declaration = routing.declaration(&lease.key);
        match (declaration.replicas, lease.replicas.len()) {
            (Replicas::One, 0) => {
                requests.add_one().map_err(AcquireError::TooManyHeld)?;
                let (key, view) = (lease.key.clone(), &around.view);
                let state = LeaseState::new(key, lease.nonce, terms, lease.tokens, view);
                state.set_tokens_granted(lease.tokens);
                let (renewer, receiver) =
                    (routing.route(&lease.key).renewer, requests.local.clone());
                // It requests nothing that depends on the declaration.
                let declaration = Declaration::NONE;
                let single = ShardLease::new(declaration, state, 0, renewer, receiver);
                Ok(Found::Single(single))
            }
            (replicas, count) if replicas.get() as usize == count => {
                let (requests, routing) = (requests.clone(), routing.clone());
                let ring = Arc::new(Ring { requests, routing });
                let replicated = ReplicatedLease::of_another(&ring, declaration, lease, terms)?;
                Ok(Found::Replicated(replicated))
            }
            // This process has yet to learn of the declaration of its namespace.
            (Replicas::One, _) => {
                routing.refresh();
                Err(AcquireError::Moved)
            }
            // Its namespace was declared since, while none of its locks was held.
            _ => Ok(Found::Nowhere),
        }
    }
}

/// A lock of another engine.
enum Found {
    Single(Arc<ShardLease>),
    Replicated(Arc<ReplicatedLease>),
    Nowhere,
}
