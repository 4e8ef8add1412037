//! The request at the shard on behalf of a whole local queue: sent, repeated, taken back.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use super::{
    super::{
        AcquireError, WaitObserver, Waiting, events,
        hold::Hold,
        in_flight::{InFlight, Search},
        renewer::LeaseRenewer,
    },
    KeyQueue, LocalQueues, Terms, Waiter,
    search::go,
    tokens::Tokens,
};
use crate::{
    clock::Instant,
    driver::{Answer, Answered, Respond},
    ids::{Nonce, Token},
    limits::{CLAIM_MAX, HELD_MAX, RECHECK_MAX},
    name::LockKey,
    shard::{LockLane, Op, Reply, Request, ShardError, Ticket},
};

/// The rest of a lease or of a grace is rounded down: this prevents two requests within one
/// millisecond.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// For this many pauses, a caller that asks once waits while the ring's picture is out of date.
const MISLED_MAX: u8 = 5;

/// The meaning of the shard's answer for the local queue.
pub(super) enum Verdict {
    Granted {
        token: Token,
        tokens: u32,
        wanted: bool,
        sent: Instant,
    },
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
}

impl LocalQueues {
    /// A request for `key`, not sent yet, on behalf of `first` in its local queue.
    pub(super) fn begin(
        &self,
        key: &LockKey,
        first: &Waiter,
        terms: Terms,
        tokens: u32,
        ticket: bool,
    ) -> Result<Arc<Hold>, AcquireError> {
        let held = self.held.fetch_add(1, Relaxed);
        if held >= HELD_MAX {
            self.held.fetch_sub(1, Relaxed);
            return Err(AcquireError::TooManyHeld(held));
        }
        let nonce = Nonce {
            client: self.client,
            sequence: self.sequence.fetch_add(1, Relaxed),
        };
        let renewer = first.engine.routing.route(key).renewer;
        Ok(Hold::new(
            key.clone(),
            nonce,
            terms,
            tokens,
            ticket,
            renewer,
        ))
    }

    /// Asks the shard. A repeat keeps its nonce, and with it its place in the shard's queue, and
    /// finds a grant made meanwhile.
    pub(super) fn ask(self: &Arc<Self>, hold: &Arc<Hold>) {
        let refused = {
            let mut in_flight = hold.in_flight.lock();
            // Under the lock under which an abandoned request is taken back: either that sees this
            // request and goes behind it, or this request is not sent.
            if hold.is_over() || in_flight.here.asking.is_out() {
                return;
            }
            in_flight.here.asking.sent();
            let sent = self.around.clock.now();
            events::asking(hold, sent);
            let at = hold.renewer();
            let request = request(hold, &at, sent, &in_flight);
            let (from, asked) = (at.clone(), hold.clone());
            let respond = move |answer| from.queues.answered(&asked, &from, answer);
            let respond = Respond::Engine(Box::new(respond));
            at.driver.try_submit(LockLane::Work, request, respond)
        };
        if let Err((respond, error)) = refused {
            respond.respond(Err(error));
        }
    }

    fn answered(self: &Arc<Self>, hold: &Arc<Hold>, at: &Arc<LeaseRenewer>, answer: Answer) {
        {
            let mut in_flight = hold.in_flight.lock();
            in_flight.asked(&hold.renewer(), at, &answer);
            // It moved on meanwhile: a grant made here after all is released with all the rest.
            if !hold.is_at(at) {
                return;
            }
        }
        let verdict = self.judge(hold, at, answer);
        match verdict {
            Verdict::Granted {
                token,
                tokens,
                wanted,
                sent,
            } => self.granted(hold, Tokens::new(token, tokens), wanted, sent),
            Verdict::Wait { because, pause } => self.wait(hold, &because, pause),
            Verdict::GoOn(to) => {
                if self.goes(hold, &to) {
                    self.ask(hold);
                }
            }
            Verdict::GoAndWait { to, because, pause } => {
                if self.goes(hold, &to) {
                    self.wait(hold, &because, pause);
                }
            }
            Verdict::Refuse(refusal) => {
                let dismissed = self.change(&hold.key, |queue, _| {
                    let asking = queue.is_asking(hold);
                    asking.then(|| queue.dismiss())
                });
                for waiter in dismissed.flatten().into_iter().flatten() {
                    waiter.refuse(refusal.clone());
                }
            }
        }
    }

    fn granted(self: &Arc<Self>, hold: &Arc<Hold>, tokens: Tokens, wanted: bool, sent: Instant) {
        let too_late = self.change(&hold.key, |queue, now| {
            if queue.holds(hold) {
                // A turn came before this answer: the answer extends that grant, from its own send.
                if hold.token() == tokens.first() {
                    hold.renewed(sent, now);
                    events::renewed(hold, false, sent, now);
                }
                if wanted {
                    queue.wanted(now);
                }
            } else if queue.is_asking(hold) {
                if !hold.granted(tokens.first(), sent, now, None) {
                    return true;
                }
                hold.renewer().keep(hold);
                queue.granted(hold, tokens, wanted, now);
            }
            false
        });
        if too_late == Some(true) {
            let pause = hold.in_flight.lock().retry.next(&self.around.random);
            self.wait(hold, &AcquireError::TooLate, pause);
        }
    }

    /// Asks again after `pause`, and tells the observers.
    fn wait(self: &Arc<Self>, hold: &Arc<Hold>, because: &AcquireError, pause: Duration) {
        let stale_routes = matches!(because, AcquireError::Moved);
        {
            let mut in_flight = hold.in_flight.lock();
            in_flight.refusal = Some(because.clone());
            in_flight.search = Search::default();
            in_flight.stale_routes = if stale_routes {
                in_flight.stale_routes.saturating_add(1)
            } else {
                0
            };
        }
        if stale_routes {
            self.stale_routes.lock().add(hold);
        }
        let refused = |queue: &mut KeyQueue, now| {
            if !queue.is_asking(hold) {
                return None;
            }
            // The present waiters came while a request without a ticket was out.
            let queues = hold.in_flight.lock().ticket || !queue.is_patient();
            let at = if queues {
                now + pause.max(PAUSE_MIN)
            } else {
                now
            };
            hold.renewer().tend_at(hold, at);
            // An outdated picture of the ring gives no answer: it is about to be refreshed.
            let once = match hold.in_flight.lock().stale_routes {
                1..=MISLED_MAX => Vec::new(),
                _ => queue.dismiss_once(),
            };
            let observers = queue.waiters().filter_map(|waiter| waiter.observer.clone());
            Some((once, observers.collect::<Vec<_>>()))
        };
        let Some((once, observers)) = self.change(&hold.key, refused).flatten() else {
            return;
        };
        for waiter in once {
            waiter.refuse(because.clone());
        }
        for observer in observers {
            self.tell(&observer, &hold.key, because);
        }
    }

    /// It is time to ask again for `hold`.
    pub(in super::super) fn recheck(self: &Arc<Self>, hold: &Arc<Hold>) {
        let Some(routing) = self.routing() else {
            return;
        };
        let route = routing.route(&hold.key);
        let again = self.change(&hold.key, |queue, _| {
            let asking = queue.is_asking(hold);
            if asking {
                hold.in_flight.lock().ticket = queue.is_patient();
                if !route.leads_by(&hold.renewer()) {
                    go(hold, &route.renewer);
                }
            }
            asking
        });
        if again == Some(true) {
            self.ask(hold);
        }
    }

    /// Takes a request back, with a grant that it may have got.
    pub(super) fn abandon(&self, hold: &Arc<Hold>) {
        self.end(hold);
        events::gave_up(hold);
        self.releases.send_what_is_left(hold);
    }

    pub(super) fn tell(&self, observer: &WaitObserver, key: &LockKey, because: &AcquireError) {
        let Some(routing) = self.routing() else {
            return;
        };
        let shard = routing.route(key).renewer.driver.id().clone();
        let grace = routing.topology().constants.grace();
        observer.tell(Waiting::new(because, &shard, grace));
    }

    fn judge(&self, hold: &Hold, at: &Arc<LeaseRenewer>, answer: Answer) -> Verdict {
        let shard = || at.driver.id().to_string();
        let Answered { reply, sent } = match answer {
            Ok(answered) => answered,
            Err(error) => return self.trouble(hold, error.into()),
        };
        match reply {
            Reply::Granted {
                token,
                tokens,
                wanted,
            } => Verdict::Granted {
                token,
                tokens,
                wanted,
                sent,
            },
            Reply::Held {
                remaining,
                label,
                position,
            } => {
                if let Some(beyond) = self.beyond_any_lease(remaining) {
                    at.driver.clock_went_back(beyond);
                }
                if let Some(position) = position {
                    events::queued(hold, position, sent, self.around.clock.now());
                }
                let pause = self.until_recheck(hold);
                let first = position.is_none_or(|before| before == 0);
                Verdict::Wait {
                    because: AcquireError::Held {
                        holder: label,
                        remaining,
                    },
                    // Only the first waiter finds an expired record.
                    pause: if first { pause.min(remaining) } else { pause },
                }
            }
            Reply::TooManyWaiters { retry_after } => {
                Verdict::Refuse(AcquireError::TooManyWaiters { retry_after })
            }
            Reply::Grace { retry_after } => Verdict::Wait {
                because: AcquireError::Grace {
                    shard: shard(),
                    new: (self.routing())
                        .is_some_and(|routing| routing.topology().is_new(at.driver.id())),
                    retry_after,
                },
                // Often enough to keep its place.
                pause: retry_after.min(self.until_recheck(hold)),
            },
            Reply::Moved { epoch } => self.moved(hold, at, epoch),
            Reply::Moving { epoch, absent } => {
                events::moving(hold, absent.is_some(), sent, self.around.clock.now());
                self.sealed(hold, at, epoch, absent)
            }
            Reply::NeedProof { epoch } => self.unproven(hold, at, epoch),
            Reply::NoTokens => self.trouble(hold, AcquireError::NoTokens(shard())),
            Reply::OutOfMemory => self.trouble(hold, AcquireError::OutOfMemory(shard())),
            Reply::Foreign => Verdict::Refuse(AcquireError::Foreign(shard())),
            reply @ (Reply::Renewed { .. }
            | Reply::Lost
            | Reply::Adopted { .. }
            | Reply::NotAdopted
            | Reply::Released { .. }) => {
                let what = "acquire";
                let reason = format!("unexpected answer {reply:?}");
                Verdict::Refuse(ShardError::Refused { what, reason }.into())
            }
        }
    }

    /// By how much a record with `remaining` left outlasts the longest lease that may be requested.
    fn beyond_any_lease(&self, remaining: Duration) -> Option<Duration> {
        let beyond = remaining.checked_sub(self.routing()?.max_lease())?;
        (!beyond.is_zero()).then_some(beyond)
    }

    /// The step after `error`: wait it out, if it may pass.
    pub(super) fn trouble(&self, hold: &Hold, error: AcquireError) -> Verdict {
        if !error.is_retryable() {
            return Verdict::Refuse(error);
        }
        let backoff = hold.in_flight.lock().retry.next(&self.around.random);
        Verdict::Wait {
            pause: error.retry_after().unwrap_or_default().max(backoff),
            because: error,
        }
    }

    pub(super) fn until_recheck(&self, hold: &Hold) -> Duration {
        self.around.random.jitter(RECHECK_MAX.min(claim(hold) / 3))
    }
}

/// The claim time of a turn.
fn claim(hold: &Hold) -> Duration {
    hold.lease_to_ask().min(CLAIM_MAX)
}

fn request(hold: &Hold, at: &LeaseRenewer, sent: Instant, in_flight: &InFlight) -> Request {
    let ticket = in_flight.ticket.then(|| Ticket {
        sent,
        claim: claim(hold),
    });
    Request {
        key: hold.key.clone(),
        map: at.map(hold.key.slot()),
        op: Op::Acquire {
            nonce: hold.nonce,
            label: hold.terms.label.clone(),
            lease: hold.lease_to_ask(),
            tokens: hold.tokens,
            ticket,
            proof: in_flight.proof,
        },
    }
}
