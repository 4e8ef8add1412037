//! What waits for a lane.

use std::collections::VecDeque;

use tokio::sync::Notify;

use super::Respond;
use crate::{
    ids::MapVersion,
    limits::{BATCH_MAX, QUEUE_MAX},
    name::LockKey,
    shard::{Op, Request, ShardError},
    sync::Mutex,
};

/// Requests that one batch leaves for the next, at most.
const ASIDE_MAX: usize = 32;

/// Requests in the order they came. Acquires are refused beyond [`QUEUE_MAX`]; renewals and
/// releases, of which there is at most one a held lock, are not.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(Request, Respond)>,
    /// Why nothing can be sent, while nothing can be.
    down: Option<ShardError>,
}

/// Why a batch is dropped before it is answered.
pub(super) const PANICKED: &str = "the backend panicked";

/// What one batch is made of, side by side.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) requests: Vec<Request>,
    pub(super) responds: Vec<Respond>,
}

impl Batch {
    /// Tells everybody `error`.
    pub(super) fn fail(&mut self, error: &ShardError) {
        self.requests.clear();
        self.responds
            .drain(..)
            .for_each(|respond| respond.respond(Err(error.clone())));
    }
}

impl Drop for Batch {
    /// Whoever is in a batch that nobody answers was sent, perhaps, and is told so.
    fn drop(&mut self) {
        self.fail(&ShardError::NoReply {
            reason: PANICKED.into(),
        });
    }
}

impl Queue {
    /// Adds a request, or hands `respond` back with the reason.
    pub(super) fn push(
        &self,
        request: Request,
        respond: Respond,
    ) -> Result<(), (Respond, ShardError)> {
        let mut state = self.state.lock();
        let refusal = match &state.down {
            Some(error) => Some(error.clone()),
            None => full(&state, &request.op),
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

    /// Refuses what waits and what comes, because of `error`.
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

    /// Takes requests again.
    pub(super) fn open(&self) {
        self.state.lock().down = None;
    }

    /// Waits for requests and moves up to [`BATCH_MAX`] of one map version into `batch`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes nothing.
    pub(super) async fn gather(&self, batch: &mut Batch) {
        while !self.take(batch) {
            self.ready.notified().await;
        }
    }

    /// Moves what waits into `batch`; whether there was anything.
    pub(super) fn take(&self, batch: &mut Batch) -> bool {
        let mut state = self.state.lock();
        let mut map: Option<MapVersion> = None;
        let mut aside = Aside::default();
        while batch.requests.len() < BATCH_MAX && !aside.is_full() {
            let Some((request, respond)) = state.waiting.pop_front() else {
                break;
            };
            let withdrawn = matches!(
                (&request.op, &respond),
                (Op::Acquire { .. }, Respond::Caller(caller)) if caller.is_closed()
            );
            if withdrawn {
                continue;
            }
            if *map.get_or_insert(request.map) != request.map || aside.has(&request.key) {
                aside.put((request, respond));
                continue;
            }
            batch.requests.push(request);
            batch.responds.push(respond);
        }
        aside.back_to(&mut state.waiting);
        if !state.waiting.is_empty() {
            self.ready.notify_one();
        }
        !batch.requests.is_empty()
    }
}

/// Requests of another map version than the batch's: they wait for the next one, in their order, with all that
/// come after them for the same keys.
#[derive(Default)]
struct Aside(Vec<(Request, Respond)>);

impl Aside {
    fn is_full(&self) -> bool {
        self.0.len() >= ASIDE_MAX
    }

    fn has(&self, key: &LockKey) -> bool {
        self.0.iter().any(|(request, _)| request.key == *key)
    }

    fn put(&mut self, request: (Request, Respond)) {
        self.0.push(request);
    }

    fn back_to(self, waiting: &mut VecDeque<(Request, Respond)>) {
        for request in self.0.into_iter().rev() {
            waiting.push_front(request);
        }
    }
}

fn full(state: &State, op: &Op) -> Option<ShardError> {
    let waiting = state.waiting.len();
    let refused = waiting >= QUEUE_MAX && matches!(op, Op::Acquire { .. });
    refused.then_some(ShardError::Overloaded {
        waiting,
        max: QUEUE_MAX,
    })
}
