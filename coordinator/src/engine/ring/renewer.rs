//! The watchdog: one task per shard renews the locks held there, so that trouble of one shard does
//! not delay another.
//!
//! Renewals that are due together travel together: the lane batches them.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use arc_swap::ArcSwap;
use ringfence_ring::Slot;
use tokio::sync::Notify;

use super::{
    super::local::{Phase, events},
    Requests, Routing,
    hold::Hold,
    map::Map,
    wheel::{TICK, Wheel, tick_at, tick_from},
};
use crate::{
    clock::{Instant, sleep_until},
    driver::{Answer, Answered, Context, Driver, Respond},
    ids::MapVersion,
    shard::{Op, Reply, Request, ShardError},
    sync::Mutex,
};

/// A failed renewal is repeated after at most this time, and at most a twelfth of the lease.
const RETRY_MAX: Duration = Duration::from_millis(500);

/// The holds at one shard, in the order in which their renewals are due; and the driver of the
/// shard.
#[derive(Debug)]
pub(crate) struct LeaseRenewer {
    pub(crate) driver: Arc<Driver>,
    map: ArcSwap<Map>,
    pub(crate) around: Context,
    pub(crate) requests: Arc<Requests>,
    wheel: Mutex<Wheel>,
    earlier: Notify,
}

impl LeaseRenewer {
    /// A renewer of the shard behind `driver`; its task runs until `around` stops.
    pub(crate) fn start(
        driver: Arc<Driver>,
        map: Map,
        requests: Arc<Requests>,
        around: Context,
    ) -> Arc<Self> {
        let tasks = around.tasks.clone();
        let renewer = Arc::new(Self {
            driver,
            map: ArcSwap::from_pointee(map),
            around,
            requests,
            wheel: Mutex::default(),
            earlier: Notify::new(),
        });
        let running = renewer.clone();
        tasks.spawn(async move {
            running.around.stop.run_until_cancelled(running.run()).await;
        });
        renewer
    }

    /// The map version for a request for a key of `slot`.
    pub(crate) fn map(&self, slot: Slot) -> MapVersion {
        self.map.load().version(slot)
    }

    pub(crate) fn set_map(&self, map: Map) {
        self.map.store(Arc::new(map));
    }

    /// Keeps `hold`, which was granted or renewed by the request that its deadline counts from.
    pub(crate) fn keep(self: &Arc<Self>, hold: &Arc<Hold>) {
        self.tend_at(hold, self.due(hold));
    }

    /// Keeps `hold`, which had no holder for a while.
    pub(crate) fn keep_on(self: &Arc<Self>, hold: &Arc<Hold>) {
        self.tend_by(hold, self.due(hold));
    }

    fn due(&self, hold: &Hold) -> Instant {
        let third = hold.lease_to_ask() / 3;
        hold.sent() + (third - self.around.random.jitter(third / 5))
    }

    /// Tends `hold` at `at`, or earlier if it is due earlier.
    pub(crate) fn tend_by(self: &Arc<Self>, hold: &Arc<Hold>, at: Instant) {
        self.tend_within(hold, at, |due, at| due.min(at));
    }

    /// Stops keeping `hold`. Returns whether this renewer had it.
    pub(crate) fn forget(&self, hold: &Hold) -> bool {
        let mut wheel = self.wheel.lock();
        let here = hold.is_at(self);
        if here {
            wheel.remove(hold);
        }
        here
    }

    /// `hold` is at the shard of `to` from now on, and is kept there as soon as that renewer is
    /// asked to. Returns whether it was at this shard. Called under the lock of its `in_flight`.
    pub(crate) fn hand_over(&self, hold: &Hold, to: &Arc<Self>) -> bool {
        let mut wheel = self.wheel.lock();
        let here = hold.is_at(self);
        if here {
            wheel.remove(hold);
            hold.set_keeper(to);
        }
        here
    }

    /// Its shard is no longer a member: the engine looks for its holds elsewhere, at once.
    pub(crate) fn leave(self: &Arc<Self>, routing: &Routing) {
        self.driver.dismiss();
        self.around.stop.cancel();
        self.rehome_all(routing);
    }

    /// No grant made until now counts any more.
    pub(crate) fn disbelieve(self: &Arc<Self>) {
        let holds = self.wheel.lock().take_all();
        holds.iter().for_each(|hold| self.tend(hold));
    }

    /// The shard's wall clock stepped: locks held there may end earlier than their holders believe.
    pub(crate) fn endanger(&self) {
        self.requests.local.clock_stepped(self.driver.id());
    }

    /// The holds at this shard.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> Vec<Arc<Hold>> {
        let wheel = self.wheel.lock();
        wheel.due.values().flatten().cloned().collect()
    }

    fn rehome_all(self: &Arc<Self>, routing: &Routing) {
        let holds = self.wheel.lock().take_all();
        for hold in holds {
            self.rehome(&hold, &routing.route(&hold.key).renewer);
        }
    }

    /// Tends `hold` at `at`; earlier, if it is held and its deadline is earlier.
    pub(crate) fn tend_at(self: &Arc<Self>, hold: &Arc<Hold>, at: Instant) {
        self.tend_within(hold, at, |_, at| at);
    }

    /// `tick` chooses between the tick at which it is due, if any, and the requested one.
    fn tend_within(self: &Arc<Self>, hold: &Arc<Hold>, at: Instant, tick: fn(u64, u64) -> u64) {
        let at = match hold.phase() {
            Phase::Held => at.min(hold.deadline()),
            Phase::Asked | Phase::Over => at,
        };
        let mut wheel = self.wheel.lock();
        // Forgetting takes the same lock after it has ended the hold, so it comes before or after
        // this. So does moving to another shard: the renewer of the present shard keeps the hold.
        if hold.is_over() || !hold.is_at(self) {
            return;
        }
        let due = hold.place.tick.load(Relaxed);
        let tick = tick(due, tick_from(at));
        if tick == due {
            return;
        }
        wheel.remove(hold);
        wheel.add(hold.clone(), tick);
        let wake = tick < wheel.asleep_until;
        drop(wheel);
        if wake {
            self.earlier.notify_one();
        }
        // After it was added: either the stop of this renewer saw it, or the stop is seen here.
        if self.around.stop.is_cancelled()
            && let Some(routing) = self.requests.routing()
        {
            self.rehome_all(&routing);
        }
    }

    async fn run(self: &Arc<Self>) {
        loop {
            let next = {
                let mut wheel = self.wheel.lock();
                let next = wheel.due.keys().next().copied();
                wheel.asleep_until = next.unwrap_or(u64::MAX);
                next
            };
            match next {
                None => self.earlier.notified().await,
                Some(tick) => {
                    let due = Instant::from_nanos(tick.saturating_mul(TICK.as_nanos() as u64));
                    tokio::select! {
                        biased;
                        () = self.earlier.notified() => {}
                        () = sleep_until(&*self.around.clock, due) => {}
                    }
                }
            }
            self.tend_due();
        }
    }

    pub(crate) fn tend_due(self: &Arc<Self>) {
        let due = self.wheel.lock().take_due(tick_at(self.around.clock.now()));
        due.iter().for_each(|hold| self.tend(hold));
    }

    /// Requests `hold` again, renews it, waits for its end, or ends it: the step that is due.
    fn tend(self: &Arc<Self>, hold: &Arc<Hold>) {
        let now = self.around.clock.now();
        match hold.phase() {
            Phase::Asked => return self.requests.recheck(hold),
            Phase::Over => return,
            Phase::Held => {}
        }
        if !hold.is_held(now) {
            return self.expire(hold);
        }
        if hold.idle_until().is_some()
            && let Some(until) = self.requests.local.idle(hold)
        {
            // A holder that took it meanwhile has it tended earlier.
            return self.tend_by(hold, until);
        }
        if hold.is_final() {
            return self.tend_at(hold, hold.deadline());
        }
        events::renewing(hold);
        let refused = {
            let mut in_flight = hold.in_flight.lock();
            // Under the lock that a release takes after it has ended the hold: either the release
            // sees the renewal and goes behind it, or no renewal is sent.
            if hold.is_over() || !hold.is_at(self) || in_flight.here.renewing.is_out() {
                return;
            }
            in_flight.here.renewing.sent();
            self.submit_renewal(hold)
        };
        if let Err((respond, error)) = refused {
            respond.respond(Err(error));
        }
    }

    fn submit_renewal(self: &Arc<Self>, hold: &Arc<Hold>) -> Result<(), (Respond, ShardError)> {
        let op = Op::Renew {
            nonce: hold.nonce,
            label: hold.terms.label.clone(),
            token: hold.token(),
            lease: hold.lease_to_ask(),
        };
        let (renewer, renewed) = (self.clone(), hold.clone());
        let routing = self.requests.routing();
        let forced = routing.is_some_and(|routing| routing.is_to_be_forced(&hold.key));
        let respond = move |answer| renewer.renewed(&renewed, answer, forced);
        self.submit(hold, op, Respond::Engine(Box::new(respond)))
    }

    /// Sends `op` for `hold`, on the lane of renewals.
    pub(crate) fn submit(
        &self,
        hold: &Hold,
        op: Op,
        respond: Respond,
    ) -> Result<(), (Respond, ShardError)> {
        let request = Request {
            key: hold.key.clone(),
            map: self.map(hold.key.slot()),
            op,
        };
        self.driver.try_submit(request, respond)
    }

    /// Only `lost` or the deadline ends a guard; every other request is repeated. So is one
    /// answered `lost`, if the slot may not have been opened by force at that time: locks can still
    /// be put back then.
    fn renewed(self: &Arc<Self>, hold: &Arc<Hold>, answer: Answer, forced: bool) {
        let now = self.around.clock.now();
        {
            let mut in_flight = hold.in_flight.lock();
            in_flight
                .at(&hold.renewer(), self)
                .renewing
                .answered(&answer);
            // It moved to another shard meanwhile: this answer no longer counts.
            if !hold.is_at(self) {
                return;
            }
            if let Ok(Answered {
                reply: Reply::Renewed { .. },
                sent,
            }) = answer
            {
                hold.renewed(sent, now);
            }
        }
        match answer {
            Ok(Answered {
                reply:
                    Reply::Renewed {
                        reclaimed,
                        contended,
                        moving,
                    },
                sent,
            }) => {
                if reclaimed {
                    tracing::info!(key = %hold.key, "put back after its shard came back");
                }
                let useful = hold.is_held(now);
                events::renewed(hold, reclaimed, sent, now);
                if useful {
                    self.keep(hold);
                } else {
                    self.expire(hold);
                }
                if contended {
                    self.requests.local.contended(hold);
                }
                if let Some(epoch) = moving.filter(|_| useful) {
                    self.bring_along(hold, epoch);
                }
            }
            _ if hold.is_over() => {}
            Ok(Answered {
                reply: Reply::Lost, ..
            }) if !forced => {
                tracing::warn!(key = %hold.key, "lock lost: the shard has no record of it");
                events::lost(hold, now);
                self.requests.lost(hold);
            }
            Ok(Answered {
                reply: Reply::Moved { .. },
                ..
            }) if self.follow(hold) => {}
            Ok(_) | Err(_) => {
                events::not_renewed(hold, now);
                hold.renewal_failed();
                let pause = self
                    .around
                    .random
                    .jitter(RETRY_MAX.min(hold.terms.lease / 12));
                self.tend_at(hold, now + pause);
            }
        }
    }

    /// The deadline has passed: no guard is held any more, so a remaining record is released.
    fn expire(self: &Arc<Self>, hold: &Arc<Hold>) {
        if self.requests.over(hold) == Phase::Held {
            if hold.idle_until().is_none() && !hold.is_final() {
                tracing::warn!(key = %hold.key, "lock lost: not renewed before its deadline");
            }
            self.requests.releases.send(hold, false);
        }
    }
}
