//! Giving back: now, or in the background until it is done.

use std::{
    sync::{
        Arc,
        atomic::{
            AtomicUsize,
            Ordering::{AcqRel, Acquire},
        },
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::{sleep, timeout},
};

use super::{
    Inner, ReleaseAnswer,
    flow::{Behind, Exchange},
    grant::Grant,
    hold::{Hold, Phase},
};
use crate::{
    clock::Instant,
    driver::{Answer, Answered, Respond, Surroundings},
    ids::Nonce,
    name::LockKey,
    shard::{Lane, Op, Reply, Request, ShardError},
    sync::Mutex,
};

/// Pause before releases that failed are sent again.
const RETRY: Duration = Duration::from_millis(200);

/// A release that met a life without state is sent again so often, with about so long a pause: the time it
/// takes to shake hands.
const UNARMED_RETRIES: usize = 10;
const UNARMED_RETRY: Duration = Duration::from_millis(50);

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
        let give_up = self.around.clock.now() + hold.terms.lease * 2;
        self.submit(hold.clone(), give_up);
    }

    fn submit(self: &Arc<Self>, hold: Arc<Hold>, give_up: Instant) {
        let behind = hold.flow.lock().release_behind();
        let lane = match behind {
            Behind::Lane(lane) => lane,
            Behind::Both => Lane::Work,
        };
        let (releases, released) = (self.clone(), hold.clone());
        let respond = move |answer: Answer| {
            releases.answered(released, give_up, behind, answer);
        };
        submit(&hold, lane, Respond::Engine(Box::new(respond)));
    }

    fn answered(
        self: &Arc<Self>,
        hold: Arc<Hold>,
        give_up: Instant,
        behind: Behind,
        answer: Answer,
    ) {
        match answer {
            // Nothing arrives any more where this came from.
            Ok(_) if behind == Behind::Both => {
                hold.flow.lock().asking = Exchange::default();
                self.submit(hold, give_up);
            }
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

/// Sends a release of `hold`.
fn submit(hold: &Hold, lane: Lane, respond: Respond) {
    let op = Op::Release { nonce: hold.nonce };
    let request = Request {
        key: hold.key.clone(),
        map: hold.keeper.map(),
        op,
    };
    hold.keeper.driver.submit_with(lane, request, respond);
}

/// Sends a release of `hold`, unless that takes two.
fn submit_for_caller(hold: &Hold) -> Option<oneshot::Receiver<Answer>> {
    let behind = hold.flow.lock().release_behind();
    let Behind::Lane(lane) = behind else {
        return None;
    };
    let (caller, answer) = oneshot::channel();
    submit(hold, lane, Respond::Caller(caller));
    Some(answer)
}

/// A release under way: if it is dropped before the answer came, it is sent again in the background.
struct Releasing<'a> {
    releases: &'a Arc<Releases>,
    hold: Arc<Hold>,
    /// Whether it was surely held when it was given back.
    held: bool,
    answer: Option<oneshot::Receiver<Answer>>,
    answered: bool,
}

impl<'a> Releasing<'a> {
    /// Sends the release of `hold` behind whatever is out for it. Where that is in two places, or nothing
    /// was held, the background does.
    fn send(releases: &'a Arc<Releases>, hold: Arc<Hold>, held: bool) -> Self {
        Self {
            releases,
            held,
            answer: held.then(|| submit_for_caller(&hold)).flatten(),
            answered: false,
            hold,
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
            sleep(self.releases.around.random.jitter(UNARMED_RETRY)).await;
            self.answer = submit_for_caller(&self.hold);
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

impl Drop for Releasing<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.releases.send(&self.hold);
        }
    }
}

impl Inner {
    /// Ends `grant`, the last guard of it being gone: the lock goes to whoever waits in this process, or
    /// back to the shard.
    pub(super) async fn release(&self, grant: &Grant) -> ReleaseAnswer {
        let held = grant.hold.is_held(self.now());
        let Some(mut due) = self.lines.released(&grant.hold) else {
            return ReleaseAnswer::Lost;
        };
        // Belief ends before the release is sent.
        let given_back = due.deeds.give_back.take();
        let given_back = given_back.filter(|hold| self.lines.end(hold) == Phase::Held);
        let releasing = given_back.map(|hold| Releasing::send(&self.releases, hold, held));
        // A request for who waits goes behind it.
        self.lines.perform(due);
        match releasing {
            Some(releasing) => releasing.answer().await,
            None if held => ReleaseAnswer::Held,
            None => ReleaseAnswer::Lost,
        }
    }

    /// Ends `grant` without waiting.
    pub(super) fn release_in_background(&self, grant: &Grant) {
        if let Some(due) = self.lines.released(&grant.hold) {
            self.lines.perform(due);
        }
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
