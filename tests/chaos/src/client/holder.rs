//! Each thing a holder does with a lock, done and recorded.

use std::{
    ops::Deref,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use ringfence_client::{
    AcquireError, Client, Effect, Guard, Leadership, LockKey, ReleaseAnswer, RwLock, Token, Waiting,
};
use ringfence_coordinator::shard::LockMode;
use tokio::time::sleep;

use super::Tap;
use crate::{
    election,
    history::{Answer, Deed, Kind, Phase, Recorder},
    ledger,
    resource::Resource,
    shares,
};

/// A client with recorded operations.
#[derive(Clone, Debug)]
pub struct Holder {
    /// Takes the locks.
    pub client: Client,
    /// Where everything is written down.
    pub recorder: Arc<Recorder>,
    /// Where the engine's side of it is heard.
    pub tap: Tap,
    /// The lease that is asked for.
    pub lease: Duration,
    /// Number of the process.
    pub process: u32,
    /// Whether the process may keep a released lock for a while.
    pub lingers: bool,
}

/// A lock that was taken.
#[derive(Debug)]
pub struct Asked {
    /// The lock.
    pub guard: AnyGuard,
    /// Recorded with every operation on it.
    pub of_grant: Deed,
}

/// What was asked for, and is held.
#[derive(Debug)]
pub enum AnyGuard {
    /// A lock.
    Lock(Guard),
    /// The lock of an election.
    Leader(Leadership),
}

impl AnyGuard {
    async fn release(self) -> ReleaseAnswer {
        match self {
            Self::Lock(guard) => guard.release().await,
            Self::Leader(leadership) => leadership.resign().await,
        }
    }
}

impl Deref for AnyGuard {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        match self {
            Self::Lock(guard) => guard,
            Self::Leader(leadership) => leadership,
        }
    }
}

impl Holder {
    /// Asks for `key` once, or for as long as `wait`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the acquisition, and records that.
    pub async fn acquire(&self, key: &str, wait: Option<Duration>) -> Option<Asked> {
        self.take(key, LockMode::Exclusive, wait).await
    }

    /// Asks for the share `mode` of `key`, as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the acquisition, and records that.
    pub async fn take(&self, key: &str, mode: LockMode, wait: Option<Duration>) -> Option<Asked> {
        self.take_for(key, mode, wait, None).await
    }

    /// The same, for no longer than `hold`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the acquisition, and records that.
    pub async fn take_for(
        &self,
        key: &str,
        mode: LockMode,
        wait: Option<Duration>,
        hold: Option<Duration>,
    ) -> Option<Asked> {
        let ms = |length: Duration| length.as_millis() as u64;
        let invoked = Deed {
            share: mode.into(),
            wait_ms: wait.map(ms),
            hold_ms: hold.map(ms),
            ..self.asking(key)
        };
        self.recorder.record(invoked.clone());
        let mut asking = pin!(self.ask(key, mode, (wait, hold), invoked.clone()));
        // Dropped before what it tells of: nobody is granted in its place before that is recorded.
        let abandoned = Abandoned::of(&self.recorder, [invoked.clone()]);
        let asked = asking.as_mut().await;
        abandoned.not();
        let guard = match asked {
            Ok(guard) => guard,
            Err(error) => {
                self.recorder.record(refused(invoked, &error));
                return None;
            }
        };
        let of_grant = self.granted(invoked, guard.token());
        Some(Asked { guard, of_grant })
    }

    /// What is recorded of an acquisition of `key` that begins.
    pub(super) fn asking(&self, key: &str) -> Deed {
        Deed {
            key: Some(key.to_owned()),
            shard: self.shard_of(key),
            lease_ms: Some(self.lease.as_millis() as u64),
            ..Deed::invoke(self.recorder.next_op(), Kind::Acquire)
        }
    }

    /// Records that what was `invoked` is granted with `token`. Returns what is recorded with every operation on it.
    pub(super) fn granted(&self, invoked: Deed, token: Token) -> Deed {
        let key = invoked.key.as_deref().unwrap_or_default();
        let granted = self.tap.granted(key, token);
        let of_grant = Deed {
            nonce: Some(granted.nonce),
            token: Some(token.into()),
            sent_ns: Some(granted.sent_ns),
            wait_ms: None,
            ..invoked
        };
        self.recorder.record(Deed {
            phase: Phase::Ok,
            judged_ns: Some(granted.judged_ns),
            deadline_ns: Some(granted.deadline_ns),
            handed: granted.handed,
            turn: granted.turn,
            ..of_grant.clone()
        });
        of_grant
    }

    async fn ask(
        &self,
        key: &str,
        mode: LockMode,
        (wait, hold): (Option<Duration>, Option<Duration>),
        invoked: Deed,
    ) -> Result<AnyGuard, AcquireError> {
        if election::has(key) {
            return self.campaign(key, wait).await.map(AnyGuard::Leader);
        }
        let namespace = ledger::namespace_of(key);
        let lock = match mode {
            LockMode::Exclusive => self.client.lock(key),
            LockMode::Permits { count, capacity } => {
                self.client.semaphore(key, capacity).permits(count)
            }
            LockMode::Read => self.table(key).read(),
            LockMode::Write => self.table(key).write(),
        };
        let mut lock = lock.namespace(namespace.as_str()).lease(self.lease);
        if let Some(hold) = hold {
            lock = lock.hold_for(hold);
        }
        let guard = match wait {
            Some(wait) => {
                let lock = lock.wait(wait).on_wait(self.waiting(invoked));
                lock.acquire().await
            }
            None => lock.try_acquire().await,
        };
        guard.map(AnyGuard::Lock)
    }

    async fn campaign(
        &self,
        name: &str,
        wait: Option<Duration>,
    ) -> Result<Leadership, AcquireError> {
        let election = self.client.election(name).lease(self.lease);
        match wait {
            Some(wait) => election.wait(wait).campaign().await,
            None => election.try_campaign().await,
        }
    }

    fn table(&self, key: &str) -> RwLock {
        let table = self.client.rw_lock(key);
        match shares::preference(key, self.process) {
            Some(side) => table.prefer(side),
            None => table,
        }
    }

    /// Records, once, that what was `invoked` has its place and waits.
    fn waiting(&self, invoked: Deed) -> impl Fn(Waiting) + Send + Sync + 'static {
        let (recorder, told) = (self.recorder.clone(), AtomicBool::new(false));
        move |_| {
            if !told.swap(true, Relaxed) {
                recorder.record(Deed {
                    kind: Kind::Wait,
                    phase: Phase::Ok,
                    lease_ms: None,
                    wait_ms: None,
                    ..invoked.clone()
                });
            }
        }
    }

    /// Writes to `resource` under the lock, if it is held; the write is under way for `takes`.
    /// Whether it was held.
    ///
    /// # Errors
    ///
    /// The resource is gone.
    pub async fn write(
        &self,
        asked: &Asked,
        resource: &mut Resource,
        takes: Duration,
    ) -> std::io::Result<bool> {
        // Before it is asked whether it is held: the process may be stopped in between.
        let begun = self.recorder.now();
        if !asked.guard.is_held() {
            return Ok(false);
        }
        let invoked = self.of(&asked.of_grant, Kind::Write, Phase::Invoke);
        self.recorder.record_at(begun, invoked.clone());
        sleep(takes).await;
        let answer = resource.write(&invoked).await?;
        let phase = if answer == Answer::Accepted {
            Phase::Ok
        } else {
            Phase::Fail
        };
        let answer = Some(answer);
        self.recorder.record(Deed {
            phase,
            answer,
            ..invoked
        });
        Ok(true)
    }

    /// Makes a writer a reader.
    pub fn downgrade(&self, asked: &mut Asked) {
        self.recorder
            .record(self.of(&asked.of_grant, Kind::Downgrade, Phase::Ok));
        asked.guard.downgrade();
        asked.of_grant.share = LockMode::Read.into();
    }

    /// Records that the guard says it is lost.
    pub fn lost(&self, asked: &Asked) {
        self.notice(&asked.of_grant, Answer::Lost);
    }

    /// Records that the guard of a grant says `answer`.
    pub(super) fn notice(&self, of_grant: &Deed, answer: Answer) {
        let notice = self.of(of_grant, Kind::GuardState, Phase::Ok);
        let answer = Some(answer);
        self.recorder.record(Deed { answer, ..notice });
    }

    /// Gives the lock back and waits for the answer.
    pub async fn release(&self, asked: Asked) {
        let invoked = self.of(&asked.of_grant, Kind::Release, Phase::Invoke);
        let deadline = asked.guard.deadline();
        let shard = self.shard_at_rest(&asked.of_grant);
        self.recorder.record(invoked.clone());
        let answer = asked.guard.release().await;
        // Past the deadline nobody need have asked the shard.
        let in_time = self.recorder.now() < deadline.as_nanos();
        let (phase, answer) = match answer {
            // The record may be kept for the next waiter.
            ReleaseAnswer::Held if self.lingers => (Phase::Info, Some(Answer::Released)),
            ReleaseAnswer::Held => (Phase::Ok, Some(Answer::Released)),
            ReleaseAnswer::Lost if in_time => (Phase::Ok, Some(Answer::NotThere)),
            ReleaseAnswer::Lost => (Phase::Info, Some(Answer::NotThere)),
            ReleaseAnswer::Unknown => (Phase::Info, None),
        };
        self.recorder.record(Deed {
            phase,
            answer,
            shard,
            ..invoked
        });
    }

    /// Drops the guard: given back in the background.
    pub fn drop_guard(&self, asked: Asked) {
        let invoked = self.of(&asked.of_grant, Kind::Release, Phase::Invoke);
        self.recorder.record(invoked.clone());
        drop(asked.guard);
        self.recorder.record(Deed {
            phase: Phase::Info,
            reason: Some("dropped".into()),
            ..invoked
        });
    }

    pub(super) fn of(&self, of_grant: &Deed, kind: Kind, phase: Phase) -> Deed {
        Deed {
            op: self.recorder.next_op(),
            kind,
            phase,
            lease_ms: None,
            ..of_grant.clone()
        }
    }

    /// Where the lock is, if it has one replica and it was taken there and its slot has not moved since, nor does.
    pub(super) fn shard_at_rest(&self, of_grant: &Deed) -> Option<String> {
        let key = of_grant.key.as_deref()?;
        let topology = self.client.topology();
        let slots = topology.table.slots();
        let slot = LockKey::new(&ledger::namespace_of(key), key.as_bytes(), slots)
            .ok()?
            .slot();
        let moves = topology.migration_of(slot).is_some();
        self.shard_of(key).filter(|_| !moves)
    }

    /// The shard of `key`, if the lock has one replica, and the process knows.
    fn shard_of(&self, key: &str) -> Option<String> {
        if ledger::has(key) || self.tap.over_the_service {
            return None;
        }
        let namespace = ledger::namespace_of(key);
        let shard = self.client.shard_of(&namespace, key).ok()?;
        Some(shard.to_string())
    }
}

/// Records, when it is dropped, that these acquisitions were.
pub(super) struct Abandoned<'a>(&'a Recorder, Vec<Deed>);

impl<'a> Abandoned<'a> {
    pub(super) fn of(recorder: &'a Recorder, invoked: impl Into<Vec<Deed>>) -> Self {
        Self(recorder, invoked.into())
    }

    pub(super) fn not(mut self) {
        self.1.clear();
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        for invoked in self.1.drain(..) {
            self.0.record(Deed {
                phase: Phase::Info,
                reason: Some("abandoned".into()),
                ..invoked
            });
        }
    }
}

/// The end of an acquisition without a guard. One that timed out may have been granted by a request
/// without a received answer.
fn refused(invoked: Deed, error: &AcquireError) -> Deed {
    let (because, cut_short) = match error {
        AcquireError::TimedOut { because, .. } => (&**because, true),
        other => (other, false),
    };
    let unknown = cut_short || error.effect() == Effect::Unknown;
    Deed {
        phase: if unknown { Phase::Info } else { Phase::Fail },
        answer: match because {
            AcquireError::Held { .. } => Some(Answer::Held),
            AcquireError::Grace { .. } => Some(Answer::Grace),
            _ => None,
        },
        reason: Some(because.to_string()),
        ..invoked
    }
}
