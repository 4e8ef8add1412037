//! The request for a lock at its shard: sent, repeated, taken back; and the meaning of its answers.

use std::{sync::Arc, time::Duration};

use super::{
    super::{
        AcquireError,
        local::{Answer as Grant, Judged, Tokens, Waiting, events},
    },
    Requests,
    in_flight::{InFlight, Search},
    renewer::LeaseRenewer,
    shard_lease::ShardLease,
};
use crate::{
    clock::Instant,
    driver::{Answer, Answered, Respond},
    ids::MapVersion,
    limits::{CLAIM_MAX, RECHECK_MAX},
    shard::{Op, Reply, Request, ShardError, Ticket},
};

/// The rest of a lease or of a grace is rounded down: this prevents two requests within one
/// millisecond.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// For this many pauses, a caller that asks once waits while the ring's picture is out of date.
const MISLED_MAX: u8 = 5;

/// A waiter for a key whose slot is migrating asks again after this long, less jitter: a shard passes on
/// no key of a sealed slot, nor one that the former shard may hold.
const RECHECK_MIGRATING: Duration = Duration::from_millis(200);

/// The meaning of the shard's answer for the local queue.
pub(crate) enum Verdict {
    Granted(Grant),
    /// Not now: ask again after a while.
    Wait {
        because: AcquireError,
        pause: Duration,
    },
    /// Ask another shard, at once.
    GoOn(Arc<LeaseRenewer>),
    /// Ask another shard, after a while.
    GoAndWait {
        to: Arc<LeaseRenewer>,
        because: AcquireError,
        pause: Duration,
    },
    /// Refuse everyone in the local queue.
    Refuse(AcquireError),
    /// The local queue begins anew: other shards are to be asked.
    Restart,
}

impl Requests {
    /// Asks the shard. A repeat keeps its nonce, and with it its place in the shard's queue, and
    /// finds a grant made meanwhile.
    pub(crate) fn ask(self: &Arc<Self>, lease: &Arc<ShardLease>) {
        let refused = {
            let mut in_flight = lease.in_flight.lock();
            // Under the lock under which an abandoned request is taken back: either that sees this
            // request and goes behind it, or this request is not sent.
            if lease.is_over() || in_flight.here.asking.is_out() {
                return;
            }
            in_flight.here.asking.sent();
            let sent = self.around.clock.now();
            events::asking(lease, sent);
            let at = lease.renewer();
            let request = request(lease, &at, sent, &in_flight);
            let (from, asked) = (at.clone(), lease.clone());
            let respond = move |answer| from.requests.answered(&asked, &from, answer);
            let respond = Respond::Engine(Box::new(respond));
            at.driver.try_submit(request, respond)
        };
        if let Err((respond, error)) = refused {
            respond.respond(Err(error));
        }
    }

    fn answered(self: &Arc<Self>, lease: &Arc<ShardLease>, at: &Arc<LeaseRenewer>, answer: Answer) {
        {
            let mut in_flight = lease.in_flight.lock();
            in_flight.asked(&lease.renewer(), at, &answer);
            // It moved on meanwhile: a grant made here after all is released with all the rest.
            if !lease.is_at(at) {
                return;
            }
        }
        let verdict = self.judge(lease, at, answer);
        match verdict {
            Verdict::Granted(grant) => self.granted(lease, grant),
            Verdict::Wait { because, pause } => self.wait(lease, &because, pause),
            Verdict::GoOn(to) => {
                if self.goes(lease, &to) {
                    self.ask(lease);
                }
            }
            Verdict::GoAndWait { to, because, pause } => {
                if self.goes(lease, &to) {
                    self.wait(lease, &because, pause);
                }
            }
            Verdict::Refuse(refusal) => lease.receiver.refused(lease, &refusal),
            Verdict::Restart => {
                self.abandon(lease);
                lease.receiver.over(lease);
            }
        }
    }

    fn granted(&self, lease: &Arc<ShardLease>, grant: Grant) {
        match lease.receiver.granted(lease, grant) {
            Judged::Held => lease.renewer().keep(lease),
            Judged::TooLate => {
                let pause = lease.in_flight.lock().retry.next(&self.around.random);
                self.wait(lease, &AcquireError::TooLate, pause);
            }
            Judged::Known => {}
        }
    }

    /// Asks again after `pause`, and tells the local queue the reason.
    fn wait(&self, lease: &Arc<ShardLease>, because: &AcquireError, pause: Duration) {
        let is_stale = matches!(because, AcquireError::Moved);
        let (stale_routes, ticket) = {
            let mut in_flight = lease.in_flight.lock();
            in_flight.search = Search::default();
            in_flight.stale_routes = if is_stale {
                in_flight.stale_routes.saturating_add(1)
            } else {
                0
            };
            (in_flight.stale_routes, in_flight.callers > 0)
        };
        if is_stale {
            self.stale_routes.lock().add(lease);
        }
        let Some(routing) = self.routing() else {
            return;
        };
        // An outdated picture of the ring gives no answer: it is about to be refreshed.
        let is_answer = !(1..=MISLED_MAX).contains(&stale_routes);
        let waiting = || {
            let shard = routing.route(&lease.key).renewer.driver.id().clone();
            Waiting::new(because, &shard, routing.topology().constants.grace())
        };
        if let Some(callers) = lease.receiver.waits(lease, because, is_answer, &waiting) {
            let now = self.around.clock.now();
            // The present waiters came while a request without a ticket was out.
            let at = match ticket || callers == 0 {
                true => now + pause.max(PAUSE_MIN),
                false => now,
            };
            lease.renewer().tend_at(lease, at);
        }
    }

    /// It is time to ask again for `lease`.
    pub(super) fn recheck(self: &Arc<Self>, lease: &Arc<ShardLease>) {
        let Some(routing) = self.routing() else {
            return;
        };
        let route = routing.route(&lease.key);
        let again = lease.receiver.if_asked(lease, &mut |callers| {
            lease.in_flight.lock().callers = callers;
            if !route.leads_by(&lease.renewer()) {
                lease.go(&route.renewer);
            }
        });
        if again {
            self.ask(lease);
        }
    }

    /// Takes a request back, with a grant that it may have got.
    pub(crate) fn abandon(&self, lease: &Arc<ShardLease>) {
        lease.end_here();
        events::gave_up(lease);
        self.releases.send_what_is_left(lease);
    }

    fn judge(&self, lease: &ShardLease, at: &Arc<LeaseRenewer>, answer: Answer) -> Verdict {
        let shard = || at.driver.id().to_string();
        let Answered { reply, sent } = match answer {
            Ok(answered) => answered,
            Err(error) => return self.trouble(lease, error.into()),
        };
        match reply {
            Reply::Granted {
                token,
                tokens,
                contended,
            } => Verdict::Granted(Grant {
                tokens: Tokens::new(token, tokens),
                contended,
                sent,
                claim: None,
            }),
            Reply::Held {
                remaining,
                label,
                position,
            } => {
                if let Some(position) = position {
                    self.queued(lease, position, sent);
                }
                let pause = self.until_recheck(lease);
                let first = position.is_none_or(|before| before == 0);
                Verdict::Wait {
                    because: AcquireError::Held {
                        holder: label,
                        remaining,
                        ahead: position,
                    },
                    // Only the first waiter finds an expired record.
                    pause: if first { pause.min(remaining) } else { pause },
                }
            }
            Reply::TooManyWaiters { retry_after } => {
                Verdict::Refuse(AcquireError::TooManyWaiters { retry_after })
            }
            Reply::Grace { retry_after } => self.recovers(lease, at, retry_after),
            Reply::Moved { epoch } => self.moved(lease, at, epoch),
            Reply::Outdated => self.outdated(lease),
            Reply::Moving { epoch, left } => self.sealed(lease, at, epoch, left),
            Reply::NeedProof { epoch } => self.unproven(lease, at, epoch),
            Reply::NoTokens => self.trouble(lease, AcquireError::NoTokens(shard())),
            Reply::OutOfMemory => self.trouble(lease, AcquireError::OutOfMemory(shard())),
            Reply::OtherKind { held } => Verdict::Refuse(AcquireError::OtherKind {
                asked: lease.terms.mode.kind(),
                held,
            }),
            Reply::Foreign => Verdict::Refuse(AcquireError::Foreign(shard())),
            reply @ (Reply::Renewed { .. }
            | Reply::Lost
            | Reply::Adopted { .. }
            | Reply::NotAdopted
            | Reply::Released { .. }) => {
                let (what, reason) = ("acquire", format!("unexpected answer {reply:?}"));
                Verdict::Refuse(ShardError::Refused { what, reason }.into())
            }
        }
    }

    /// A namespace was declared after the shards to ask were chosen, or that of the key is being declared.
    fn outdated(&self, lease: &ShardLease) -> Verdict {
        let Some(routing) = self.routing() else {
            return self.trouble(lease, AcquireError::Moved);
        };
        let present = routing.declaration(&lease.key);
        let asked_by = std::mem::replace(&mut lease.in_flight.lock().declaration, present);
        if present.replicas != asked_by.replicas {
            return Verdict::Restart;
        }
        let because = match routing.check_declared(&lease.key) {
            Err(declaring) => declaring,
            Ok(()) => {
                if present == asked_by {
                    routing.refresh();
                }
                AcquireError::Moved
            }
        };
        self.trouble(lease, because)
    }

    /// Its shard grants no new lock for `left`.
    fn recovers(&self, lease: &ShardLease, at: &LeaseRenewer, left: Duration) -> Verdict {
        let shard = at.driver.id();
        let routing = self.routing();
        let new = routing.is_some_and(|routing| routing.topology().is_new(shard));
        at.tell_recovery(new, left);
        Verdict::Wait {
            because: AcquireError::Grace {
                shard: shard.to_string(),
                new,
                retry_after: left,
            },
            // Often enough to keep its place.
            pause: left.min(self.until_recheck(lease)),
        }
    }

    /// It has its place in the shard's queue.
    fn queued(&self, lease: &ShardLease, position: u32, sent: Instant) {
        events::queued(lease, position, sent, self.around.clock.now());
        lease.in_flight.lock().is_first = position == 0;
    }

    /// The step after `error`: wait it out, if it may pass.
    pub(crate) fn trouble(&self, lease: &ShardLease, error: AcquireError) -> Verdict {
        if !error.is_retryable() {
            return Verdict::Refuse(error);
        }
        let backoff = lease.in_flight.lock().retry.next(&self.around.random);
        Verdict::Wait {
            pause: error.retry_after().unwrap_or_default().max(backoff),
            because: error,
        }
    }

    pub(crate) fn until_recheck(&self, lease: &ShardLease) -> Duration {
        let routing = self.routing();
        let migration = routing.and_then(|routing| routing.route(&lease.key).migration);
        let longest = migration.map_or(RECHECK_MAX, |_| RECHECK_MIGRATING);
        self.around.random.jitter(longest.min(claim(lease) / 3))
    }
}

/// The claim time of a turn.
fn claim(lease: &ShardLease) -> Duration {
    lease.lease_to_ask().min(CLAIM_MAX)
}

fn request(
    lease: &ShardLease,
    at: &LeaseRenewer,
    sent: Instant,
    in_flight: &InFlight<LeaseRenewer>,
) -> Request {
    let ticket = (in_flight.callers > 0).then(|| Ticket {
        sent,
        claim: claim(lease),
        callers: in_flight.callers,
    });
    let asked_by = in_flight.declaration.version;
    let (map, declared) = at.versions(lease.key.slot());
    Request {
        key: lease.key.clone(),
        // A shard that is quiet at this map checks nothing more, so the map must not be newer than the declaration.
        map: if declared == asked_by {
            map
        } else {
            MapVersion::UNKNOWN
        },
        declared: asked_by,
        op: Op::Acquire {
            nonce: lease.nonce,
            label: lease.terms.label.clone(),
            lease: lease.lease_to_ask(),
            mode: lease.terms.mode,
            preferred: lease.terms.preferred,
            tokens: lease.tokens,
            ticket,
            proof: in_flight.proof,
        },
    }
}
