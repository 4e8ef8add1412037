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
    keeper::Keeper,
};
use crate::{
    clock::Instant,
    driver::{Answer, Answered, LockLane, Respond, Surroundings},
    ids::Nonce,
    name::LockKey,
    shard::{Op, Reply, Request, ShardError},
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
    failed: Mutex<Vec<Unsent>>,
    some_failed: Notify,
}

/// A release that has to be sent, or sent again.
#[derive(Debug)]
struct Unsent {
    hold: Arc<Hold>,
    at: Arc<Keeper>,
    give_up: Instant,
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

    /// Releases `hold`, whose belief has ended: where it is, and wherever else something of it may be.
    pub(super) fn send(self: &Arc<Self>, hold: &Arc<Hold>) {
        let (here, elsewhere) = places(hold);
        self.send_to(hold, here);
        self.send_elsewhere(hold, elsewhere);
    }

    /// Takes back whatever of `hold`, which was given up, may be at a shard.
    pub(super) fn send_what_is_left(self: &Arc<Self>, hold: &Arc<Hold>) {
        let (here, elsewhere) = places(hold);
        if hold.flow.lock().here.may_be_there() {
            self.send_to(hold, here);
        }
        self.send_elsewhere(hold, elsewhere);
    }

    /// Takes back what of `hold` may be at shards where it is not.
    fn send_elsewhere(self: &Arc<Self>, hold: &Arc<Hold>, elsewhere: Vec<Arc<Keeper>>) {
        for keeper in elsewhere {
            self.send_to(hold, keeper);
        }
    }

    fn send_to(self: &Arc<Self>, hold: &Arc<Hold>, at: Arc<Keeper>) {
        self.pending.fetch_add(1, AcqRel);
        let give_up = self.around.clock.now() + hold.terms.lease * 2;
        let hold = hold.clone();
        self.submit(Unsent { hold, at, give_up });
    }

    fn submit(self: &Arc<Self>, unsent: Unsent) {
        let Unsent { hold, at, .. } = &unsent;
        let (hold, at) = (hold.clone(), at.clone());
        let behind = release_behind(&hold, &at);
        let lane = match behind {
            Behind::Lane(lane) => lane,
            Behind::Both => LockLane::Work,
        };
        let releases = self.clone();
        let respond = move |answer: Answer| releases.answered(unsent, behind, answer);
        submit(&hold, &at, lane, Respond::Engine(Box::new(respond)));
    }

    fn answered(self: &Arc<Self>, unsent: Unsent, behind: Behind, answer: Answer) {
        match answer {
            // Nothing arrives any more where this came from.
            Ok(_) if behind == Behind::Both => {
                let Unsent { hold, at, .. } = &unsent;
                hold.flow.lock().at(&hold.keeper(), at).asking = Exchange::default();
                self.submit(unsent);
            }
            Err(error) if error.is_retryable() && self.around.clock.now() < unsent.give_up => {
                self.failed.lock().push(unsent);
                self.some_failed.notify_one();
            }
            Err(error) => {
                tracing::warn!(key = %unsent.hold.key, %error, "release gave up; the lock expires");
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
            failed.into_iter().for_each(|unsent| self.submit(unsent));
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

/// The shard that `hold` is at, and the others where something of it may be. Its belief has ended, so that it goes
/// nowhere from then on.
///
/// Both under the lock under which it goes from one shard to another: read one after the other, both could name the shard
/// that it leaves, and its record at the next would stay for a lease.
fn places(hold: &Hold) -> (Arc<Keeper>, Vec<Arc<Keeper>>) {
    let flow = hold.flow.lock();
    (hold.keeper().clone(), flow.left_elsewhere())
}

fn release_behind(hold: &Hold, at: &Arc<Keeper>) -> Behind {
    let mut flow = hold.flow.lock();
    flow.at(&hold.keeper(), at).release_behind()
}

/// Sends a release of `hold` to the shard of `at`.
fn submit(hold: &Hold, at: &Keeper, lane: LockLane, respond: Respond) {
    let op = Op::Release {
        nonce: hold.nonce,
        wanted: hold.gives_way(),
    };
    let request = Request {
        key: hold.key.clone(),
        map: at.map(hold.key.slot()),
        op,
    };
    at.driver.submit_with(lane, request, respond);
}

/// Sends a release of `hold` to the shard of `at`, where it is, unless that takes two.
fn submit_for_caller(hold: &Hold, at: &Arc<Keeper>) -> Option<oneshot::Receiver<Answer>> {
    let Behind::Lane(lane) = release_behind(hold, at) else {
        return None;
    };
    let (caller, answer) = oneshot::channel();
    submit(hold, at, lane, Respond::Caller(caller));
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
        let (here, elsewhere) = places(&hold);
        let answer = held.then(|| submit_for_caller(&hold, &here)).flatten();
        if answer.is_some() {
            releases.send_elsewhere(&hold, elsewhere);
        }
        Self {
            releases,
            held,
            answer,
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
            self.answer = submit_for_caller(&self.hold, &self.hold.keeper());
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
    /// back to the shard. `now` is when that was asked for.
    pub(super) async fn release(&self, grant: &Grant, now: Instant) -> ReleaseAnswer {
        let held = grant.hold.is_held(now);
        let Some(mut due) = self.lines.released(&grant.hold, now) else {
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
        if let Some(due) = self.lines.released(&grant.hold, self.now()) {
            self.lines.perform(due);
        }
    }

    /// Releases an acquisition of anybody's; whether its record was still there.
    pub(super) async fn force_release(
        &self,
        key: &LockKey,
        nonce: Nonce,
    ) -> Result<bool, ShardError> {
        let mut released = false;
        for keeper in self.routing.route(key).keepers() {
            let request = Request {
                key: key.clone(),
                map: keeper.map(key.slot()),
                op: Op::Release {
                    nonce,
                    wanted: false,
                },
            };
            released |= match keeper.driver.submit(LockLane::Work, request).await {
                Ok(Ok(answered)) => answered.reply == Reply::Released { held: true },
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    let reason = "the engine was closed".into();
                    return Err(ShardError::NoReply { reason });
                }
            };
        }
        Ok(released)
    }
}
