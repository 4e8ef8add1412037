//! One connection at a time, one batch at a time.

use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::Poll,
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use ringfence_ring::ShardId;
use tokio::{sync::Notify, time::timeout};
use tracing::{debug, warn};

use super::{
    Answered, Context, RECONNECT,
    load::{Load, Sent},
    membership::Membership,
    queue::{Batch, PANICKED, Queue, closed},
    server_clock::{ClockStep, Exchange, ServerClock},
};
use crate::{
    backoff::Backoff,
    ids::{Epoch, Life, MapVersion},
    limits::{BATCH_MAX, COUNTER_RAISE},
    metrics::ShardMetrics,
    shard::{ConnectionId, CounterRequest, Lane, Link, LockLane, Request, Shard, ShardError},
    sync::Mutex,
    view::Believed,
};

/// A read of the topology that takes longer is told.
const UNREAD_LONG: Duration = Duration::from_secs(1);

/// The needs of a shard, as its lanes report them. The task that tends the shard waits for them.
#[derive(Debug, Default)]
pub struct Needs {
    arm: AtomicBool,
    mark_quiet: AtomicBool,
    raise: AtomicBool,
    /// The greatest epoch with a state that cannot be trusted.
    distrusted: AtomicU64,
    /// The step of its clock, or of this process's.
    clock_step: Mutex<Option<ClockStep>>,
    something: Notify,
}

impl Needs {
    /// Waits until the shard needs something.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn something(&self) {
        self.something.notified().await;
    }

    /// Whether it has to be armed, since the last call: it answered that it is not, or its state
    /// cannot be trusted.
    pub fn take_arm(&self) -> bool {
        self.arm.swap(false, Relaxed)
    }

    /// Whether it looked at slots although the map is at rest, since the last call.
    pub fn take_mark_quiet(&self) -> bool {
        self.mark_quiet.swap(false, Relaxed)
    }

    /// Whether its token counter is near its end, since the last call.
    pub fn take_raise(&self) -> bool {
        self.raise.swap(false, Relaxed)
    }

    /// The greatest epoch with a state of the shard that cannot be trusted.
    pub fn distrusted(&self) -> Epoch {
        Epoch(self.distrusted.load(Relaxed))
    }

    /// Has the shard armed anew with a fresh epoch, unless it is armed with an epoch above `epoch`
    /// already.
    pub fn distrust(&self, epoch: Epoch) {
        if self.distrusted.fetch_max(epoch.0, Relaxed) < epoch.0 {
            self.arm();
        }
    }

    /// Has the shard checked, and armed if it is not.
    pub(super) fn arm(&self) {
        self.note(&self.arm);
    }

    /// The step of its wall clock, or of this process's clock, since the last call.
    pub(crate) fn take_clock_step(&self) -> Option<ClockStep> {
        self.clock_step.lock().take()
    }

    pub(super) fn clock_stepped(&self, step: ClockStep) {
        *self.clock_step.lock() = Some(step);
        self.something.notify_one();
    }

    fn note(&self, need: &AtomicBool) {
        if !need.swap(true, Relaxed) {
            self.something.notify_one();
        }
    }
}

/// The context that the lanes to one shard share.
#[derive(Clone)]
pub(super) struct Lanes {
    pub(super) id: ShardId,
    pub(super) shard: Arc<dyn Shard>,
    pub(super) needs: Arc<Needs>,
    pub(super) membership: Arc<Membership>,
    pub(super) metrics: Arc<ShardMetrics>,
    pub(super) server_clock: Arc<ServerClock>,
    pub(super) around: Context,
}

impl Lanes {
    /// Starts a lane for requests about locks.
    pub(super) fn locks(&self, lane: LockLane) -> Arc<Queue<Request>> {
        self.start(
            lane.into(),
            match lane {
                LockLane::Work => |shard, former| shard.connect_locks(LockLane::Work, former),
                LockLane::Renew => |shard, former| shard.connect_locks(LockLane::Renew, former),
            },
            BATCH_MAX,
        )
    }

    /// Starts a lane for requests about counters, with batches of at most `batch_max`.
    pub(super) fn counters(&self, batch_max: usize) -> Arc<Queue<CounterRequest>> {
        let connect: Connect<CounterRequest> = |shard, former| shard.connect_counters(former);
        self.start(Lane::Counters, connect, batch_max)
    }

    fn start<L: Load>(&self, lane: Lane, connect: Connect<L>, batch_max: usize) -> Arc<Queue<L>> {
        let queue = Arc::new(Queue::new(batch_max));
        let running = Running {
            lane,
            connect,
            queue: queue.clone(),
            to: self.clone(),
        };
        self.around.tasks.spawn(running.run());
        queue
    }
}

/// Opens a connection that carries `L`, and ends the former one.
type Connect<L> = for<'a> fn(
    &'a dyn Shard,
    Option<(Life, ConnectionId)>,
) -> BoxFuture<'a, Result<Box<<L as Load>::Link>, ShardError>>;

struct Running<L: Load> {
    lane: Lane,
    connect: Connect<L>,
    queue: Arc<Queue<L>>,
    to: Lanes,
}

impl<L: Load> Running<L> {
    /// Connects, serves, connects again, until told to stop.
    async fn run(self) {
        let mut backoff = Backoff::new(RECONNECT.0, RECONNECT.1);
        if self.lane == Lane::Counters {
            // Not every process uses counters.
            self.to
                .around
                .stop
                .run_until_cancelled(self.queue.asked())
                .await;
        }
        while !self.to.around.stop.is_cancelled() {
            let connection = AssertUnwindSafe(self.connection(&mut backoff));
            // A backend that panics costs a connection, not the lane.
            let ended = match connection.catch_unwind().await {
                Ok(Some(error)) => error,
                Ok(None) => break,
                Err(_) => ShardError::NoReply {
                    reason: PANICKED.into(),
                },
            };
            debug!(shard = %self.to.id, lane = self.lane.as_str(), %ended, "not connected");
            self.queue.close(&unsent(&ended));
            let pause = backoff.next(&self.to.around.random);
            let stopped = self.to.around.stop.cancelled();
            let _ = timeout(pause, stopped).await;
        }
        self.queue.close(&closed());
    }

    /// Connects, and serves until that connection ends; `None` if told to stop, or taken over.
    async fn connection(&self, backoff: &mut Backoff) -> Option<ShardError> {
        let mut link = match self.connect(self.queue.connection()).await? {
            Ok(link) => link,
            Err(error) => return Some(error),
        };
        tokio::select! {
            biased;
            () = self.topology_is_read() => {}
            () = self.to.around.stop.cancelled() => return None,
            () = link.ended() => return Some(connection_ended()),
        }
        if !(self.queue).open((link.life().clone(), link.connection())) {
            return None;
        }
        let error = self.serve(link.as_mut(), backoff).await?;
        if matches!(error, ShardError::Unarmed) {
            self.to.needs.arm();
        } else if !self.to.around.stop.is_cancelled() {
            warn!(shard = %self.to.id, lane = self.lane.as_str(), %error, "connection lost");
            // The handshake succeeded: the end of this connection says nothing about the next one.
            backoff.reset();
        }
        Some(error)
    }

    /// Waits until the topology is [read](crate::view::ViewLease::read_since), and says so if it takes long.
    async fn topology_is_read(&self) {
        let view = &self.to.around.view;
        let mut read = pin!(view.read_since(self.to.around.clock.now()));
        if timeout(UNREAD_LONG, &mut read).await.is_ok() {
            return;
        }
        let reason = format!(
            "the topology cannot be read, and another server may have been in this one's place: nothing is asked for {:?} \
             from its connection on, unless it is read before",
            view.unread_within()
        );
        warn!(shard = %self.to.id, lane = self.lane.as_str(), "{reason}");
        self.queue.close(&ShardError::Unreachable { reason });
        read.await;
    }

    /// Connects; `None` if told to stop first.
    async fn connect(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Option<Result<Box<L::Link>, ShardError>> {
        let connecting = (self.connect)(&*self.to.shard, former);
        self.to.around.stop.run_until_cancelled(connecting).await
    }

    /// Sends batches until the connection ends; `None` if told to stop, with the queue empty.
    async fn serve(&self, link: &mut L::Link, backoff: &mut Backoff) -> Option<ShardError> {
        let mut batch = Batch::<L>::default();
        let mut crowded = false;
        loop {
            if crowded && !self.queue.fills_a_batch() {
                // The tasks that were just answered are about to send their next requests: let
                // them, and send everything at once. If other requests fill a batch already, the
                // server need not wait.
                behind_others().await;
            }
            let stopped = tokio::select! {
                biased;
                () = self.queue.gather(&mut batch) => false,
                () = self.to.around.stop.cancelled() => true,
                () = link.ended() => return Some(connection_ended()),
            };
            if stopped && !self.queue.take(&mut batch) {
                return None;
            }
            crowded = batch.requests.len() > 1;
            let sent = self.to.around.clock.now();
            let Some(view) = self.to.around.view.believed(sent) else {
                batch.fail(&unconfirmed());
                continue;
            };
            if !self.to.membership.serves(link.life()) {
                // The shard would answer the same, if it knew.
                batch.fail(&ShardError::Unarmed);
                return Some(ShardError::Unarmed);
            }
            let answered = L::send(link, &batch.requests).await;
            if let Ok(Sent { now: Some(now), .. }) = &answered {
                let received = self.to.around.clock.now();
                self.look_at_clock(
                    link.life(),
                    Exchange {
                        sent,
                        received,
                        now: *now,
                    },
                );
            }
            match answered {
                Ok(_) if !self.counts(view, link.life()) => batch.fail(&ShardError::NoReply {
                    reason: "it came after the topology in use had ended".into(),
                }),
                Ok(answers) => {
                    backoff.reset();
                    self.to.metrics.batch(batch.requests.len());
                    self.note(&answers, batch.requests[0].map());
                    batch.requests.clear();
                    for (respond, reply) in batch.responds.drain(..).zip(answers.replies) {
                        respond.respond(Ok(Answered { reply, sent }));
                    }
                }
                Err(error) => {
                    batch.fail(&error);
                    if error.ends_link() {
                        return Some(error);
                    }
                    debug!(shard = %self.to.id, lane = self.lane.as_str(), %error, "refused");
                }
            }
        }
    }

    /// A lease that was granted before the server's clock stepped may end earlier than its holder
    /// believes. So may the recovery period.
    fn look_at_clock(&self, life: &Life, exchange: Exchange) {
        let epoch = self.to.membership.epoch();
        if let Some(step) = self.to.server_clock.observe(life, epoch, exchange) {
            self.to.needs.clock_stepped(step);
        }
    }

    /// Whether an answer to a request sent under `view` still counts.
    fn counts(&self, view: Believed, life: &Life) -> bool {
        let now = self.to.around.clock.now();
        self.to.membership.counts(life) && self.to.around.view.is_still(view, now)
    }

    fn note(&self, answers: &Sent<L::Reply>, map: MapVersion) {
        if answers.looked && map != MapVersion::UNKNOWN {
            self.to.needs.note(&self.to.needs.mark_quiet);
        }
        if answers.counter >= COUNTER_RAISE {
            self.to.needs.note(&self.to.needs.raise);
        }
    }
}

/// Lets the ready tasks run first. `tokio::task::yield_now` would also poll the sockets before.
async fn behind_others() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn connection_ended() -> ShardError {
    ShardError::Unreachable {
        reason: "the connection ended".into(),
    }
}

/// Nothing is sent under a topology that may be out of date.
fn unconfirmed() -> ShardError {
    ShardError::Unreachable {
        reason: "the topology could not be confirmed in time".into(),
    }
}

/// The error for requests that were never sent, if the connection ended with `ended`.
fn unsent(ended: &ShardError) -> ShardError {
    match ended {
        ShardError::NoReply { reason } | ShardError::Refused { reason, .. } => {
            ShardError::Unreachable {
                reason: reason.clone(),
            }
        }
        other => other.clone(),
    }
}
