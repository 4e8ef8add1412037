//! The locks of a session, and what is wanted of them.

use std::{fmt, sync::Arc};

use ringfence_ring::ShardId;
use tokio::{
    runtime,
    sync::{Notify, oneshot},
};

use super::{
    super::{ReleaseAnswer, ring::Requests},
    SessionTerms,
    lease::RemoteLease,
    messages::Ask,
    table::{Entry, Ping, Release, Stage, Table, Todo},
};
use crate::{clock::Instant, sync::Mutex};

/// The locks of one lease and one label.
pub(super) struct Session {
    pub(super) terms: SessionTerms,
    pub(super) requests: Arc<Requests>,
    pub(super) runtime: runtime::Handle,
    /// The name of the coordinators, as of a shard.
    pub(super) shard: ShardId,
    pub(super) table: Mutex<Table>,
    /// Something is to be sent.
    pub(super) wake: Notify,
}

impl Session {
    pub(super) fn new(
        terms: SessionTerms,
        requests: Arc<Requests>,
        runtime: runtime::Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            terms,
            requests,
            runtime,
            shard: ShardId::new("coordinator").expect("it is a name of a shard"),
            table: Mutex::default(),
            wake: Notify::new(),
        })
    }

    pub(super) fn now(&self) -> Instant {
        self.requests.around.clock.now()
    }

    /// The number of releases without an answer.
    pub(super) fn releasing(&self) -> usize {
        self.table.lock().releasing()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.lock().entries.is_empty()
    }

    /// Whether there is something to send.
    pub(super) fn has_asks(&self) -> bool {
        !self.table.lock().todo.is_empty()
    }

    /// The asks for it.
    pub(super) fn take_asks(&self) -> Vec<Ask> {
        let now = self.now();
        self.table.lock().take_asks(now)
    }

    /// Requests `lease`.
    pub(super) fn ask(&self, lease: &Arc<RemoteLease>) {
        let (mut table, sequence) = (self.table.lock(), lease.sequence());
        if lease.state.is_over() || table.entries.contains_key(&sequence) {
            return;
        }
        let queues = lease.queues;
        let entry = Entry {
            lease: lease.clone(),
            ask: None,
            stage: Stage::Asked { queues },
            again_at: None,
        };
        table.entries.insert(sequence, entry);
        self.send(&mut table, Todo::Acquire(sequence));
    }

    /// Takes the request for `lease` back, with a grant that it may have got.
    pub(super) fn give_up(&self, lease: &Arc<RemoteLease>) {
        let (mut table, sequence) = (self.table.lock(), lease.sequence());
        let Some(entry) = table.entries.get(&sequence) else {
            return;
        };
        // It was not sent, or was refused, or its stream has ended.
        let is_out = table.is_open && entry.ask.is_some();
        if !is_out && matches!(entry.stage, Stage::Asked { .. }) {
            table.remove(sequence);
            return;
        }
        drop(table);
        self.release(lease, false, None);
    }

    /// Releases `lease`, which has ended.
    pub(super) fn release(
        &self,
        lease: &Arc<RemoteLease>,
        yields: bool,
        tell: Option<oneshot::Sender<ReleaseAnswer>>,
    ) {
        let until = self.now() + self.terms.0;
        let (mut table, sequence) = (self.table.lock(), lease.sequence());
        let Some(entry) = table.entries.get_mut(&sequence) else {
            return;
        };
        let handle = match &mut entry.stage {
            Stage::Asked { .. } => None,
            Stage::Held { handle, .. } => Some(std::mem::take(handle)),
            Stage::Releasing(_) => return,
        };
        entry.stage = Stage::Releasing(Release {
            handle,
            until,
            sent: 0,
            tell,
            yields,
        });
        entry.again_at = None;
        self.send(&mut table, Todo::Release(sequence));
    }

    /// Renews all locks, or makes the holder of `lease` a reader if that is wanted.
    pub(super) fn renew(&self, lease: &Arc<RemoteLease>) {
        let now = self.now();
        let (mut table, sequence) = (self.table.lock(), lease.sequence());
        match table.entries.get(&sequence) {
            Some(entry) if entry.is_to_be_downgraded() => {
                self.send(&mut table, Todo::Downgrade(sequence));
            }
            Some(_) => self.ping(&mut table, now),
            None => {}
        }
    }

    /// Renews all locks, unless a ping is under way.
    pub(super) fn ping(&self, table: &mut Table, now: Instant) {
        if table.is_open && table.ping.is_none() {
            table.ping = Some(Ping { id: 0, since: now });
            table.last_ping = now;
            self.send(table, Todo::Ping);
        }
    }

    /// Sends it with the next message. Without a stream, the next one begins with all that is wanted.
    pub(super) fn send(&self, table: &mut Table, todo: Todo) {
        if table.is_open {
            table.todo.push(todo);
            self.wake.notify_one();
        }
    }

    /// A stream begins: resumes what is held, and asks again for the rest.
    pub(super) fn begin_stream(&self) {
        let now = self.now();
        self.table.lock().begin_stream(now);
        self.wake.notify_one();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Session({:?})", self.terms)
    }
}
