//! Releases in the background, until they are done.

use std::{sync::Arc, time::Duration};

use hashbrown::HashMap;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::{
    in_flight::{Behind, Outstanding},
    last_releases::{LastReleases, WITHIN},
    renewer::LeaseRenewer,
    shard_lease::ShardLease,
    unsent::{Unsent, places, release_behind, submit},
};
use crate::{
    clock::Instant,
    driver::{Answer, Context, Respond},
    shard::LockLane,
    sync::Mutex,
};

/// Pause before releases that failed are sent again.
const RETRY: Duration = Duration::from_millis(200);

/// Releases without a waiting caller: repeated until answered, or until the lock has expired. There
/// is at most one per held lock, so the number is bounded.
#[derive(Debug)]
pub(crate) struct Releases {
    around: Context,
    /// Whether other processes can reach the shards.
    shared: bool,
    pending: Mutex<Pending>,
    none_pending: Notify,
    some_failed: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    next: u64,
    /// Not answered yet.
    unanswered: HashMap<u64, Unsent>,
    /// Those of them that have to be sent again.
    failed: Vec<u64>,
    /// No task of the engine sends them any more.
    orphaned: Option<Orphaned>,
}

/// The engine's tasks have ended, or are about to.
#[derive(Debug)]
struct Orphaned {
    /// The time until which drops wait for their releases.
    until: Instant,
    /// Sends the releases. Started for the first one.
    by: Option<Arc<LastReleases>>,
}

/// Dropped with its task: by the end of the runtime, unless the task was stopped before.
struct UntilStopped<'a>(Option<&'a Releases>);

impl<'a> UntilStopped<'a> {
    fn of(releases: &'a Releases) -> Self {
        Self(Some(releases))
    }

    fn stopped(mut self) {
        self.0 = None;
    }
}

impl Drop for UntilStopped<'_> {
    fn drop(&mut self) {
        if let Some(releases) = self.0 {
            releases.take_over();
        }
    }
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
    pub(crate) fn send_elsewhere(
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
        let yields = unsent.yields.then(|| lease.clone());
        let respond = move |answer: Answer| {
            releases.answered(number, behind, answer);
            if let Some(lease) = yields {
                lease.receiver.over(&lease);
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

    /// From now on a thread sends the releases, including the unanswered ones, because no task
    /// does. Waits for that, but not for long.
    pub(crate) fn take_over(&self) {
        if self.shared {
            let until = self.around.clock.now() + WITHIN;
            let mut pending = self.pending.lock();
            let by = pending.orphaned.take().and_then(|orphaned| orphaned.by);
            pending.orphaned = Some(Orphaned { until, by });
            drop(pending);
            self.send_last();
        }
    }

    /// Has the thread send the unanswered releases, and waits for that.
    fn send_last(&self) {
        let mut pending = self.pending.lock();
        let Pending {
            unanswered,
            orphaned: Some(Orphaned { until, by }),
            ..
        } = &mut *pending
        else {
            return;
        };
        if unanswered.is_empty() {
            return;
        }
        if by.is_none() {
            *by = LastReleases::start().map(Arc::new);
        }
        let Some(by) = by.clone() else {
            return;
        };
        let unsent = unanswered.drain().map(|(_, unsent)| unsent).collect();
        let left = until.since(self.around.clock.now());
        drop(pending);
        by.send(unsent, left);
    }
}
