//! Locks that coordinators grant: the [`Authority`] of a process that reaches no shard.
//!
//! ```text
//! LocalQueues ─► RemoteLease ─► Session: what is wanted of each lock ─► task ─► Coordinators: a stream
//! LocalQueues ◄─────────────── Session ◄─ answers ◄─ task ◄─┘
//! ```
//!
//! A session has the locks of one lease and one label, and one ping renews all of them. If its stream ends, the task
//! opens another one, at any coordinator, resumes there what is held, and asks again for what is waited for.
//!
//! | file | content |
//! |---|---|
//! | `messages.rs` | what a process and a coordinator tell each other, as values |
//! | `lease.rs` | one acquisition |
//! | `session.rs` | a session: what its locks ask for |
//! | `table.rs` | its locks and its present stream: what to send |
//! | `answers.rs` | what a coordinator tells |
//! | `last.rs` | the last releases, once the runtime has ended |
//! | `looks.rs` | what is due as time passes |
//! | `task.rs` | one stream after the other |

mod answers;
mod last;
mod lease;
mod looks;
mod messages;
mod session;
mod table;
mod task;

use std::{sync::Arc, time::Duration};

use hashbrown::HashMap;
use tokio::{runtime, time::sleep};

use self::{lease::RemoteLease, session::Session};
use super::{
    AcquireError,
    local::{Authority, Flushing, Lease, LeaseState, Terms},
    ring::Requests,
};
use crate::{
    limits::SESSION_TOKENS_MAX,
    name::{Label, LockKey},
    sync::Mutex,
};
pub use messages::{Ask, Connection, CoordinatorError, Coordinators, Told};

/// Pairs of a lease and a label in use at the same time, at most: each has a stream.
const SESSIONS_MAX: usize = 64;

/// How often a flush looks whether all releases are answered.
const FLUSH_LOOK: Duration = Duration::from_millis(5);

/// The lease and the label of the locks of a session.
type SessionTerms = (Duration, Label);

/// Coordinators, which grant locks to this process.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(super) coordinators: Arc<dyn Coordinators>,
    pub(super) requests: Arc<Requests>,
    sessions: Mutex<HashMap<SessionTerms, Arc<Session>>>,
    /// Of the engine's tasks: a session may begin on any thread.
    runtime: runtime::Handle,
}

impl Remote {
    /// Locks of `coordinators`. The numbers, the clock and the tasks are those of `requests`.
    pub(crate) fn new(coordinators: Arc<dyn Coordinators>, requests: Arc<Requests>) -> Arc<Self> {
        Arc::new(Self {
            coordinators,
            requests,
            sessions: Mutex::default(),
            runtime: runtime::Handle::current(),
        })
    }

    /// The session of locks with those terms, which may be new.
    fn session(self: &Arc<Self>, terms: &Terms) -> Result<Arc<Session>, AcquireError> {
        let its = (terms.lease, terms.label.clone());
        let mut sessions = self.sessions.lock();
        if let Some(session) = sessions.get(&its) {
            return Ok(session.clone());
        }
        if sessions.len() >= SESSIONS_MAX {
            let message =
                format!("{SESSIONS_MAX} pairs of a lease and a label are in use: use fewer");
            return Err(CoordinatorError::refused(message).into());
        }
        let session = Session::new(its.clone(), self.requests.clone(), self.runtime.clone());
        sessions.insert(its, session.clone());
        let running = task::run(self.clone(), session.clone());
        self.requests.around.tasks.spawn_on(running, &self.runtime);
        Ok(session)
    }

    /// Ends `session`, unless it has a lock. Returns whether it did.
    fn end(&self, session: &Arc<Session>) -> bool {
        let mut sessions = self.sessions.lock();
        // The table's, and that of the session's task: every lock has one more.
        let ends = Arc::strong_count(session) == 2;
        if ends {
            sessions.remove(&session.terms);
        }
        ends
    }

    /// The task of `session` has ended with its runtime.
    fn forget(&self, session: &Session) {
        self.sessions.lock().remove(&session.terms);
    }

    /// The number of releases without an answer.
    fn releasing(&self) -> usize {
        let sessions = self.sessions.lock();
        sessions.values().map(|session| session.releasing()).sum()
    }
}

/// The authority of an engine.
#[derive(Debug)]
pub(crate) struct Service(pub(crate) Arc<Remote>);

impl Authority for Service {
    fn begin(
        &self,
        key: &LockKey,
        terms: Terms,
        tokens: u32,
        callers: u32,
    ) -> Result<Arc<dyn Lease>, AcquireError> {
        let Self(remote) = self;
        let requests = &remote.requests;
        requests.add_one().map_err(AcquireError::TooManyHeld)?;
        let session = remote
            .session(&terms)
            .inspect_err(|_| requests.remove_one())?;
        let nonce = requests.next_nonce();
        // More are refused: a caller may not use up the tokens of a shard.
        let tokens = tokens.min(SESSION_TOKENS_MAX);
        let state = LeaseState::new(key.clone(), nonce, terms, tokens, &requests.around.view);
        Ok(Arc::new(RemoteLease::new(state, session, callers > 0)))
    }

    fn flush(&self, grace: Duration) -> Flushing {
        let Self(remote) = self;
        let (remote, clock) = (remote.clone(), remote.requests.around.clock.clone());
        Box::pin(async move {
            let until = clock.now() + grace;
            loop {
                let left = remote.releasing();
                if left == 0 || clock.now() >= until {
                    return left;
                }
                sleep(FLUSH_LOOK).await;
            }
        })
    }

    fn shut_down(&self) {
        self.0.requests.around.stop.cancel();
    }
}
