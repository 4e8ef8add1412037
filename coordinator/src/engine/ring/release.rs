//! Releases: now, or in the background until they are done.

use std::{sync::Arc, time::Duration};

use hashbrown::HashMap;
use tokio::{
    sync::{Notify, oneshot},
    time::{sleep, timeout},
};

use super::{
    super::ReleaseAnswer,
    in_flight::{Behind, Outstanding},
    last_releases::{Orphaned, UntilStopped},
    renewer::LeaseRenewer,
    shard_lease::ShardLease,
};
use crate::{
    clock::Instant,
    driver::{Answer, Answered, Context, Respond},
    shard::{LockLane, Release, Reply, ShardError},
    sync::Mutex,
};

/// Pause before releases that failed are sent again.
const RETRY: Duration = Duration::from_millis(200);

/// A release that met a life without state is repeated this often, with about this pause: the time
/// of a handshake.
const UNARMED_RETRIES: usize = 10;
const UNARMED_RETRY: Duration = Duration::from_millis(50);

/// Releases without a waiting caller: repeated until answered, or until the lock has expired. There
/// is at most one per held lock, so the number is bounded.
#[derive(Debug)]
pub(crate) struct Releases {
    pub(crate) around: Context,
    /// Whether other processes can reach the shards.
    pub(crate) shared: bool,
    pub(crate) pending: Mutex<Pending>,
    none_pending: Notify,
    some_failed: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Pending {
    next: u64,
    /// Not answered yet.
    pub(crate) unanswered: HashMap<u64, Unsent>,
    /// Those of them that have to be sent again.
    failed: Vec<u64>,
    /// No task of the engine sends them any more.
    pub(crate) orphaned: Option<Orphaned>,
}

/// A release that has to be sent, or sent again.
#[derive(Clone, Debug)]
pub(crate) struct Unsent {
    pub(crate) lease: Arc<ShardLease>,
    pub(crate) at: Arc<LeaseRenewer>,
    give_up: Instant,
    /// Its local queue waits for the first answer.
    yields: bool,
}

impl Releases {
    /// `shared`: other processes can reach the shards, so that remaining records outlive this
    /// process.
    pub(crate) fn start(around: &Context, shared: bool) -> Arc<Self> {
        let releases = Arc::new(Self {
            around: around.clone(),
            shared,
            pending: Mutex::default(),
            none_pending: Notify::new(),
            some_failed: Notify::new(),
        });
        let running = releases.clone();
        around.tasks.spawn(async move {
            let until_stopped = UntilStopped::of(&running);
            running.around.stop.run_until_cancelled(running.run()).await;
            until_stopped.stopped();
        });
        releases
    }

    /// Releases `lease`, after belief in it has ended: at its shard, and at every other shard that
    /// may have something of it. If it `yields`, its local queue is told of the first answer.
    pub(crate) fn send(self: &Arc<Self>, lease: &Arc<ShardLease>, yields: bool) {
        let (here, elsewhere) = places(lease);
        self.send_to(lease, here, yields);
        self.send_elsewhere(lease, elsewhere);
    }

    /// Releases everything that shards may have of `lease`, which was abandoned.
    pub(crate) fn send_what_is_left(self: &Arc<Self>, lease: &Arc<ShardLease>) {
        let (here, elsewhere) = places(lease);
        if lease.in_flight.lock().here.may_be_there() {
            self.send_to(lease, here, false);
        }
        self.send_elsewhere(lease, elsewhere);
    }

    /// Releases everything that shards other than the present one may have of `lease`.
    fn send_elsewhere(
        self: &Arc<Self>,
        lease: &Arc<ShardLease>,
        elsewhere: Vec<Arc<LeaseRenewer>>,
    ) {
        for renewer in elsewhere {
            self.send_to(lease, renewer, false);
        }
    }

    fn send_to(self: &Arc<Self>, lease: &Arc<ShardLease>, at: Arc<LeaseRenewer>, yields: bool) {
        let give_up = self.around.clock.now() + lease.terms.lease * 2;
        let lease = lease.clone();
        let unsent = Unsent {
            lease,
            at,
            give_up,
            yields,
        };
        let mut pending = self.pending.lock();
        let number = pending.next;
        pending.next += 1;
        pending.unanswered.insert(number, unsent.clone());
        let is_orphaned = pending.orphaned.is_some();
        drop(pending);
        match is_orphaned {
            true => self.send_last(),
            false => self.submit(number, &unsent),
        }
    }

    fn submit(self: &Arc<Self>, number: u64, unsent: &Unsent) {
        let Unsent { lease, at, .. } = unsent;
        let behind = release_behind(lease, at);
        let lane = match behind {
            Behind::Lane(lane) => lane,
            Behind::Both => LockLane::Work,
        };
        let releases = self.clone();
        let yields = unsent.yields.then(|| (at.requests.clone(), lease.clone()));
        let respond = move |answer: Answer| {
            releases.answered(number, behind, answer);
            if let Some((requests, lease)) = yields {
                requests.local.over(&lease);
            }
        };
        submit(lease, at, lane, Respond::Engine(Box::new(respond)));
    }

    fn answered(self: &Arc<Self>, number: u64, behind: Behind, answer: Answer) {
        let mut pending = self.pending.lock();
        // Otherwise a thread sends it.
        let Some(unsent) = pending.unanswered.get(&number) else {
            return;
        };
        match answer {
            // All earlier requests of that lane have arrived.
            Ok(_) if behind == Behind::Both => {
                let unsent = unsent.clone();
                drop(pending);
                let Unsent { lease, at, .. } = &unsent;
                lease.in_flight.lock().at(&lease.renewer(), at).asking = Outstanding::default();
                return self.submit(number, &unsent);
            }
            Err(error) if error.is_retryable() && self.around.clock.now() < unsent.give_up => {
                pending.failed.push(number);
                return self.some_failed.notify_one();
            }
            Err(error) => {
                tracing::warn!(key = %unsent.lease.key, %error, "release gave up; the lock expires");
            }
            Ok(_) => {}
        }
        pending.unanswered.remove(&number);
        if pending.unanswered.is_empty() {
            self.none_pending.notify_waiters();
        }
    }

    async fn run(self: &Arc<Self>) {
        loop {
            self.some_failed.notified().await;
            sleep(self.around.random.jitter(RETRY)).await;
            // A lock taken in the head of the loop would be held throughout the loop.
            let failed = std::mem::take(&mut self.pending.lock().failed);
            for number in failed {
                let unsent = self.pending.lock().unanswered.get(&number).cloned();
                if let Some(unsent) = unsent {
                    self.submit(number, &unsent);
                }
            }
        }
    }

    /// Waits until all are answered, for at most `grace`; returns how many are not.
    pub(crate) async fn flush(&self, grace: Duration) -> usize {
        let all_answered = async {
            loop {
                let none_pending = self.none_pending.notified();
                tokio::pin!(none_pending);
                none_pending.as_mut().enable();
                if self.unanswered() == 0 {
                    return;
                }
                none_pending.await;
            }
        };
        let _ = timeout(grace, all_answered).await;
        self.unanswered()
    }

    fn unanswered(&self) -> usize {
        self.pending.lock().unanswered.len()
    }
}

/// The shard of `lease`, and the other shards that may have something of it. Belief in it has ended,
/// so it moves no more.
///
/// Both are read under the lock under which it moves from one shard to another. Read one after the
/// other, both could name the shard that it leaves, and its record at the next shard would stay for
/// a lease.
fn places(lease: &ShardLease) -> (Arc<LeaseRenewer>, Vec<Arc<LeaseRenewer>>) {
    let in_flight = lease.in_flight.lock();
    (lease.renewer().clone(), in_flight.left_elsewhere())
}

fn release_behind(lease: &ShardLease, at: &Arc<LeaseRenewer>) -> Behind {
    let mut in_flight = lease.in_flight.lock();
    in_flight.at(&lease.renewer(), at).release_behind()
}

/// A release of `lease`, for the shard of `at`.
pub(crate) fn request(lease: &ShardLease, at: &LeaseRenewer) -> Release {
    Release {
        key: lease.key.clone(),
        map: at.map(lease.key.slot()),
        nonce: lease.nonce,
    }
}

/// Sends a release of `lease` to the shard of `at`.
fn submit(lease: &ShardLease, at: &LeaseRenewer, lane: LockLane, respond: Respond) {
    at.driver.release(lane, request(lease, at), respond);
}

/// Sends a release of `lease` to its present shard, the shard of `at`, unless that takes two
/// releases.
fn submit_for_caller(
    lease: &Arc<ShardLease>,
    at: &Arc<LeaseRenewer>,
    yields: bool,
) -> Option<oneshot::Receiver<Answer>> {
    let Behind::Lane(lane) = release_behind(lease, at) else {
        return None;
    };
    let (caller, answer) = oneshot::channel();
    let respond = match yields {
        false => Respond::Caller(caller),
        true => {
            let (requests, lease) = (at.requests.clone(), lease.clone());
            Respond::Engine(Box::new(move |answer| {
                requests.local.over(&lease);
                drop(caller.send(answer));
            }))
        }
    };
    submit(lease, at, lane, respond);
    Some(answer)
}

impl ShardLease {
    /// Sends its release, after belief in it has ended. The future waits for the answer.
    pub(super) fn send_release(
        self: Arc<Self>,
        yields: bool,
        held: bool,
    ) -> impl Future<Output = ReleaseAnswer> + Send {
        Releasing::send(self, held, yields).answer()
    }
}

/// A release under way: if it is dropped before the answer, it is repeated in the background.
struct Releasing {
    lease: Arc<ShardLease>,
    /// Whether the lock was certainly held when it was released.
    held: bool,
    yields: bool,
    answer: Option<oneshot::Receiver<Answer>>,
    answered: bool,
}

impl Releasing {
    /// Sends the release of `lease` behind all its unanswered requests. If these are in two places,
    /// or nothing was held, the background sends it.
    fn send(lease: Arc<ShardLease>, held: bool, yields: bool) -> Self {
        let (here, elsewhere) = places(&lease);
        let answer = held
            .then(|| submit_for_caller(&lease, &here, yields))
            .flatten();
        if answer.is_some() {
            here.requests.releases.send_elsewhere(&lease, elsewhere);
        }
        Self {
            held,
            yields,
            answer,
            answered: false,
            lease,
        }
    }

    async fn once(&mut self) -> Option<Answer> {
        match &mut self.answer {
            Some(answer) => answer.await.ok(),
            None => None,
        }
    }

    async fn answer(mut self) -> ReleaseAnswer {
        let mut answer = self.once().await;
        for _ in 0..UNARMED_RETRIES {
            if !matches!(answer, Some(Err(ShardError::Unarmed))) {
                break;
            }
            // Nothing was written, and its lane is shaking hands with the next life.
            let pause = self.lease.renewer().around.random.jitter(UNARMED_RETRY);
            sleep(pause).await;
            self.answer = submit_for_caller(&self.lease, &self.lease.renewer(), false);
            answer = self.once().await;
        }
        let Some(Ok(Answered {
            reply: Reply::Released { held },
            ..
        })) = answer
        else {
            return if self.held {
                ReleaseAnswer::Unknown
            } else {
                ReleaseAnswer::Lost
            };
        };
        self.answered = true;
        if held {
            ReleaseAnswer::Held
        } else {
            ReleaseAnswer::Lost
        }
    }
}

impl Drop for Releasing {
    fn drop(&mut self) {
        if !self.answered {
            self.lease
                .renewer()
                .requests
                .releases
                .send(&self.lease, self.yields);
        }
    }
}
