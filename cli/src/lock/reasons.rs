//! Reports on stderr why the lock is not granted yet.

use std::{
    convert::Infallible, ffi::OsStr, fmt, fmt::Write as _, os::unix::ffi::OsStrExt as _,
    time::Duration,
};

use ringfence_client::{AcquireError, Inspection, ShardError, Waiting};
use ringfence_coordinator::name::Printed;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::error::{NEW_SERVER, has_answered};
use crate::say;

/// A wait shorter than this is not worth a line.
const SILENT_FOR: Duration = Duration::from_millis(500);

/// Shortest time between two lines.
const EVERY: Duration = Duration::from_secs(3);

/// The reason for the wait.
#[derive(Clone, Debug)]
pub(super) enum Reason {
    /// No topology is known yet.
    Connecting(String),
    /// The lock is not granted yet.
    Waiting(Waiting),
}

/// The latest reason.
#[derive(Clone, Debug)]
pub(super) struct Reasons {
    latest: watch::Sender<Option<Reason>>,
    /// What to say of a holder.
    of_holder: String,
}

impl Reasons {
    /// `nested`: a key that is held by what this process runs under.
    pub(super) fn new(nested: Option<&OsStr>) -> Self {
        let of_holder = nested.map(|key| {
            let key = Printed(key.as_bytes());
            format!("; a ringfence lock that this one runs under has {key}: it may wait for itself")
        });
        Self {
            latest: watch::Sender::new(None),
            of_holder: of_holder.unwrap_or_default(),
        }
    }

    pub(super) fn set(&self, reason: Reason) {
        self.latest.send_replace(Some(reason));
    }

    /// Prints each new reason, while it is polled. A lock of several holders is refused without their names: `look` says
    /// who they are.
    pub(super) async fn tell(&self, look: impl AsyncFn() -> Option<Inspection>) -> Infallible {
        let mut latest = self.latest.subscribe();
        let mut told: Option<Reason> = None;
        sleep(SILENT_FOR).await;
        loop {
            let reason = latest.borrow_and_update().clone();
            match reason {
                Some(new) if !told.as_ref().is_some_and(|told| told.is_same_as(&new)) => {
                    let line = match &new {
                        Reason::Waiting(waiting @ Waiting::Held { ahead, .. }) => {
                            let found = look().await;
                            let shares = found.and_then(|found| shares(&found, *ahead));
                            let held = shares.unwrap_or_else(|| waiting.to_string());
                            format!("{held}{}", self.of_holder)
                        }
                        new => new.to_string(),
                    };
                    say(&format!("waiting: {line}"));
                    told = Some(new);
                    sleep(EVERY).await;
                }
                _ => latest.changed().await.expect("this has a sender"),
            }
        }
    }

    /// Waits until no shard has answered for `length` from now. Returns the error met instead. A shard that has
    /// answered once exists, and is worth waiting for.
    pub(super) async fn nobody_answers(&self, length: Duration) -> AcquireError {
        let mut latest = self.latest.subscribe();
        let answered = latest.wait_for(|reason| reason.as_ref().is_some_and(Reason::is_answer));
        if matches!(timeout(length, answered).await, Ok(Ok(_))) {
            std::future::pending().await
        }
        match &*self.latest.borrow() {
            Some(Reason::Waiting(Waiting::Trouble { error, .. })) => error.clone(),
            _ => AcquireError::Shard(ShardError::NoReply {
                reason: format!("none in {length:?}"),
            }),
        }
    }
}

/// Who holds shares of a lock, and what the first waiter asks for, if the caller has `ahead` waiters before it.
fn shares(found: &Inspection, ahead: Option<u32>) -> Option<String> {
    let holder = found.holder.as_ref()?;
    let part = holder.part()?;
    let mut line = format!("held by {} ({part})", holder.label);
    if !found.others.is_empty() {
        write!(line, " and {} more", found.others.len()).expect("text grows");
    }
    let first = found.waiters.first().filter(|_| ahead != Some(0));
    if let Some(first) = first
        && let Some(part) = first.part()
    {
        write!(line, "; first in the queue: {} ({part})", first.label).expect("text grows");
    }
    Some(line)
}

impl Reason {
    fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Connecting(one), Self::Connecting(other)) => one == other,
            (Self::Waiting(one), Self::Waiting(other)) => one.is_same_as(other),
            _ => false,
        }
    }

    /// Whether a shard answered, possibly with a refusal.
    fn is_answer(&self) -> bool {
        match self {
            Self::Connecting(_) => false,
            Self::Waiting(Waiting::Trouble { error, .. }) => has_answered(error),
            Self::Waiting(_) => true,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting(obstacle) => formatter.write_str(obstacle),
            Self::Waiting(waiting @ Waiting::Grace { new: true, .. }) => {
                write!(formatter, "{waiting}{NEW_SERVER}")
            }
            Self::Waiting(waiting) => waiting.fmt(formatter),
        }
    }
}
