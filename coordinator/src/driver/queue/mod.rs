//! The requests that wait for a lane.

#[cfg(test)]
mod interleavings;

use std::collections::VecDeque;

use tokio::sync::Notify;

use super::{Respond, load::Load};
use crate::{
    ids::{Life, MapVersion},
    limits::QUEUE_MAX,
    shard::{ConnectionId, ShardError},
    sync::Mutex,
};

/// Requests in order of arrival. Requests that begin something are refused beyond [`QUEUE_MAX`].
/// Renewals and releases are not refused: there is at most one per held lock.
#[derive(Debug)]
pub(super) struct Queue<L: Load> {
    batch_max: usize,
    state: Mutex<State<L>>,
    ready: Notify,
}

#[derive(Debug)]
struct State<L: Load> {
    waiting: VecDeque<(L, Respond<L::Reply>)>,
    /// The reason why nothing can be sent, if so.
    down: Option<ShardError>,
    /// The reason why new requests are refused, if so.
    refusing: Option<ShardError>,
    /// The last connection over which a request was sent.
    connection: Option<(Life, ConnectionId)>,
    /// No request is sent over a connection of this lane any more.
    taken_over: bool,
}

/// The reason why a batch is dropped before its answers.
pub(super) const PANICKED: &str = "the backend panicked";

/// The parts of one batch, as parallel lists.
#[derive(Debug)]
pub(super) struct Batch<L: Load> {
    pub(super) requests: Vec<L>,
    pub(super) responds: Vec<Respond<L::Reply>>,
}

impl<L: Load> Default for State<L> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            down: None,
            refusing: None,
            connection: None,
            taken_over: false,
        }
    }
}

impl<L: Load> Default for Batch<L> {
    fn default() -> Self {
        Self {
            requests: Vec::new(),
            responds: Vec::new(),
        }
    }
}

impl<L: Load> Batch<L> {
    /// Answers every request with `error`.
    pub(super) fn fail(&mut self, error: &ShardError) {
        self.requests.clear();
        self.responds
            .drain(..)
            .for_each(|respond| respond.respond(Err(error.clone())));
    }
}

impl<L: Load> Drop for Batch<L> {
    /// The outcome of an unanswered request is unknown, and its caller gets this answer.
    fn drop(&mut self) {
        self.fail(&ShardError::NoReply {
            reason: PANICKED.into(),
        });
    }
}

impl<L: Load> Queue<L> {
    /// A queue with batches of at most `batch_max` requests.
    pub(super) fn new(batch_max: usize) -> Self {
        Self {
            batch_max: batch_max.max(1),
            state: Mutex::default(),
            ready: Notify::new(),
        }
    }

    /// Waits until a request was added.
    pub(super) async fn asked(&self) {
        while self.state.lock().waiting.is_empty() {
            self.ready.notified().await;
        }
        self.ready.notify_one();
    }

    /// Adds a request, or returns `respond` with the reason.
    pub(super) fn push(
        &self,
        request: L,
        respond: Respond<L::Reply>,
    ) -> Result<(), (Respond<L::Reply>, ShardError)> {
        let mut state = self.state.lock();
        let refusal = match &state.down {
            Some(error) => Some(error.clone()),
            None if request.is_new() => state.refusing.clone().or_else(|| full(&state)),
            None => None,
        };
        if let Some(error) = refusal {
            return Err((respond, error));
        }
        state.waiting.push_back((request, respond));
        let first = state.waiting.len() == 1;
        drop(state);
        if first {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// Refuses waiting and new requests, because of `error`.
    pub(super) fn close(&self, error: &ShardError) {
        let waiting = {
            let mut state = self.state.lock();
            state.down = Some(error.clone());
            std::mem::take(&mut state.waiting)
        };
        waiting
            .into_iter()
            .for_each(|(_, respond)| respond.respond(Err(error.clone())));
    }

    /// Refuses new requests because of `error`, or accepts them again.
    pub(super) fn refuse_new(&self, error: Option<&ShardError>) {
        self.state.lock().refusing = error.cloned();
    }

    /// Accepts requests again, to be sent over `connection`. Returns whether this is allowed: not
    /// after a take-over.
    pub(super) fn open(&self, connection: (Life, ConnectionId)) -> bool {
        let mut state = self.state.lock();
        if state.taken_over {
            return false;
        }
        state.down = None;
        state.connection = Some(connection);
        true
    }

    /// The last connection over which a request was sent.
    pub(super) fn connection(&self) -> Option<(Life, ConnectionId)> {
        self.state.lock().connection.clone()
    }

    /// Refuses waiting and new requests, permanently. Returns the last connection over which a
    /// request was sent: once that has ended, no request of this queue reaches the shard.
    pub(super) fn take_over(&self) -> Option<(Life, ConnectionId)> {
        self.state.lock().taken_over = true;
        self.close(&closed());
        self.connection()
    }

    /// Whether requests can be sent.
    pub(super) fn is_open(&self) -> bool {
        let state = self.state.lock();
        state.down.is_none() && state.connection.is_some()
    }

    /// Whether enough requests wait to fill a batch.
    pub(super) fn fills_a_batch(&self) -> bool {
        self.state.lock().waiting.len() >= self.batch_max
    }

    /// Waits for requests and moves as many as allowed into `batch`: those of one map version
    /// together, and those without a version last.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes nothing.
    pub(super) async fn gather(&self, batch: &mut Batch<L>) {
        while !self.take(batch) {
            self.ready.notified().await;
        }
    }

    /// Moves waiting requests into `batch`; returns whether there were any.
    pub(super) fn take(&self, batch: &mut Batch<L>) -> bool {
        let mut too_late = Vec::new();
        let taken = self.take_all_but(&mut too_late, batch);
        // Without the lock: what they call may ask for others.
        for respond in too_late {
            respond.respond(Err(ShardError::Unreachable {
                reason: "its lease was over before it was sent".into(),
            }));
        }
        taken
    }

    /// The same. Renewals of leases that are over go into `too_late`.
    fn take_all_but(&self, too_late: &mut Vec<Respond<L::Reply>>, batch: &mut Batch<L>) -> bool {
        let mut state = self.state.lock();
        let mut map = MapVersion::UNKNOWN;
        // Requests with another map version than the first, or with none. They go behind the
        // others, in their order, followed by later requests for the same keys.
        let mut aside: Vec<(L, Respond<L::Reply>)> = Vec::new();
        while batch.requests.len() + aside.len() < self.batch_max
            && let Some((request, respond)) = state.waiting.pop_front()
        {
            let nobody_waits = matches!(&respond, Respond::Caller(caller) if caller.is_closed());
            if nobody_waits && request.is_new() {
                continue;
            }
            if respond.is_too_late() {
                too_late.push(respond);
                continue;
            }
            if map == MapVersion::UNKNOWN {
                map = request.map();
            }
            let goes_first = map != MapVersion::UNKNOWN && map == request.map();
            if !goes_first || aside.iter().any(|(its, _)| its.key() == request.key()) {
                aside.push((request, respond));
                continue;
            }
            batch.requests.push(request);
            batch.responds.push(respond);
        }
        let (requests, responds): (Vec<_>, Vec<_>) = aside.into_iter().unzip();
        batch.requests.extend(requests);
        batch.responds.extend(responds);
        if !state.waiting.is_empty() {
            self.ready.notify_one();
        }
        !batch.requests.is_empty()
    }
}

/// The answer of a queue that accepts nothing any more.
pub(super) fn closed() -> ShardError {
    ShardError::Unreachable {
        reason: "the engine is closed".into(),
    }
}

fn full<L: Load>(state: &State<L>) -> Option<ShardError> {
    let waiting = state.waiting.len();
    (waiting >= QUEUE_MAX).then_some(ShardError::Overloaded {
        waiting,
        max: QUEUE_MAX,
    })
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use ringfence_ring::SlotCount;

    use super::*;
    use crate::{
        ids::{ClientId, Nonce, Token},
        name::{Label, LockKey, Namespace},
        shard::{Effect, LockMode, Op, Request},
    };

    fn renewal(sequence: u64) -> Request {
        let key = LockKey::new(&Namespace::default(), b"key", SlotCount::default());
        Request {
            key: key.unwrap(),
            map: MapVersion::UNKNOWN,
            declared: MapVersion::UNKNOWN,
            op: Op::Renew {
                nonce: Nonce {
                    client: ClientId(1),
                    sequence,
                },
                label: Label::default(),
                token: Token::from_number(1),
                mode: LockMode::Exclusive,
                lease: Duration::from_secs(30),
            },
        }
    }

    /// Renewals wait while a shard is away.
    #[test]
    fn a_renewal_whose_lease_ended_while_it_waited_is_not_sent() {
        let queue: Queue<Request> = Queue::new(10);
        let (answers, answered) = mpsc::channel();
        for (sequence, is_over) in [(1, true), (2, false)] {
            let answers = answers.clone();
            let respond = Respond::Renewal {
                is_over: Box::new(move || is_over),
                respond: Box::new(move |answer| answers.send((sequence, answer)).unwrap()),
            };
            assert!(queue.push(renewal(sequence), respond).is_ok());
        }
        let mut batch = Batch::default();
        assert!(queue.take(&mut batch));
        assert_eq!(batch.requests, [renewal(2)]);
        let (sequence, answer) = answered.try_recv().unwrap();
        assert_eq!((sequence, answer.unwrap_err().effect()), (1, Effect::None));
        assert!(
            answered.try_recv().is_err(),
            "the other one is not answered yet"
        );
    }
}
