//! One acquisition: try, wait, try again; or clean up.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use tokio::time::{sleep, timeout};

use super::{
    AcquireError, Engine, Guard, Inner, Owner, WaitObserver, Waiting, hold::Hold, routing::Route,
    told,
};
use crate::{
    backoff::Backoff,
    clock::Instant,
    driver::{Answer, Answered},
    ids::MapVersion,
    limits::{HELD_MAX, LEASE_MIN, REENTRY_MAX},
    name::{Label, LockKey, Namespace},
    shard::{Effect, Lane, Op, Reply, Request, ShardError},
};

/// First and longest pause before a held lock is asked for again.
const RECHECK: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// First and longest pause before a shard in trouble is asked again.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

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

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Acquire<'a> {
    /// The key's namespace.
    pub namespace: &'a Namespace,
    /// The key.
    pub key: &'a [u8],
    /// The lease; the topology's longest if not said.
    pub lease: Option<Duration>,
    /// Ends the hold this long after the grant was asked for; otherwise it is renewed until it is
    /// released.
    pub hold_for: Option<Duration>,
    /// How long to wait.
    pub wait: Wait,
    /// Who may enter again.
    pub owner: Option<&'a Owner>,
    /// How the holder is shown to others; the engine's label if not said.
    pub label: Option<Label>,
    /// Is told why, while it waits.
    pub observer: Option<&'a WaitObserver>,
}

impl Engine {
    /// Takes a lock.
    ///
    /// # Errors
    ///
    /// [`AcquireError`]: says whether to try again, and whether the shard may have granted it all
    /// the same.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives back, in the background, whatever it may have been granted.
    pub async fn acquire(&self, ask: Acquire<'_>) -> Result<Guard, AcquireError> {
        let key = self.key(ask.namespace, ask.key)?;
        let lease = self.0.lease(ask.lease)?;
        if let Some(hold_for) = ask.hold_for.filter(|hold_for| *hold_for < LEASE_MIN) {
            return Err(AcquireError::HoldTooShort(hold_for));
        }
        let mut waiter = Waiter {
            engine: &self.0,
            ask: &ask,
            key,
            lease,
            attempt: None,
        };
        match ask.wait {
            Wait::No => waiter.once().await,
            Wait::Forever => waiter.until_granted(&mut None).await,
            Wait::For(length) => {
                let mut last = None;
                let granted = timeout(length, waiter.until_granted(&mut last)).await;
                granted.unwrap_or_else(|_| {
                    let because = Box::new(last.unwrap_or_else(no_answer_yet));
                    Err(AcquireError::TimedOut {
                        waited: length,
                        because,
                    })
                })
            }
        }
    }
}

impl Inner {
    fn lease(&self, asked: Option<Duration>) -> Result<Duration, AcquireError> {
        let max = self.routing.topology().constants.max_lease();
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

/// The first request is still out when the wait is over.
fn no_answer_yet() -> AcquireError {
    let reason = "none before the wait was over".into();
    ShardError::NoReply { reason }.into()
}

/// Somebody who wants a lock.
struct Waiter<'a> {
    engine: &'a Arc<Inner>,
    ask: &'a Acquire<'a>,
    key: LockKey,
    lease: Duration,
    attempt: Option<Attempt>,
}

impl Waiter<'_> {
    /// Asks until granted or refused for good. `last` is why it is not granted yet.
    async fn until_granted(
        &mut self,
        last: &mut Option<AcquireError>,
    ) -> Result<Guard, AcquireError> {
        let mut recheck = Backoff::new(RECHECK.0, RECHECK.1);
        let mut retry = Backoff::new(RETRY.0, RETRY.1);
        loop {
            let refusal = match self.once().await {
                Err(refusal) if refusal.is_retryable() => refusal,
                granted_or_final => return granted_or_final,
            };
            let random = &self.engine.around.random;
            let pause = match &refusal {
                AcquireError::Held { remaining, .. } => recheck.next(random).min(*remaining),
                other => other
                    .retry_after()
                    .unwrap_or_default()
                    .max(retry.next(random)),
            };
            self.tell(&refusal);
            *last = Some(refusal);
            sleep(pause.max(Duration::from_millis(1))).await;
        }
    }

    /// Tells whoever wants to know why it is not granted yet.
    fn tell(&self, refusal: &AcquireError) {
        let Some(observer) = self.ask.observer else {
            return;
        };
        let route = self.engine.routing.route(&self.key);
        let grace = self.engine.routing.topology().constants.grace();
        observer.tell(Waiting::new(refusal, route.keeper.driver.id(), grace));
    }

    /// Asks once; or enters again what the owner holds.
    async fn once(&mut self) -> Result<Guard, AcquireError> {
        if self.engine.around.stop.is_cancelled() {
            return Err(AcquireError::Closed);
        }
        if let Some(guard) = self.enter()? {
            return Ok(guard);
        }
        let route = self.engine.routing.route(&self.key);
        let reusable = self.attempt.take().filter(|attempt| attempt.is_at(&route));
        let attempt = match reusable {
            Some(attempt) => attempt,
            None => self.begin(&route)?,
        };
        let attempt = self.attempt.insert(attempt);
        attempt.ask(route.map).await?;
        let hold = self.attempt.take().expect("just asked").into_hold();
        if let Some(owner) = self.ask.owner {
            owner.entered(&hold);
        }
        Ok(Guard::new(hold, self.engine.clone()))
    }

    fn enter(&self) -> Result<Option<Guard>, AcquireError> {
        let Some(owner) = self.ask.owner else {
            return Ok(None);
        };
        let (client, now) = (self.engine.client, self.engine.now());
        let Some(hold) = owner.hold(&self.key, client, now) else {
            return Ok(None);
        };
        match hold.enter() {
            Ok(()) => Ok(Some(Guard::new(hold, self.engine.clone()))),
            Err(0) => Ok(None),
            Err(_) => Err(AcquireError::TooManyEntries(REENTRY_MAX)),
        }
    }

    fn begin(&self, route: &Route) -> Result<Attempt, AcquireError> {
        let held = self.engine.held.fetch_add(1, Relaxed);
        if held >= HELD_MAX {
            self.engine.held.fetch_sub(1, Relaxed);
            return Err(AcquireError::TooManyHeld(held));
        }
        let hold = Hold::new(
            self.key.clone(),
            self.engine.next_nonce(),
            self.ask
                .label
                .clone()
                .unwrap_or_else(|| self.engine.label.clone()),
            self.lease,
            self.ask.hold_for,
            route.keeper.clone(),
        );
        Ok(Attempt {
            engine: self.engine.clone(),
            hold: Some(hold),
            maybe_applied: false,
        })
    }
}

/// An acquisition not granted yet. Dropping it gives back what it may have been granted; its nonce
/// is never used again.
struct Attempt {
    engine: Arc<Inner>,
    hold: Option<Arc<Hold>>,
    /// Whether a request of it may have been applied.
    maybe_applied: bool,
}

impl Attempt {
    fn hold(&self) -> &Arc<Hold> {
        self.hold.as_ref().expect("taken only when granted")
    }

    fn is_at(&self, route: &Route) -> bool {
        Arc::ptr_eq(&self.hold().keeper, &route.keeper)
    }

    fn into_hold(mut self) -> Arc<Hold> {
        self.hold.take().expect("taken only here")
    }

    /// Asks the shard once. A repeat keeps its nonce, and so finds what an earlier request, whose
    /// answer was lost, was granted.
    async fn ask(&mut self, map: MapVersion) -> Result<(), AcquireError> {
        let hold = self.hold().clone();
        let op = Op::Acquire {
            nonce: hold.nonce,
            label: hold.label.clone(),
            lease: hold.lease_to_ask(),
        };
        let request = Request {
            key: hold.key.clone(),
            map,
            op,
        };
        let before = std::mem::replace(&mut self.maybe_applied, true);
        let answer: Answer = match hold.keeper.driver.submit(Lane::Work, request).await {
            Ok(answer) => answer,
            Err(_) => return Err(AcquireError::Closed),
        };
        match answer {
            Ok(Answered { reply, sent }) => {
                let granted = self.judge(reply, sent);
                self.maybe_applied = matches!(granted, Err(AcquireError::TooLate));
                granted
            }
            Err(error) => {
                self.maybe_applied = before || error.effect() == Effect::Unknown;
                Err(error.into())
            }
        }
    }

    fn judge(&self, reply: Reply, sent: Instant) -> Result<(), AcquireError> {
        let hold = self.hold();
        let shard = || hold.keeper.driver.id().to_string();
        Err(match reply {
            Reply::Granted { token } => {
                if !hold.granted(token, sent, self.engine.now()) {
                    return Err(AcquireError::TooLate);
                }
                told::granted(hold, sent);
                hold.keeper.keep(hold, sent);
                return Ok(());
            }
            Reply::Held { remaining, label } => AcquireError::Held {
                holder: label,
                remaining,
            },
            Reply::Grace { retry_after } => AcquireError::Grace {
                shard: shard(),
                retry_after,
            },
            Reply::Moved { .. } => {
                self.engine.routing.refresh();
                AcquireError::Moved
            }
            Reply::NoTokens => AcquireError::NoTokens(shard()),
            Reply::OutOfMemory => AcquireError::OutOfMemory(shard()),
            Reply::Foreign => AcquireError::Foreign(shard()),
            reply @ (Reply::Renewed { .. } | Reply::Lost | Reply::Released { .. }) => {
                let reason = format!("unexpected answer {reply:?}");
                ShardError::Refused {
                    what: "acquire",
                    reason,
                }
                .into()
            }
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let Some(hold) = self.hold.take() else { return };
        hold.end();
        self.engine.held.fetch_sub(1, Relaxed);
        if self.maybe_applied {
            self.engine.releases.send(&hold);
        }
    }
}
