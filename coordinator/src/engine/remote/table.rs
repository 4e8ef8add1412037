//! The locks of a session and its present stream: what to send.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use hashbrown::HashMap;
use tokio::sync::oneshot;

use super::{
    super::{ReleaseAnswer, local::events},
    last::Orphaned,
    lease::RemoteLease,
    messages::Ask,
};
use crate::{clock::Instant, shard::LockMode};

/// The locks, and the present stream.
#[derive(Default)]
pub(super) struct Table {
    /// By their sequence numbers.
    pub(super) entries: BTreeMap<u64, Entry>,
    /// Whether there is a stream.
    pub(super) is_open: bool,
    /// Asks of the present stream about locks.
    pub(super) asked: HashMap<u64, (u64, About)>,
    /// What to send, in this order.
    pub(super) todo: Vec<Todo>,
    /// When the latest asks left, by their ids, which rise.
    sent: VecDeque<(u64, Instant)>,
    next: u64,
    /// The ping without an answer.
    pub(super) ping: Option<Ping>,
    pub(super) last_ping: Instant,
    /// How long the locks last without a ping, by the last answers: less than the lease where views of the topology are
    /// shorter than that.
    pub(super) valid_for: Option<Duration>,
    pub(super) last_told: Instant,
    /// The task of the session has ended with its runtime.
    pub(super) orphaned: Option<Orphaned>,
}

/// What an ask is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    Lock,
    Release,
    Downgrade,
}

/// Something to send, about the lock with this sequence number.
pub(super) enum Todo {
    Acquire(u64),
    Resume(u64),
    Release(u64),
    Downgrade(u64),
    /// Releases a grant that came too late, by the id of its ask.
    GiveBack(u64),
    Ping,
}

pub(super) struct Ping {
    pub(super) id: u64,
    pub(super) since: Instant,
}

/// One lock.
pub(super) struct Entry {
    pub(super) lease: Arc<RemoteLease>,
    /// The ask that names it in the present stream.
    pub(super) ask: Option<u64>,
    pub(super) stage: Stage,
    /// What was refused is asked for again at this time.
    pub(super) again_at: Option<Instant>,
}

pub(super) enum Stage {
    /// Requested; with `queues`, for as long as it takes.
    Asked {
        queues: bool,
    },
    Held {
        handle: Vec<u8>,
        /// The coordinator of the present stream has it.
        is_here: bool,
        /// A coordinator knows that it is a reader's.
        is_downgraded: bool,
    },
    Releasing(Release),
}

/// A lock that is to be released.
pub(super) struct Release {
    /// None: it was waited for.
    pub(super) handle: Option<Vec<u8>>,
    /// Its record has ended by then.
    pub(super) until: Instant,
    /// How many requests for the release were sent: an earlier one may have released it.
    pub(super) sent: u32,
    pub(super) tell: Option<oneshot::Sender<ReleaseAnswer>>,
    /// The local queue is told when it is over.
    pub(super) yields: bool,
}

impl Entry {
    /// Whether its coordinator is to learn that its writer is a reader.
    pub(super) fn is_to_be_downgraded(&self) -> bool {
        let was_writer = self.lease.state.terms.mode == LockMode::Write;
        let is_reader = was_writer && self.lease.state.mode() == LockMode::Read;
        is_reader
            && matches!(
                self.stage,
                Stage::Held {
                    is_here: true,
                    is_downgraded: false,
                    ..
                }
            )
    }
}

impl Table {
    /// What is held is resumed, and the rest is asked for again.
    pub(super) fn begin_stream(&mut self, now: Instant) {
        self.todo.clear();
        for (&sequence, entry) in &mut self.entries {
            entry.ask = None;
            entry.again_at = None;
            self.todo.push(match &mut entry.stage {
                Stage::Asked { .. } => Todo::Acquire(sequence),
                Stage::Held { is_here, .. } => {
                    *is_here = false;
                    Todo::Resume(sequence)
                }
                Stage::Releasing(_) => Todo::Release(sequence),
            });
        }
        self.asked.clear();
        self.sent.clear();
        self.ping = None;
        self.valid_for = None;
        self.last_ping = now;
        self.is_open = true;
    }

    /// The asks for all that is to be sent, which leaves at `now` or later.
    pub(super) fn take_asks(&mut self, now: Instant) -> Vec<Ask> {
        let todo = std::mem::take(&mut self.todo);
        let mut asks = Vec::with_capacity(todo.len());
        for todo in todo {
            self.push_asks(todo, now, &mut asks);
        }
        asks
    }

    fn push_asks(&mut self, todo: Todo, now: Instant, asks: &mut Vec<Ask>) {
        match todo {
            Todo::Ping => {
                let id = self.new_id(now);
                if let Some(ping) = &mut self.ping {
                    ping.id = id;
                }
                asks.push(Ask::Ping { id });
            }
            Todo::GiveBack(lock) => {
                let id = self.new_id(now);
                asks.push(Ask::Release { id, lock });
            }
            Todo::Acquire(sequence) => self.acquire(sequence, now, asks),
            Todo::Resume(sequence) => {
                let handle = match self.entries.get(&sequence).map(|entry| &entry.stage) {
                    Some(Stage::Held { handle, .. }) => handle.clone(),
                    _ => return,
                };
                let id = self.new_ask(sequence, About::Lock, now);
                asks.push(Ask::Resume { id, handle });
            }
            Todo::Release(sequence) => self.release(sequence, now, asks),
            Todo::Downgrade(sequence) => {
                if let Some(lock) = self.entries.get(&sequence).and_then(|entry| entry.ask) {
                    let id = self.new_ask(sequence, About::Downgrade, now);
                    asks.push(Ask::Downgrade { id, lock });
                }
            }
        }
    }

    fn acquire(&mut self, sequence: u64, now: Instant, asks: &mut Vec<Ask>) {
        let Some(Entry {
            lease,
            stage: Stage::Asked { queues },
            ..
        }) = self.entries.get(&sequence)
        else {
            return;
        };
        let (lease, queues) = (lease.clone(), *queues);
        let id = self.new_ask(sequence, About::Lock, now);
        let state = &lease.state;
        events::asking(state, now);
        asks.push(Ask::Acquire {
            id,
            nonce: state.nonce,
            key: state.key.clone(),
            mode: state.terms.mode,
            tokens: state.tokens,
            preferred: state.terms.preferred,
            hold_for: state.terms.hold_for,
            queues,
        });
    }

    fn release(&mut self, sequence: u64, now: Instant, asks: &mut Vec<Ask>) {
        let Some(Entry {
            ask,
            stage: Stage::Releasing(release),
            ..
        }) = self.entries.get(&sequence)
        else {
            return;
        };
        let lock = match (*ask, release.handle.clone()) {
            (Some(lock), _) => lock,
            (None, Some(handle)) => {
                let id = self.new_ask(sequence, About::Lock, now);
                asks.push(Ask::Resume { id, handle });
                id
            }
            // Its wait has ended with the stream.
            (None, None) => {
                self.remove(sequence);
                return;
            }
        };
        let id = self.new_ask(sequence, About::Release, now);
        asks.push(Ask::Release { id, lock });
        let entry = self.entries.get_mut(&sequence);
        if let Some(Stage::Releasing(release)) = entry.map(|entry| &mut entry.stage) {
            release.sent += 1;
        }
    }

    fn new_id(&mut self, now: Instant) -> u64 {
        self.next += 1;
        self.sent.push_back((self.next, now));
        self.next
    }

    fn new_ask(&mut self, sequence: u64, about: About, now: Instant) -> u64 {
        let id = self.new_id(now);
        self.asked.insert(id, (sequence, about));
        if about == About::Lock
            && let Some(entry) = self.entries.get_mut(&sequence)
        {
            entry.ask = Some(id);
        }
        id
    }

    /// Removes a lock of which nothing is wanted any more.
    pub(super) fn remove(&mut self, sequence: u64) -> Option<Entry> {
        let entry = self.entries.remove(&sequence)?;
        if let Some(id) = entry.ask {
            self.asked.remove(&id);
        }
        let is_done = self.orphaned.is_some() && self.releasing() == 0;
        if let Some(orphaned) = self.orphaned.as_mut().filter(|_| is_done) {
            orphaned.released_all();
        }
        Some(entry)
    }

    /// The number of releases without an answer.
    pub(super) fn releasing(&self) -> usize {
        let releasing = |entry: &&Entry| matches!(entry.stage, Stage::Releasing(_));
        self.entries.values().filter(releasing).count()
    }

    /// When the ask `id` left. Answers to come count from later ones.
    pub(super) fn sent_at(&mut self, id: u64) -> Option<Instant> {
        while self.sent.front().is_some_and(|(first, _)| *first < id) {
            self.sent.pop_front();
        }
        let (first, sent) = self.sent.front()?;
        (*first == id).then_some(*sent)
    }

    /// The lock that the ask `id` names.
    pub(super) fn named(&mut self, id: u64) -> Option<&mut Entry> {
        let (sequence, about) = *self.asked.get(&id)?;
        let entry = self.entries.get_mut(&sequence)?;
        (about == About::Lock && entry.ask == Some(id)).then_some(entry)
    }
}
