//! One session: its locks and waits, their events, and the answers.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, future::AbortHandle, stream::FuturesUnordered};
use hashbrown::{HashMap, HashSet};
use ringfence_api::{
    Error,
    v1::{
        Answer, Ask, ContendedNotice, DowngradeNotice, Drain, Grant, LockBehind, LossNotice, Pong,
        Refusal, ReleaseNotice, SessionRequest, SessionResponse, answer::Kind,
    },
};
use ringfence_client::{DetachedLease, LeaseRef};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};
use tonic::{Status, Streaming};

use super::{
    Shared,
    work::{self, Event, Reasons, Work},
};
use crate::{
    access::Caller,
    fields::to_length,
    locks::{Told, outcome, valid_for},
    too_long,
};

/// Pings without an answer, at most: then nothing more is read.
const PINGS_MAX: usize = 16;

/// Answers in one message, at most, and that are made before they are sent.
const ANSWERS_MAX: usize = 256;

/// Releases and downgrades without an answer, at most: then no more asks are looked at.
const BEGUN_MAX: usize = 1024;

/// The terms of all its locks.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) ttl: Duration,
    pub(super) label: String,
}

/// The state of an ask for a lock.
pub(super) enum Entry {
    Waits { abort: AbortHandle, told: Told },
    Resumes { abort: AbortHandle, lease: LeaseRef },
    Held(Arc<DetachedLease>),
}

pub(super) struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) caller: Arc<Caller>,
    messages: Streaming<SessionRequest>,
    /// The asks of the last message that were not looked at yet.
    pub(super) asks: VecDeque<Ask>,
    /// Theirs.
    pub(super) room_for_asks: Option<OwnedSemaphorePermit>,
    /// None before the first message.
    pub(super) terms: Option<Terms>,
    /// By id of the ask.
    pub(super) entries: HashMap<u64, Entry>,
    /// The number of `Entry::Waits`.
    pub(super) waits: usize,
    pub(super) reasons: Arc<Reasons>,
    pub(super) work: FuturesUnordered<Work>,
    /// Pings without an answer.
    pub(super) pings: Vec<u64>,
    /// The earliest time of the next renewals.
    pub(super) renews_at: Instant,
    /// The id of the latest ask.
    pub(super) latest: u64,
    /// Locks that the caller knows to be contended.
    pub(super) contended: HashSet<u64>,
    drained: bool,
    /// Releases without an answer: the session does not end before they have one.
    pub(super) releasing: usize,
    pub(super) downgrading: usize,
    answers: Vec<Answer>,
}

impl Session {
    pub(super) fn new(
        shared: Arc<Shared>,
        caller: Arc<Caller>,
        messages: Streaming<SessionRequest>,
    ) -> Self {
        Self {
            shared,
            caller,
            messages,
            asks: VecDeque::new(),
            room_for_asks: None,
            terms: None,
            entries: HashMap::new(),
            waits: 0,
            reasons: Arc::default(),
            work: FuturesUnordered::new(),
            pings: Vec::new(),
            renews_at: Instant::now(),
            latest: 0,
            contended: HashSet::new(),
            drained: false,
            releasing: 0,
            downgrading: 0,
            answers: Vec::new(),
        }
    }

    /// The terms, which the first message has.
    pub(super) fn terms(&self) -> &Terms {
        self.terms.as_ref().expect("checked with every message")
    }

    /// The next answers; none: the stream has ended. Nothing is read while answers or asks wait.
    pub(super) async fn next(&mut self) -> Result<Option<SessionResponse>, Status> {
        loop {
            while self.has_room_for_an_ask()
                && let Some(ask) = self.asks.pop_front()
            {
                self.one(ask)?;
            }
            if self.asks.is_empty() {
                self.room_for_asks = None;
            }
            // New asks take their places in the order in which they came.
            while let Some(Some(event)) = self.work.next().now_or_never() {
                self.happened(event);
            }
            if !self.answers.is_empty() {
                let count = self.answers.len().min(ANSWERS_MAX);
                let answers = self.answers.drain(..count).collect();
                return Ok(Some(SessionResponse { answers }));
            }
            let (stopping, closing) = (&self.shared.stopping, &self.shared.closing);
            tokio::select! {
                biased;
                () = closing.cancelled(), if self.releasing == 0 => return Ok(None),
                () = stopping.cancelled(), if !self.drained => self.drain(),
                Some(event) = self.work.next() => self.happened(event),
                () = self.reasons.some.notified() => self.waiting(),
                message = self.messages.message(), if self.asks.is_empty() && self.has_room_for_an_ask() => {
                    match message {
                        Ok(Some(message)) => self.ask(message)?,
                        Ok(None) => return Ok(None),
                        // A message that cannot be read, or the end of the connection.
                        Err(status) => return Err(too_long::status(status)),
                    }
                }
            }
        }
    }

    /// Whether there is room for what one more ask may bring about: a caller's message is short, and what comes of it is not.
    fn has_room_for_an_ask(&self) -> bool {
        self.answers.len() < ANSWERS_MAX
            && self.pings.len() < PINGS_MAX
            && self.releasing + self.downgrading < BEGUN_MAX
    }

    pub(super) fn tell(&mut self, ask_id: u64, kind: Kind) {
        let kind = Some(kind);
        self.answers.push(Answer { ask_id, kind });
    }

    pub(super) fn refuse(&mut self, ask_id: u64, error: &Error) {
        let refusal = Refusal {
            error: Some(error.into()),
            message: error.message.clone(),
        };
        self.tell(ask_id, Kind::Refusal(refusal));
    }

    fn drain(&mut self) {
        self.drained = true;
        let grace = Some(to_length(self.shared.grace));
        self.tell(0, Kind::Drain(Drain { grace }));
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::TakenBack => {}
            Event::Granted(id, Ok(lease)) => self.granted(id, lease),
            Event::Granted(id, Err(error)) => {
                if let Some(Entry::Waits { .. }) = self.entries.remove(&id) {
                    self.waits -= 1;
                }
                self.refuse(id, &error);
            }
            Event::Released(id, answer) => {
                self.releasing -= 1;
                match answer.map(|answer| outcome(answer).into()) {
                    Ok(outcome) => self.tell(id, Kind::Release(ReleaseNotice { outcome })),
                    Err(error) => self.refuse(id, &error),
                }
            }
            Event::Downgraded(id, Ok(lease)) => {
                self.downgrading -= 1;
                let handle = self.handle(&lease);
                self.tell(id, Kind::Downgrade(DowngradeNotice { handle }));
            }
            Event::Downgraded(id, Err(error)) => {
                self.downgrading -= 1;
                self.refuse(id, &error);
            }
            Event::Contended(id, lease) => {
                if self.has(id, &lease) {
                    self.contended(id, &lease);
                    self.work.push(work::watch(id, lease));
                }
            }
            Event::Ended(id) => self.ended(id),
            Event::Renewed => self.renewed(),
        }
    }

    fn granted(&mut self, id: u64, lease: Arc<DetachedLease>) {
        let held = Entry::Held(lease.clone());
        if let Some(Entry::Waits { .. }) = self.entries.insert(id, held) {
            self.waits -= 1;
        }
        let grant = Grant {
            handle: self.handle(&lease),
            token: lease.token().get(),
            valid_for: Some(to_length(valid_for(&lease))),
            counted_from: self.latest,
            tokens: lease.tokens(),
        };
        self.work.push(work::watch_others(id, lease));
        self.tell(id, Kind::Grant(grant));
    }

    fn handle(&self, lease: &DetachedLease) -> Vec<u8> {
        let caller = self.caller.name();
        self.shared.handles.seal(&lease.reference(), caller)
    }

    /// Whether `lease` is still the lock of ask `id`.
    fn has(&self, id: u64, lease: &Arc<DetachedLease>) -> bool {
        matches!(self.entries.get(&id), Some(Entry::Held(held)) if Arc::ptr_eq(held, lease))
    }

    /// Tells that another caller waits for the lock of ask `id`, unless that is known.
    fn contended(&mut self, id: u64, lease: &DetachedLease) {
        if lease.is_contended() && self.contended.insert(id) {
            self.tell(id, Kind::Contended(ContendedNotice {}));
        }
    }

    /// The lock of ask `id` has ended, unless the id has another lock by now.
    fn ended(&mut self, id: u64) {
        if let Some(Entry::Held(lease)) = self.entries.get(&id)
            && !lease.is_held()
        {
            self.entries.remove(&id);
            self.contended.remove(&id);
            self.tell(id, Kind::Loss(LossNotice {}));
        }
    }

    /// The shards have answered the renewals.
    fn renewed(&mut self) {
        let held = self.entries.iter().filter_map(|(id, entry)| match entry {
            Entry::Held(lease) => Some((*id, lease.clone())),
            Entry::Waits { .. } | Entry::Resumes { .. } => None,
        });
        let mut pong = Pong::default();
        let mut least = None;
        for (id, lease) in held.collect::<Vec<_>>() {
            let left = valid_for(&lease);
            if left.is_zero() {
                self.ended(id);
                continue;
            }
            if left >= lease.reference().lease * 2 / 3 {
                least = Some(least.map_or(left, |least: Duration| least.min(left)));
            } else {
                pong.behind.push(LockBehind {
                    ask_id: id,
                    valid_for: Some(to_length(left)),
                });
            }
            self.contended(id, &lease);
        }
        pong.valid_for = least.map(to_length);
        for id in std::mem::take(&mut self.pings) {
            self.tell(id, Kind::Pong(pong.clone()));
        }
    }

    /// Tells new reasons to wait.
    fn waiting(&mut self) {
        for (id, waiting) in self.reasons.take() {
            if let Some(Entry::Waits { told, .. }) = self.entries.get_mut(&id)
                && let Some(notice) = told.news(waiting)
            {
                self.tell(id, Kind::Wait(notice));
            }
        }
    }
}
