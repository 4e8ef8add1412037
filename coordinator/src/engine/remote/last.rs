//! Releases after the end of the runtime: no task of the session sends them any more. A thread does, over a connection of its
//! own, and the drop waits for it: the process may end right after.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use tokio::{
    runtime,
    time::{sleep, timeout},
};

use super::{super::ring::LAST_WITHIN, Remote, session::Session, task::exchange};
use crate::clock::Instant;

/// Between two looks at what is left.
const LOOK: Duration = Duration::from_millis(2);

const THREAD: &str = "ringfence-last";

/// Where the last releases of a session go.
pub(super) struct Orphaned {
    /// None: a thread sends them.
    remote: Option<Arc<Remote>>,
    /// Drops wait for their releases until then.
    until: Instant,
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
            session.table.lock().orphaned = Some(Orphaned {
                remote: Some(remote.clone()),
                until: session.now() + LAST_WITHIN,
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
        // What the thread is told may itself release something.
        if thread::current().name() == Some(THREAD) {
            return;
        }
        let Some((until, is_done)) = self.begin_last() else {
            return;
        };
        let left = until.since(self.now());
        if is_done.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!(
                "last releases take longer than {LAST_WITHIN:?}; the locks may last until their leases end"
            );
        }
    }

    /// Starts the thread for the first of them. Returns until when to wait, and for what.
    fn begin_last(self: &Arc<Self>) -> Option<(Instant, mpsc::Receiver<()>)> {
        let mut table = self.table.lock();
        let is_any = table.releasing() > 0;
        let orphaned = table.orphaned.as_mut().filter(|_| is_any)?;
        let (done, is_done) = mpsc::channel();
        orphaned.waiting.push(done);
        let until = orphaned.until;
        if let Some(remote) = orphaned.remote.take() {
            let begun = begin(remote, self.clone(), until).inspect_err(|error| {
                tracing::warn!(%error, "last releases not sent; the locks expire");
            });
            begun.ok()?;
        }
        Some((until, is_done))
    }
}

/// Starts the thread, which ends at `until`.
fn begin(remote: Arc<Remote>, session: Arc<Session>, until: Instant) -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let thread = thread::Builder::new().name(THREAD.into());
    let sending = async move {
        let left = until.since(session.now());
        // What is not answered by then is not waited for either.
        let _ = timeout(left, send(&remote, &session)).await;
    };
    thread.spawn(move || runtime.block_on(sending)).map(drop)
}

/// Sends releases, also those that come later, until it is dropped.
async fn send(remote: &Arc<Remote>, session: &Arc<Session>) {
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
