//! Releases after the end of the runtime: no task of the session sends them any more. A thread does, over a connection of its
//! own, and the drop waits for it: the process may end right after.

use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use tokio::time::{sleep, timeout};

use super::{
    super::ring::last_releases::{WITHIN, on_thread, wait},
    Remote,
    session::Session,
    task::exchange,
};
use crate::clock::Instant;

/// Between two looks at what is left.
const LOOK: Duration = Duration::from_millis(2);

/// Where the last releases of a session go.
pub(super) struct Orphaned {
    remote: Arc<Remote>,
    /// Drops wait for their releases until then.
    until: Instant,
    /// Sends the releases. Started for the first one.
    thread: Option<ThreadId>,
    /// Dropped once nothing is left to release.
    waiting: Vec<mpsc::Sender<()>>,
}

/// Dropped with the task of a session: by the end of the runtime, unless the task was done before.
pub(super) struct UntilDone<'a>(Option<(&'a Arc<Remote>, &'a Arc<Session>)>);

impl<'a> UntilDone<'a> {
    pub(super) fn of(remote: &'a Arc<Remote>, session: &'a Arc<Session>) -> Self {
        Self(Some((remote, session)))
    }

    pub(super) fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for UntilDone<'_> {
    fn drop(&mut self) {
        if let Some((remote, session)) = self.0 {
            // Or each would keep the other.
            remote.forget(session);
            session.table.lock().orphaned = Some(Orphaned {
                remote: remote.clone(),
                until: session.now() + WITHIN,
                thread: None,
                waiting: Vec::new(),
            });
            session.send_last();
        }
    }
}

impl Orphaned {
    /// Nothing is left to release.
    pub(super) fn released_all(&mut self) {
        self.waiting.clear();
    }
}

impl Session {
    /// If no task does that any more, has a thread send the releases, and waits for the answers, but not for long.
    pub(super) fn send_last(self: &Arc<Self>) {
        if let Some((until, is_done)) = self.begin_last() {
            wait(&is_done, until.since(self.now()));
        }
    }

    /// Starts the thread for the first of them. Returns until when to wait, and for what.
    fn begin_last(self: &Arc<Self>) -> Option<(Instant, Receiver<()>)> {
        let mut table = self.table.lock();
        // Before the releases are counted: nearly every session has its task.
        table.orphaned.as_ref()?;
        let is_any = table.releasing() > 0;
        let orphaned = table.orphaned.as_mut().filter(|_| is_any)?;
        let until = orphaned.until;
        let thread = orphaned.thread.or_else(|| {
            let sending = send(orphaned.remote.clone(), self.clone(), until);
            on_thread(sending)
        });
        orphaned.thread = thread;
        // What the thread is told may itself release something.
        thread.filter(|thread| *thread != thread::current().id())?;
        let (done, is_done) = mpsc::channel();
        orphaned.waiting.push(done);
        Some((until, is_done))
    }
}

/// Sends releases, also those that come later. What is not answered `until` then is not waited for either.
async fn send(remote: Arc<Remote>, session: Arc<Session>, until: Instant) {
    let left = until.since(session.now());
    let _ = timeout(left, send_all(&remote, &session)).await;
}

async fn send_all(remote: &Remote, session: &Arc<Session>) {
    let coordinators = match remote.coordinators.afresh() {
        Ok(coordinators) => coordinators,
        Err(error) => return tracing::warn!(%error, "last releases not sent; the locks expire"),
    };
    let (lease, label) = &session.terms;
    loop {
        if session.releasing() > 0
            && let Ok(connection) = coordinators.open(*lease, label).await
        {
            session.begin_stream();
            exchange(remote, session, connection).await;
        }
        sleep(LOOK).await;
    }
}
