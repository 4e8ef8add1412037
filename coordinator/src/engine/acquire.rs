//! One acquisition: a place in the local queue, and its outcome.

use std::time::Duration;

use tokio::time::timeout;

use super::{
    AcquireError, Engine, Guard, Inner, Owner, WaitObserver,
    local::{Joined, Terms},
};
use crate::{
    limits::{HOLD_MAX, LEASE_MIN, TOKENS_MAX},
    metrics::{Acquiring, Outcome},
    name::{Label, LockKey, Namespace},
    shard::{LockKind, LockMode, ShardError},
};

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Ask once.
    No,
    /// Give up after this long.
    For(Duration),
    /// As long as it takes.
    Forever,
}

/// The terms of an acquisition.
#[derive(Clone, Debug)]
pub struct Acquire<'a> {
    /// The key's namespace.
    pub namespace: &'a Namespace,
    /// The key.
    pub key: &'a [u8],
    /// The lease; default: the topology's longest.
    pub lease: Option<Duration>,
    /// Ends the hold this long after the request for the grant; otherwise it is renewed until it is
    /// released.
    pub hold_for: Option<Duration>,
    /// How many fencing tokens to set aside for a holder outside of this process that hands the lock on among its own tasks:
    /// 1 to [`TOKENS_MAX`]. Of use with [`Guard::detach`], in an engine that hands nothing on itself.
    pub tokens: u32,
    /// How long to wait.
    pub wait: Wait,
    /// Goes before waiters that are not preferred: the side of a read-write lock that its users prefer. The preferred
    /// ones are served first come, first served. Without effect for other kinds of locks.
    pub preferred: bool,
    /// The owner, which may enter again.
    pub owner: Option<&'a Owner>,
    /// The holder's name shown to others; default: the engine's label.
    pub label: Option<Label>,
    /// Receives the reason while the acquisition waits.
    pub observer: Option<&'a WaitObserver>,
}

impl Engine {
    /// Acquires a lock.
    ///
    /// # Errors
    ///
    /// [`AcquireError`]: tells whether a repeat may succeed, and whether the shard may have granted
    /// the lock all the same.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases, in the background, a lock that it may have been granted.
    pub async fn acquire(&self, ask: Acquire<'_>) -> Result<Guard, AcquireError> {
        self.acquire_share(ask, LockMode::Exclusive).await
    }

    /// Acquires permits of a semaphore, or one side of a read-write lock. Readers of a process have one lease together,
    /// as long as no other process waits, and unless hand-off is off; each other acquisition is a request of its own to
    /// the shard, with its own lease. An owner enters again the side that it has, and as a writer also the readers' side.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire); and [`AcquireError::Permits`], [`AcquireError::OtherKind`],
    /// [`AcquireError::Upgrade`], and
    /// [`AcquireError::Replicated`] in a namespace whose locks have several replicas.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases, in the background, a share that it may have been granted.
    pub async fn acquire_share(
        &self,
        ask: Acquire<'_>,
        mode: LockMode,
    ) -> Result<Guard, AcquireError> {
        let key = self.key(ask.namespace, ask.key)?;
        let metrics = self.0.routing.metrics(&key);
        let acquiring = Acquiring::begin(metrics, &*self.0.around.clock);
        let mut result = self.acquire_key(&key, ask, mode).await;
        let has_waited = match &result {
            Ok(guard) => guard.has_waited(),
            Err(refusal) => matches!(refusal, AcquireError::TimedOut { .. }),
        };
        let holding = acquiring.end(outcome(&result), has_waited);
        if let (Ok(guard), Some(holding)) = (&mut result, holding) {
            guard.count(holding);
        }
        result
    }

    async fn acquire_key(
        &self,
        key: &LockKey,
        ask: Acquire<'_>,
        mode: LockMode,
    ) -> Result<Guard, AcquireError> {
        if !mode.is_possible() {
            let (count, capacity) = (mode.shares(), mode.capacity());
            return Err(AcquireError::Permits { count, capacity });
        }
        self.0.has_runtime()?;
        let lease = self.0.lease(ask.lease)?;
        match ask.hold_for {
            Some(short) if short < LEASE_MIN => return Err(AcquireError::HoldTooShort(short)),
            Some(long) if long > HOLD_MAX => return Err(AcquireError::HoldTooLong(long)),
            _ => {}
        }
        let terms = Terms {
            label: ask.label.unwrap_or_else(|| self.0.label.clone()),
            mode,
            preferred: ask.preferred && mode.kind() == LockKind::ReadWrite,
            share: 0,
            lease,
            tokens: ask.tokens.clamp(1, TOKENS_MAX),
            hold_for: ask.hold_for,
        };
        let once = ask.wait == Wait::No;
        let who = (ask.owner, ask.observer);
        let mut place = match self.0.queues.join(key, terms, once, who)? {
            Joined::Entered(guard) => return Ok(guard),
            Joined::Waits(place) => place,
        };
        let Wait::For(length) = ask.wait else {
            return place.turn().await;
        };
        if let Ok(answer) = timeout(length, place.turn()).await {
            return answer;
        }
        place.late().unwrap_or_else(|| {
            let because = place.refusal().unwrap_or_else(no_answer_yet);
            Err(AcquireError::TimedOut {
                waited: length,
                because: Box::new(because),
            })
        })
    }
}

impl Inner {
    fn lease(&self, asked: Option<Duration>) -> Result<Duration, AcquireError> {
        let max = self.routing.max_lease();
        let lease = asked.unwrap_or(max);
        if lease > max {
            return Err(AcquireError::LeaseTooLong { lease, max });
        }
        if lease < LEASE_MIN {
            return Err(AcquireError::LeaseTooShort(lease));
        }
        Ok(lease)
    }
}

/// The outcome, for the metrics.
fn outcome(result: &Result<Guard, AcquireError>) -> Outcome {
    match result {
        Ok(_) => Outcome::Granted,
        Err(AcquireError::Held { .. }) => Outcome::Held,
        Err(AcquireError::TimedOut { .. }) => Outcome::TimedOut,
        Err(
            AcquireError::Moving { .. }
            | AcquireError::Moved
            | AcquireError::Declaring(_)
            | AcquireError::Grace { .. }
            | AcquireError::OutOfMemory(_)
            | AcquireError::NoTokens(_)
            | AcquireError::TooLate
            | AcquireError::NoMajority { .. }
            | AcquireError::Shard(_)
            | AcquireError::Coordinator(_)
            | AcquireError::Closed,
        ) => Outcome::Unavailable,
        Err(
            AcquireError::Name(_)
            | AcquireError::Replicated { .. }
            | AcquireError::LeaseTooLong { .. }
            | AcquireError::LeaseTooShort(_)
            | AcquireError::HoldTooShort(_)
            | AcquireError::HoldTooLong(_)
            | AcquireError::TooManyWaiters { .. }
            | AcquireError::TooManyHeld(_)
            | AcquireError::TooManyEntries(_)
            | AcquireError::OtherKind { .. }
            | AcquireError::Upgrade
            | AcquireError::Permits { .. }
            | AcquireError::Foreign(_),
        ) => Outcome::Refused,
    }
}

/// The first request is still unanswered when the wait ends.
pub(super) fn no_answer_yet() -> AcquireError {
    let reason = "none before the wait was over".into();
    ShardError::NoReply { reason }.into()
}
