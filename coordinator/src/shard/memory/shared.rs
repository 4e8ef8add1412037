//! The state that a shard, its links and its faults share: one lock around all of it.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use hashbrown::HashSet;
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::{
    listeners::Listeners,
    losses::{Loss, Losses},
    state::Memory,
};
use crate::{
    clock::Clock,
    ids::Life,
    random::Random,
    shard::{ConnectionId, Lane, ShardError, rules::millis},
};

/// How far a shard's clock is ahead of the clock that it is given.
pub(super) const CLOCK_AHEAD: Duration = Duration::from_secs(1_000_000_000);

/// A connection: its id, its purpose, and the life of the shard in which it was opened.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    pub(super) lane: Lane,
    pub(super) life: Life,
}

/// The effect of a request, given the time. Nobody waits for its answer.
pub(super) type Command = Box<dyn FnOnce(&mut Memory, u64) + Send>;

/// A request with a sender that stopped waiting before it was applied.
struct Late {
    connection: Connection,
    command: Command,
}

/// Everything behind the lock.
pub(super) struct State {
    pub(super) memory: Memory,
    /// The connections that have not ended.
    open: HashSet<ConnectionId>,
    last_connection: u64,
    /// At most one per connection, which sends its next request only after the answer to this one.
    late: Vec<Late>,
    pub(super) listeners: Listeners,
    pub(super) losses: Losses,
    pub(super) unreachable: bool,
    pub(super) latency: Range<Duration>,
}

impl State {
    /// Opens a connection in the present life.
    pub(super) fn open(&mut self, lane: Lane) -> Connection {
        self.last_connection += 1;
        let id = ConnectionId(self.last_connection);
        self.open.insert(id);
        let life = self.memory.life().clone();
        Connection { id, lane, life }
    }

    /// Ends every connection.
    pub(super) fn hang_up(&mut self) {
        self.open.clear();
        self.late.clear();
        self.listeners.hang_up();
    }

    /// Refuses to connect while the shard cannot be reached.
    pub(super) fn check_reachable(&self) -> Result<(), ShardError> {
        if !self.unreachable {
            return Ok(());
        }
        Err(ShardError::Unreachable {
            reason: "made unreachable".into(),
        })
    }

    /// Refuses a connection that has ended.
    pub(super) fn check_open(&self, connection: &Connection) -> Result<(), ShardError> {
        if self.open.contains(&connection.id) {
            return Ok(());
        }
        Err(ShardError::NoReply {
            reason: "the connection has ended".into(),
        })
    }

    fn apply_late(&mut self, now_ms: u64) {
        for Late {
            connection,
            command,
        } in std::mem::take(&mut self.late)
        {
            if connection.life == *self.memory.life() {
                command(&mut self.memory, now_ms);
            }
        }
    }

    fn perform<T>(
        &mut self,
        connection: &Connection,
        now_ms: u64,
        command: impl FnOnce(&mut Memory, u64) -> Result<T, ShardError>,
    ) -> Result<T, ShardError> {
        self.check_open(connection)?;
        let loss = self.losses.next(connection.lane);
        if loss.is_some() {
            self.open.remove(&connection.id);
        }
        if loss == Some(Loss::Request) {
            return Err(ShardError::NoReply {
                reason: "the request was lost".into(),
            });
        }
        if connection.life != *self.memory.life() {
            return Err(ShardError::Unarmed);
        }
        let answer = command(&mut self.memory, now_ms);
        match loss {
            Some(_) => Err(ShardError::NoReply {
                reason: "the reply was lost".into(),
            }),
            None => answer,
        }
    }
}

/// The state that a shard, its links and its faults share.
pub(super) struct Shared {
    clock: Arc<dyn Clock>,
    /// By how much the shard's clock was set back.
    pub(super) set_back_ms: AtomicU64,
    random: Arc<Random>,
    state: Mutex<State>,
    pub(super) stalled: watch::Sender<bool>,
    /// A request takes time: the shard is stalled, or has latency.
    slow: AtomicBool,
}

impl Shared {
    /// The state of a shard in its first life, which begins now.
    pub(super) fn new(clock: Arc<dyn Clock>, random: Arc<Random>) -> Self {
        let state = State {
            memory: Memory::new(new_life(&random), time_ms(&*clock)),
            open: HashSet::new(),
            last_connection: 0,
            late: Vec::new(),
            listeners: Listeners::default(),
            losses: Losses::default(),
            unreachable: false,
            latency: Duration::ZERO..Duration::ZERO,
        };
        Self {
            clock,
            set_back_ms: AtomicU64::new(0),
            random,
            state: Mutex::new(state),
            stalled: watch::Sender::new(false),
            slow: AtomicBool::new(false),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn now_ms(&self) -> u64 {
        time_ms(&*self.clock) - self.set_back_ms.load(Ordering::Relaxed)
    }

    /// The clock of counters.
    pub(super) fn unix_ms(&self) -> u64 {
        millis(self.clock.unix())
    }

    pub(super) fn new_life(&self) -> Life {
        new_life(&self.random)
    }

    /// Whether a request takes time.
    pub(super) fn is_slow(&self) -> bool {
        self.slow.load(Ordering::Acquire)
    }

    /// Call this after a change of the stall or the latency.
    pub(super) fn tell_slow(&self) {
        let latency = !self.state().latency.end.is_zero();
        self.slow
            .store(latency || *self.stalled.borrow(), Ordering::Release);
    }

    /// Applies late commands, then `command`.
    pub(super) fn apply<T>(
        &self,
        connection: &Connection,
        command: impl FnOnce(&mut Memory, u64) -> Result<T, ShardError>,
    ) -> Result<T, ShardError> {
        let mut state = self.state();
        let now_ms = self.now_ms();
        state.memory.whole.head.limit_grace(now_ms, 0);
        state.apply_late(now_ms);
        let answer = state.perform(connection, now_ms, command);
        self.send_notifications(&mut state);
        answer
    }

    /// Sends the notifications that the last change caused. Each is delayed by itself.
    fn send_notifications(&self, state: &mut State) {
        for notification in std::mem::take(&mut state.memory.notifications) {
            let due = self
                .is_slow()
                .then(|| Instant::now() + self.draw_latency(&state.latency));
            state.listeners.tell(notification, due);
        }
    }

    /// Waits until a message arrives that is `due` then.
    pub(super) async fn arrive(&self, due: Option<Instant>) {
        if let Some(due) = due {
            sleep_until(due).await;
        }
        self.go_on().await;
    }

    /// Ends a connection. A late request of it is applied first, or never.
    pub(super) fn end(&self, state: &mut State, id: ConnectionId) {
        let late = state.late.iter().any(|late| late.connection.id == id);
        if late && self.random.below(2) == 0 {
            state.apply_late(self.now_ms());
            self.send_notifications(state);
        }
        state.late.retain(|late| late.connection.id != id);
        state.open.remove(&id);
    }

    /// The sender has closed a connection: requests that it sent before are on their way.
    pub(super) fn close(&self, id: ConnectionId) {
        self.state().open.remove(&id);
    }

    /// Keeps a command after its sender stopped waiting, unless its connection has ended: it is
    /// applied just before the next event here.
    pub(super) fn keep_late(&self, connection: &Connection, command: Command) {
        let mut state = self.state();
        if state.open.contains(&connection.id) {
            state.late.push(Late {
                connection: connection.clone(),
                command,
            });
        }
    }

    /// Waits for the latency of a request or of an answer, and while the shard is stalled.
    pub(super) async fn travel(&self) {
        if !self.is_slow() {
            return;
        }
        let range = self.state().latency.clone();
        let latency = self.draw_latency(&range);
        if !latency.is_zero() {
            sleep(latency).await;
        }
        self.go_on().await;
    }

    /// Waits while the shard is stalled.
    async fn go_on(&self) {
        // It cannot fail: `self` has the sender.
        let _ = self.stalled.subscribe().wait_for(|stalled| !stalled).await;
    }

    fn draw_latency(&self, Range { start, end }: &Range<Duration>) -> Duration {
        let span = u64::try_from(end.saturating_sub(*start).as_nanos()).unwrap_or(u64::MAX);
        *start + Duration::from_nanos(self.random.below(span))
    }
}

fn time_ms(clock: &dyn Clock) -> u64 {
    clock.now().as_nanos() / 1_000_000 + millis(CLOCK_AHEAD)
}

fn new_life(random: &Random) -> Life {
    Life::new(format!("memory:{:032x}", random.id()))
}
