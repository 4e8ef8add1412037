//! Connects, and acquires the lock.

use std::{future::Future, time::Duration};

use ringfence_client::{BootClock, Client, Clock, Inspection, Instant, MultiGuard, MultiLockError};
use tokio::time::{sleep, timeout};

use super::{
    args::Asked,
    error::{LockError, may_pass},
    reasons::{Reason, Reasons},
};

/// Without `--wait`, servers that never answered are given up after this.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long one look for the topology goes on before what it met is told.
const LOOK: Duration = Duration::from_millis(500);
/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A waiter for the lock, which explains on stderr why it waits.
pub(super) struct Ask<'a> {
    asked: &'a Asked<'a>,
    give_up: Instant,
    reasons: Reasons,
}

impl<'a> Ask<'a> {
    /// The time there is to wait runs from now on.
    pub(super) fn new(asked: &'a Asked<'a>) -> Self {
        Self {
            asked,
            give_up: BootClock.now() + asked.wait().unwrap_or(PATIENCE),
            reasons: Reasons::new(asked.nested()),
        }
    }

    fn left(&self) -> Duration {
        self.give_up.since(BootClock.now())
    }

    async fn explained<T>(&self, client: Option<&Client>, work: impl Future<Output = T>) -> T {
        let look = async || match client {
            Some(client) if self.asked.has_shares() => self.inspect(client).await,
            _ => None,
        };
        tokio::select! {
            biased;
            done = work => done,
            never = self.reasons.tell(look), if !self.asked.args.quiet => match never {},
        }
    }

    /// The first of the locks that somebody holds.
    async fn inspect(&self, client: &Client) -> Option<Inspection> {
        for lock in self.asked.each_lock(client) {
            let found = timeout(LOOK, lock.inspect()).await.ok()?.ok()?;
            if found.holder.is_some() {
                return Some(found);
            }
        }
        None
    }

    /// A client of the servers.
    pub(super) async fn connect(&self) -> Result<Client, LockError> {
        let client = self.explained(None, self.look()).await?;
        for warning in client.warnings() {
            tracing::warn!("{warning}");
        }
        Ok(client)
    }

    /// Looks for the topology until it is found, or it is time to give up: once at least.
    async fn look(&self) -> Result<Client, LockError> {
        loop {
            let left = self.left();
            match self
                .asked
                .client()
                .connect_within(left.min(LOOK))
                .build()
                .await
            {
                Ok(client) => return Ok(client),
                Err(error) if may_pass(&error) && !left.is_zero() => {
                    let obstacle = self.asked.place.located(&error.to_string());
                    self.reasons.set(Reason::Connecting(obstacle));
                    sleep(left.min(LOOK_AGAIN)).await;
                }
                Err(error) => return Err(self.asked.failed(error)),
            }
        }
    }

    /// The locks.
    pub(super) async fn acquire(&self, client: &Client) -> Result<MultiGuard, LockError> {
        let max = client.topology().constants.max_lease();
        let lease = self.asked.lease(client);
        if lease > max {
            return Err(LockError::TtlTooLong { ttl: lease, max });
        }
        let granted = self.granted(client, lease);
        self.explained(Some(client), granted).await
    }

    async fn granted(&self, client: &Client, lease: Duration) -> Result<MultiGuard, LockError> {
        let wait = self.asked.wait().unwrap_or(PATIENCE);
        loop {
            let reasons = self.reasons.clone();
            let lock = self
                .asked
                .locks(client)
                .lease(lease)
                .on_wait(move |waiting| reasons.set(Reason::Waiting(waiting)));
            let left = self.left();
            let acquired = match self.asked.wait() {
                None => tokio::select! {
                    biased;
                    granted = lock.acquire() => granted,
                    error = self.reasons.nobody_answers(left) => {
                        return Err(LockError::refused(error, wait, String::new()));
                    }
                },
                Some(_) if left.is_zero() => lock.try_acquire().await,
                Some(_) => lock.wait(left).acquire().await,
            };
            match acquired {
                Ok(guard) => return Ok(guard),
                // Nothing runs yet: begin again, in the time that is left.
                Err(MultiLockError::Lost { .. }) => {}
                Err(MultiLockError::NotAcquired { key, error }) => {
                    let key = match self.asked.keys.len() {
                        1 => String::new(),
                        _ => format!("{key}: "),
                    };
                    return Err(LockError::refused(error, wait, key));
                }
                Err(error) => return Err(LockError::Usage(error.to_string())),
            }
        }
    }
}
