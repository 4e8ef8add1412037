//! The traffic to one shard: the waiting requests, their lanes, and the connections.
//!
//! ```text
//! submit ─► Queue ─► Lane: gather what came while the last batch was out ─► call ─► answers
//! ```
//!
//! A lane has one connection and one batch under way. There are two work lanes, by slot, so that
//! the server has work while answers are on their way. Counters have two lanes as well; one more
//! for requests whose answers may wait for replicas, because a batch waits for its slowest answer;
//! and one for reads of all segments of an account, which go together, and for requests that only forget ids. Nothing is sent by a
//! timer. Nothing is stored for later while the shard is unreachable: requests are refused at once,
//! and the caller decides.

mod lane;
mod listener;
mod load;
mod membership;
mod queue;
mod server_clock;

use std::{fmt, sync::Arc, time::Duration};

use ringfence_ring::ShardId;
use tokio::sync::oneshot;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    clock::{Clock, Instant},
    ids::{ClientId, Epoch, Life},
    limits::{BATCH_MAX, LANES_BY_SLOT, WHOLE_BATCH_MAX},
    metrics::{ShardMetrics, ShardReading},
    name::LockKey,
    random::Random,
    shard::{
        ConnectionId, CounterReply, CounterRequest, LockLane, Notification, Release, Reply,
        Request, Shard, ShardError,
    },
    view::ViewLease,
};
use lane::Lanes;
pub use lane::Needs;
use membership::Membership;
use queue::Queue;
use server_clock::ServerClock;
pub(crate) use server_clock::{ClockStep, Comparison};

/// First and longest pause between attempts to connect, or to listen.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// An operation's answer, and the time when the answered batch was sent.
#[derive(Clone, Debug)]
pub struct Answered<R = Reply> {
    /// The answer.
    pub reply: R,
    /// A moment before the request left: deadlines count from here.
    pub sent: Instant,
}

/// What a request about a counter goes together with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterLane {
    /// Others of its slot.
    Single,
    /// Others whose answers may wait for replicas.
    Replicated,
    /// Reads of all segments of an account.
    Whole,
}

/// The result of a request.
pub type Answer<R = Reply> = Result<Answered<R>, ShardError>;

/// The receiver of an answer.
pub enum Respond<R = Reply> {
    /// A waiting caller. A request that begins something is not sent if its caller has left.
    Caller(oneshot::Sender<Answer<R>>),
    /// The engine itself.
    Engine(Box<dyn FnOnce(Answer<R>) + Send>),
    /// The engine itself. The request is not sent if its lease is over by then.
    Renewal {
        /// Whether the lease is over.
        is_over: Box<dyn Fn() -> bool + Send>,
        /// Called with the answer.
        respond: Box<dyn FnOnce(Answer<R>) + Send>,
    },
}

impl<R> fmt::Debug for Respond<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Caller(_) => "Caller",
            Self::Engine(_) => "Engine",
            Self::Renewal { .. } => "Renewal",
        })
    }
}

impl<R> Respond<R> {
    pub(crate) fn respond(self, answer: Answer<R>) {
        match self {
            // A caller that has left cleans up with its own release.
            Self::Caller(caller) => drop(caller.send(answer)),
            Self::Engine(respond) | Self::Renewal { respond, .. } => respond(answer),
        }
    }

    /// Whether it is for a renewal that came too late.
    fn is_too_late(&self) -> bool {
        matches!(self, Self::Renewal { is_over, .. } if is_over())
    }
}

/// Called with each notification, in the task that receives it: it must not block.
pub type Callback = Arc<dyn Fn(Notification) + Send + Sync>;

/// A shard and the lanes to it. Each lane is a task on the tracker given to [`start`](Self::start).
#[derive(Debug)]
pub struct Driver {
    id: ShardId,
    shard: Arc<dyn Shard>,
    work: Vec<Arc<Queue<Request>>>,
    renew: Arc<Queue<Request>>,
    counters: [Arc<Queue<CounterRequest>>; LANES_BY_SLOT],
    replicated: Arc<Queue<CounterRequest>>,
    whole: Arc<Queue<CounterRequest>>,
    needs: Arc<Needs>,
    membership: Arc<Membership>,
    metrics: Arc<ShardMetrics>,
    server_clock: Arc<ServerClock>,
}

/// The context that all drivers of an engine share.
#[derive(Clone, Debug)]
pub struct Context {
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Spreads reconnections.
    pub random: Arc<Random>,
    /// Tracks every task.
    pub tasks: TaskTracker,
    /// The stop signal: lanes send the submitted requests, then end.
    pub stop: CancellationToken,
    /// How long the topology in use is valid.
    pub view: Arc<ViewLease>,
}

impl Driver {
    /// Starts the lanes to `shard`, which the topology names as `life` with `epoch`, and listens
    /// there for messages to `client`. Nothing is sent before that life was [seen to be
    /// armed](Self::seen_armed).
    pub fn start(
        id: ShardId,
        shard: Arc<dyn Shard>,
        (life, epoch): (Life, Epoch),
        client: ClientId,
        callback: Callback,
        around: &Context,
    ) -> Arc<Self> {
        let needs = Arc::new(Needs::default());
        let membership = Arc::new(Membership::new(life, epoch));
        let metrics = Arc::new(ShardMetrics::default());
        let server_clock = Arc::<ServerClock>::default();
        let lanes = Lanes {
            id: id.clone(),
            shard: shard.clone(),
            needs: needs.clone(),
            membership: membership.clone(),
            metrics: metrics.clone(),
            server_clock: server_clock.clone(),
            around: around.clone(),
        };
        let work = (0..shard.work_lanes()).map(|_| lanes.locks(LockLane::Work));
        let work = work.collect();
        let renew = lanes.locks(LockLane::Renew);
        let counters = std::array::from_fn(|_| lanes.counters(BATCH_MAX));
        let [replicated, whole] = std::array::from_fn(|_| lanes.counters(WHOLE_BATCH_MAX));
        let listener = listener::Listener {
            id: id.clone(),
            shard: shard.clone(),
            client,
            callback,
            membership: membership.clone(),
        };
        listener.start(around);
        Arc::new(Self {
            id,
            shard,
            work,
            renew,
            counters,
            replicated,
            whole,
            needs,
            membership,
            metrics,
            server_clock,
        })
    }

    /// The shard is no longer a member: its answers from now on do not count, and its lanes end.
    pub fn dismiss(&self) {
        self.membership.dismiss();
    }

    /// The topology names the shard as `life` from now on, with `epoch`: connections to another
    /// life end, and answers of another life do not count.
    pub fn name(&self, life: &Life, epoch: Epoch) {
        if !self.membership.name(life, epoch) {
            self.needs.arm();
        }
    }

    /// `life` was seen to be armed with `epoch`.
    pub fn seen_armed(&self, life: &Life, epoch: Epoch) {
        self.membership.seen_armed(life, epoch);
    }

    /// Distrusts the state that the shard is armed with: has it armed anew with a fresh epoch, once
    /// for all callers and processes.
    pub fn arm_anew(&self) {
        self.needs.distrust(self.membership.epoch());
    }

    /// Refuses requests for locks because of `error`, or accepts them again; renewals and releases
    /// go on.
    pub fn refuse_new_locks(&self, error: Option<&ShardError>) {
        self.work.iter().for_each(|queue| queue.refuse_new(error));
    }

    /// What the shard's clock says about `step` of another one's, by an answer to a request that was sent at `asked` or
    /// later.
    pub(crate) fn compare(&self, step: &ClockStep, asked: Instant) -> Option<Comparison> {
        self.server_clock.compare(step, asked)
    }

    /// Whether answers from `life` of the shard count.
    pub(crate) fn counts(&self, life: &Life) -> bool {
        self.membership.counts(life)
    }

    /// Ends the lanes of locks: waiting requests are refused, and no more are sent. Returns their
    /// last connections, over which requests may still reach the shard: once these connections have
    /// ended, no request does.
    pub(crate) fn take_over(&self) -> Vec<(LockLane, (Life, ConnectionId))> {
        let work = self.work.iter().map(|queue| (LockLane::Work, queue));
        let lanes = work.chain([(LockLane::Renew, &self.renew)]);
        let last = lanes.map(|(lane, queue)| Some((lane, queue.take_over()?)));
        last.flatten().collect()
    }

    /// The shard's id.
    pub fn id(&self) -> &ShardId {
        &self.id
    }

    /// The shard, for separate connections.
    pub fn shard(&self) -> &Arc<dyn Shard> {
        &self.shard
    }

    /// The needs of the shard, as its lanes report them.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// What was counted at the shard.
    pub fn metrics(&self) -> &Arc<ShardMetrics> {
        &self.metrics
    }

    /// The shard's numbers now.
    pub(crate) fn reading(&self) -> ShardReading {
        ShardReading {
            id: self.id.clone(),
            is_up: self.work.iter().all(|queue| queue.is_open()) && self.renew.is_open(),
            epoch: self.membership.epoch(),
            metrics: self.metrics.clone(),
        }
    }

    /// Queues `request` in the lane of its operation, and returns the receiver of its answer.
    ///
    /// # Errors
    ///
    /// Through the receiver: [`ShardError`]. If the sender is gone, the driver has stopped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the receiver withdraws an acquire that was not sent yet; it has no other effect.
    pub fn submit(&self, request: Request) -> oneshot::Receiver<Answer> {
        let (caller, answer) = oneshot::channel();
        let queued = self.try_submit(request, Respond::Caller(caller));
        queued.unwrap_or_else(|(respond, error)| respond.respond(Err(error)));
        answer
    }

    /// Queues `release` in `lane`, so that it overtakes no request of its nonce. `respond` gets the answer, at once
    /// if it cannot be queued.
    pub(crate) fn release(&self, lane: LockLane, release: Release, respond: Respond) {
        let queued = self.queue(lane, &release.key).push(release.into(), respond);
        queued.unwrap_or_else(|(respond, error)| respond.respond(Err(error)));
    }

    /// Queues a request about a counter and returns the receiver of its answer.
    ///
    /// # Errors
    ///
    /// As for [`submit`](Self::submit).
    ///
    /// # Cancel safety
    ///
    /// Dropping the receiver withdraws a request that was not sent yet.
    pub fn submit_counter(
        &self,
        request: CounterRequest,
        lane: CounterLane,
    ) -> oneshot::Receiver<Answer<CounterReply>> {
        let (caller, answer) = oneshot::channel();
        let queue = match lane {
            CounterLane::Whole => &self.whole,
            CounterLane::Replicated => &self.replicated,
            CounterLane::Single => &self.counters[of_its_slot(&request.key)],
        };
        if let Err((respond, error)) = queue.push(request, Respond::Caller(caller)) {
            respond.respond(Err(error));
        }
        answer
    }

    /// The requests that `lane` sends next, for a test in place of the lane.
    #[cfg(test)]
    pub(crate) fn take(&self, lane: LockLane) -> Vec<(Request, Respond)> {
        let queues = match lane {
            LockLane::Work => &self.work[..],
            LockLane::Renew => std::slice::from_ref(&self.renew),
        };
        let mut batch = queue::Batch::default();
        queues.iter().any(|queue| queue.take(&mut batch));
        let requests = std::mem::take(&mut batch.requests);
        let responds = std::mem::take(&mut batch.responds);
        requests.into_iter().zip(responds).collect()
    }

    /// Queues `request` in the lane of its operation, or returns `respond` with the reason.
    pub(crate) fn try_submit(
        &self,
        request: Request,
        respond: Respond,
    ) -> Result<(), (Respond, ShardError)> {
        let queue = self.queue(request.op.lane(), &request.key);
        queue.push(request, respond)
    }

    fn queue(&self, lane: LockLane, key: &LockKey) -> &Queue<Request> {
        match lane {
            LockLane::Work => &self.work[of_its_slot(key) % self.work.len()],
            LockLane::Renew => &self.renew,
        }
    }
}

/// The index among the lanes that are chosen by slot.
fn of_its_slot(key: &LockKey) -> usize {
    key.slot().index() % LANES_BY_SLOT
}
