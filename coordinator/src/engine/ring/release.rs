//! The release that a caller waits for.

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::sleep};

use super::{
    super::ReleaseAnswer,
    in_flight::Behind,
    renewer::LeaseRenewer,
    shard_lease::ShardLease,
    unsent::{places, release_behind, submit},
};
use crate::{
    driver::{Answer, Answered, Respond},
    shard::{Reply, ShardError},
};

/// A release that met a life without state is repeated this often, with about this pause: the time
/// of a handshake.
const UNARMED_RETRIES: usize = 10;
const UNARMED_RETRY: Duration = Duration::from_millis(50);

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
            let lease = lease.clone();
            Respond::Engine(Box::new(move |answer| {
                lease.receiver.over(&lease);
                drop(caller.send(answer));
            }))
        }
    };
    submit(lease, at, lane, respond);
    Some(answer)
}

impl ShardLease {
    /// Sends its release, after belief in it has ended. The future waits for the answer.
    pub(crate) fn send_release(
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
