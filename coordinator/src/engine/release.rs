//! Giving back: now, or in the background until it is done.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed},
        },
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time::{sleep, timeout},
};

use super::{Inner, ReleaseAnswer, hold::Hold};
use crate::{
    clock::Instant,
    driver::{Answer, Answered, Respond, Surroundings},
    ids::Nonce,
    name::LockKey,
    shard::{Lane, Op, Reply, Request, ShardError},
};

/// Pause before releases that failed are sent again.
const RETRY: Duration = Duration::from_millis(200);

/// Releases that nobody waits for: sent again until answered, or until the lock has expired.
/// At most one for each lock that was held, so bounded as those are.
#[derive(Debug)]
pub(super) struct Releases {
    around: Surroundings,
    pending: AtomicUsize,
    none_pending: Notify,
    failed: Mutex<Vec<(Arc<Hold>, Instant)>>,
    some_failed: Notify,
}

impl Releases {
    pub(super) fn start(around: &Surroundings) -> Arc<Self> {
        let releases = Arc::new(Self {
            around: around.clone(),
            pending: AtomicUsize::new(0),
            none_pending: Notify::new(),
            failed: Mutex::default(),
            some_failed: Notify::new(),
        });
        let running = releases.clone();
        around.tasks.spawn(async move {
            running.around.stop.run_until_cancelled(running.run()).await;
        });
        releases
    }

    /// Releases `hold`, whose belief has ended.
    pub(super) fn send(self: &Arc<Self>, hold: &Arc<Hold>) {
        self.pending.fetch_add(1, AcqRel);
        let give_up = self.around.clock.now() + hold.lease * 2;
        self.submit(hold.clone(), give_up);
    }

    fn submit(self: &Arc<Self>, hold: Arc<Hold>, give_up: Instant) {
        let (releases, released) = (self.clone(), hold.clone());
        let respond = move |answer: Answer| releases.answered(released, give_up, answer);
        submit(&hold, Respond::Engine(Box::new(respond)));
    }

    fn answered(&self, hold: Arc<Hold>, give_up: Instant, answer: Answer) {
        match answer {
            Err(error) if error.is_retryable() && self.around.clock.now() < give_up => {
                self.failed.lock().push((hold, give_up));
                self.some_failed.notify_one();
            }
            Err(error) => {
                tracing::warn!(key = %hold.key, %error, "release gave up; the lock expires");
                self.done();
            }
            Ok(_) => self.done(),
        }
    }

    fn done(&self) {
        if self.pending.fetch_sub(1, AcqRel) == 1 {
            self.none_pending.notify_waiters();
        }
    }

    async fn run(self: &Arc<Self>) {
        loop {
            self.some_failed.notified().await;
            sleep(self.around.random.jitter(RETRY)).await;
            let failed = std::mem::take(&mut *self.failed.lock());
            failed
                .into_iter()
                .for_each(|(hold, give_up)| self.submit(hold, give_up));
        }
    }

    /// Waits until all are answered, for at most `grace`; answers how many are not.
    pub(super) async fn flush(&self, grace: Duration) -> usize {
        let all_answered = async {
            loop {
                let none_pending = self.none_pending.notified();
                tokio::pin!(none_pending);
                none_pending.as_mut().enable();
                if self.pending.load(Acquire) == 0 {
                    return;
                }
                none_pending.await;
            }
        };
        let _ = timeout(grace, all_answered).await;
        self.pending.load(Acquire)
    }
}

/// Sends a release of `hold` behind whatever is out for it: it must not overtake a renewal, which
/// in grace would put the record back.
fn submit(hold: &Hold, respond: Respond) {
    let lane = hold.flow.lock().lane_of_release();
    let op = Op::Release { nonce: hold.nonce };
    let request = Request {
        key: hold.key.clone(),
        map: hold.keeper.map(),
        op,
    };
    hold.keeper.driver.submit_with(lane, request, respond);
}

/// A release under way: if its future is dropped before the answer came, it is sent again in the
/// background.
struct Releasing<'a> {
    releases: &'a Arc<Releases>,
    hold: &'a Arc<Hold>,
    answered: bool,
}

impl Drop for Releasing<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.releases.send(self.hold);
        }
    }
}

impl Inner {
    /// Gives `hold` back, the last guard being gone.
    pub(super) async fn release(&self, hold: &Arc<Hold>) -> ReleaseAnswer {
        let held = hold.is_held(self.now());
        // Belief ends before the release is sent.
        if !self.end(hold) {
            return ReleaseAnswer::Lost;
        }
        let mut releasing = Releasing {
            releases: &self.releases,
            hold,
            answered: false,
        };
        if !held {
            return ReleaseAnswer::Lost;
        }
        let (caller, answer) = oneshot::channel();
        submit(hold, Respond::Caller(caller));
        let Ok(Ok(Answered {
            reply: Reply::Released { held },
            ..
        })) = answer.await
        else {
            return ReleaseAnswer::Unknown;
        };
        releasing.answered = true;
        if held {
            ReleaseAnswer::Held
        } else {
            ReleaseAnswer::Lost
        }
    }

    /// Gives `hold` back without waiting.
    pub(super) fn release_in_background(&self, hold: &Arc<Hold>) {
        if self.end(hold) {
            self.releases.send(hold);
        }
    }

    /// Ends belief in `hold`. Whether its record may still be there.
    fn end(&self, hold: &Hold) -> bool {
        let was_held = hold.end();
        hold.keeper.forget(hold);
        self.held.fetch_sub(1, Relaxed);
        was_held
    }

    /// Releases an acquisition of anybody's; whether its record was still there.
    pub(super) async fn force_release(
        &self,
        key: &LockKey,
        nonce: Nonce,
    ) -> Result<bool, ShardError> {
        let route = self.routing.route(key);
        let request = Request {
            key: key.clone(),
            map: route.map,
            op: Op::Release { nonce },
        };
        match route.keeper.driver.submit(Lane::Work, request).await {
            Ok(Ok(answered)) => Ok(answered.reply == Reply::Released { held: true }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(ShardError::NoReply {
                reason: "the engine was closed".into(),
            }),
        }
    }
}
