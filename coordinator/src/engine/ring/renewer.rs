//! The watchdog: one task per shard renews the locks held there, so that trouble of one shard does
//! not delay another.
//!
//! Renewals that are due together travel together: the lane batches them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use ringfence_ring::Slot;
use tokio::sync::Notify;

use super::{
    super::local::{Phase, events},
    Requests, Routing,
    map::Map,
    shard_lease::ShardLease,
    wheel::{TICK, Tended, Wheel, tick_at, tick_from},
};
use crate::{
    clock::{Instant, sleep_until},
    driver::{Answer, Answered, Context, Driver, Respond},
    ids::MapVersion,
    metrics::Renewal,
    name::LockKey,
    shard::{LockMode, Op, Reply, Request, ShardError},
    sync::Mutex,
};

/// The target of the events that tell why a shard grants nothing.
const RECOVERY: &str = "ringfence::recovery";

/// A failed renewal is repeated after at most this time, and at most a twelfth of the lease.
const RETRY_MAX: Duration = Duration::from_millis(500);

/// The leases at one shard, in the order in which their renewals are due; and the driver of the
/// shard.
#[derive(Debug)]
pub(crate) struct LeaseRenewer {
    pub(crate) driver: Arc<Driver>,
    map: ArcSwap<Map>,
    pub(crate) around: Context,
    pub(crate) requests: Arc<Requests>,
    wheel: Mutex<Wheel<ShardLease>>,
    earlier: Notify,
    /// The end of the last recovery period that was told of, in nanoseconds.
    told_until: AtomicU64,
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
            told_until: AtomicU64::new(0),
        });
        let running = renewer.clone();
        tasks.spawn(async move {
            running.around.stop.run_until_cancelled(running.run()).await;
        });
        renewer
    }

    /// The map version for a request for a key of `slot`, and the version at which a namespace was last declared.
    pub(crate) fn versions(&self, slot: Slot) -> (MapVersion, MapVersion) {
        let map = self.map.load();
        (map.version(slot), map.declared())
    }

    /// A request for `key` by the present map.
    pub(crate) fn request(&self, key: &LockKey, op: Op) -> Request {
        let (map, declared) = self.versions(key.slot());
        Request {
            key: key.clone(),
            map,
            declared,
            op,
        }
    }

    /// The map version for a request for a key of `slot`.
    pub(crate) fn map(&self, slot: Slot) -> MapVersion {
        self.versions(slot).0
    }

    pub(crate) fn set_map(&self, map: Map) {
        self.map.store(Arc::new(map));
    }

    /// Logs, once per recovery period, why the shard grants no new lock for `left`, and what makes that shorter.
    pub(crate) fn tell_recovery(&self, is_new: bool, left: Duration) {
        let now = self.around.clock.now();
        let told_until = self.told_until.fetch_max((now + left).as_nanos(), Relaxed);
        if now.as_nanos() < told_until {
            return;
        }
        let shard = self.driver.id();
        match is_new {
            true => tracing::warn!(
                target: RECOVERY,
                %shard,
                ?left,
                "a new shard grants its first locks after this: it may have held locks before. If it never did, found the \
                 topology with servers_are_new; a shorter max_lease makes the wait shorter"
            ),
            false => tracing::warn!(
                target: RECOVERY,
                %shard,
                ?left,
                "a shard that came back grants new locks after this: holders put theirs back first. A shorter max_lease \
                 makes the wait shorter, and locks with replicas do not wait"
            ),
        }
    }

    /// Keeps `lease`, which was granted or renewed by the request that its deadline counts from.
    pub(crate) fn keep(self: &Arc<Self>, lease: &Arc<ShardLease>) {
        self.tend_at(lease, self.due(lease));
    }

    /// Keeps `lease`, which had no holder for a while.
    pub(crate) fn keep_on(self: &Arc<Self>, lease: &Arc<ShardLease>) {
        self.tend_by(lease, self.due(lease));
    }

    fn due(&self, lease: &ShardLease) -> Instant {
        if lease.is_detached() {
            return match lease.is_to_be_renewed() {
                true => self.around.clock.now(),
                false => lease.deadline(),
            };
        }
        let third = lease.lease_to_ask() / 3;
        lease.sent() + (third - self.around.random.jitter(third / 5))
    }

    /// Tends `lease` at `at`, or earlier if it is due earlier.
    pub(crate) fn tend_by(self: &Arc<Self>, lease: &Arc<ShardLease>, at: Instant) {
        self.tend_within(lease, at, |due, at| due.min(at));
    }

    /// Stops keeping `lease`. Returns whether this renewer had it.
    pub(crate) fn forget(&self, lease: &ShardLease) -> bool {
        let mut wheel = self.wheel.lock();
        let here = lease.is_at(self);
        if here {
            wheel.remove(lease);
        }
        here
    }

    /// `lease` is at the shard of `to` from now on, and is kept there as soon as that renewer is
    /// asked to. Returns whether it was at this shard. Called under the lock of its `in_flight`.
    pub(crate) fn hand_over(&self, lease: &ShardLease, to: &Arc<Self>) -> bool {
        let mut wheel = self.wheel.lock();
        let here = lease.is_at(self);
        if here {
            wheel.remove(lease);
            lease.set_renewer(to);
        }
        here
    }

    /// Its shard is no longer a member: the engine looks for its leases elsewhere, at once.
    pub(crate) fn leave(self: &Arc<Self>, routing: &Routing) {
        self.driver.dismiss();
        self.around.stop.cancel();
        self.rehome_all(routing);
    }

    /// No grant made until now counts any more.
    pub(crate) fn disbelieve(self: &Arc<Self>) {
        let holds = self.wheel.lock().take_all();
        holds.iter().for_each(|lease| self.tend(lease));
    }

    /// The shard's wall clock stepped: locks held there may end earlier than their holders believe.
    pub(crate) fn endanger(&self) {
        self.requests.local.clock_stepped(self.driver.id());
    }

    /// The leases at this shard.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> Vec<Arc<ShardLease>> {
        let wheel = self.wheel.lock();
        wheel.due.values().flatten().cloned().collect()
    }

    fn rehome_all(self: &Arc<Self>, routing: &Routing) {
        let holds = self.wheel.lock().take_all();
        for lease in holds {
            self.rehome(&lease, &routing.route(&lease.key).renewer);
        }
    }

    /// Tends `lease` at `at`; earlier, if it is held and its deadline is earlier.
    pub(crate) fn tend_at(self: &Arc<Self>, lease: &Arc<ShardLease>, at: Instant) {
        self.tend_within(lease, at, |_, at| at);
    }

    /// `tick` chooses between the tick at which it is due, if any, and the requested one.
    fn tend_within(
        self: &Arc<Self>,
        lease: &Arc<ShardLease>,
        at: Instant,
        tick: fn(u64, u64) -> u64,
    ) {
        let at = match lease.phase() {
            Phase::Held => at.min(lease.deadline()),
            Phase::Asked | Phase::Over => at,
        };
        let mut wheel = self.wheel.lock();
        // Forgetting takes the same lock after it has ended the lease, so it comes before or after
        // this. So does moving to another shard: the renewer of the present shard keeps the lease.
        if lease.is_over() || !lease.is_at(self) {
            return;
        }
        let due = lease.place().tick();
        let tick = tick(due, tick_from(at));
        if tick == due {
            return;
        }
        wheel.remove(lease);
        wheel.add(lease.clone(), tick);
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
        due.iter().for_each(|lease| self.tend(lease));
    }

    /// Requests `lease` again, renews it, waits for its end, or ends it: the step that is due.
    pub(super) fn tend(self: &Arc<Self>, lease: &Arc<ShardLease>) {
        let now = self.around.clock.now();
        match lease.phase() {
            Phase::Asked => return self.requests.recheck(lease),
            Phase::Over => return,
            Phase::Held => {}
        }
        if !lease.is_held(now) {
            return self.expire(lease);
        }
        if lease.idle_until().is_some()
            && let Some(until) = lease.receiver.idle(lease)
        {
            // A holder that took it meanwhile has it tended earlier.
            return self.tend_by(lease, until);
        }
        if lease.is_final() || !lease.is_to_be_renewed() {
            return self.tend_at(lease, lease.deadline());
        }
        if self.may_not_come_yet(lease) {
            return self.try_again(lease, now);
        }
        events::renewing(lease);
        let refused = {
            let mut in_flight = lease.in_flight.lock();
            // Under the lock that a release takes after it has ended the lease: either the release
            // sees the renewal and goes behind it, or no renewal is sent.
            if lease.is_over() || !lease.is_at(self) || in_flight.here.renewing.is_out() {
                return;
            }
            in_flight.here.renewing.sent();
            self.submit_renewal(lease)
        };
        if let Err((respond, error)) = refused {
            respond.respond(Err(error));
        }
    }

    /// Whether the lease was at a dead shard that other processes may still use: they may get its key as soon as its
    /// record expires there. If this shard is in grace, and sealed the slot before, it would take the record.
    fn may_not_come_yet(&self, lease: &ShardLease) -> bool {
        let awaits_views = |routing: Arc<Routing>| routing.awaits_views(&lease.key);
        lease.in_flight.lock().here.to_put_back && self.requests.routing().is_some_and(awaits_views)
    }

    fn submit_renewal(
        self: &Arc<Self>,
        lease: &Arc<ShardLease>,
    ) -> Result<(), (Respond, ShardError)> {
        let mode = lease.mode();
        let op = Op::Renew {
            nonce: lease.nonce,
            label: lease.terms.label.clone(),
            token: lease.token(),
            mode,
            lease: lease.lease_to_ask(),
        };
        let (renewer, renewed) = (self.clone(), lease.clone());
        let routing = self.requests.routing();
        let forced = routing.is_some_and(|routing| routing.is_to_be_forced(&lease.key));
        let respond = move |answer| renewer.renewed(&renewed, answer, (forced, mode));
        let queued = lease.clone();
        let respond = Respond::Renewal {
            is_over: Box::new(move || queued.is_over()),
            respond: Box::new(respond),
        };
        self.submit(lease, op, respond)
    }

    /// Sends `op` for `lease`, on the lane of renewals.
    pub(crate) fn submit(
        &self,
        lease: &ShardLease,
        op: Op,
        respond: Respond,
    ) -> Result<(), (Respond, ShardError)> {
        self.driver
            .try_submit(self.request(&lease.key, op), respond)
    }

    /// Only `lost` or the deadline ends a guard; every other request is repeated. So is one
    /// answered `lost`, if the slot may not have been opened by force at that time: locks can still
    /// be put back then.
    fn renewed(
        self: &Arc<Self>,
        lease: &Arc<ShardLease>,
        answer: Answer,
        (forced, mode): (bool, LockMode),
    ) {
        let now = self.around.clock.now();
        {
            let mut in_flight = lease.in_flight.lock();
            in_flight
                .at(&lease.renewer(), self)
                .renewing
                .answered(&answer);
            // It moved to another shard meanwhile: this answer no longer counts.
            if !lease.is_at(self) {
                return;
            }
            if let Ok(Answered {
                reply: Reply::Renewed { .. },
                sent,
            }) = answer
            {
                in_flight.here.to_put_back = false;
                lease.renewed(sent, now);
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
                    tracing::info!(key = %lease.key, "put back after its shard came back");
                }
                let useful = lease.is_held(now);
                events::renewed(lease, reclaimed, sent, now);
                lease.receiver.renewed(lease, reclaimed);
                self.driver.metrics().renewal(Renewal::Renewed);
                match useful {
                    true => self.keep_as(lease, mode, now),
                    false => self.expire(lease),
                }
                if contended {
                    lease.receiver.contended(lease);
                }
                if let Some(epoch) = moving.filter(|_| useful) {
                    self.bring_along(lease, epoch);
                }
            }
            _ if lease.is_over() => {}
            Ok(Answered {
                reply: Reply::Lost, ..
            }) if !forced => {
                tracing::warn!(key = %lease.key, "lock lost: the shard has no record of it");
                events::lost(lease, now);
                self.driver.metrics().renewal(Renewal::Lost);
                self.requests.lost(lease);
            }
            Ok(Answered {
                reply: Reply::Moved { .. },
                ..
            }) if self.follow(lease) => {}
            Ok(_) | Err(_) => {
                events::not_renewed(lease, now);
                self.driver.metrics().renewal(Renewal::Failed);
                lease.renewal_failed();
                self.try_again(lease, now);
            }
        }
    }

    /// Renews `lease` soon.
    fn try_again(self: &Arc<Self>, lease: &Arc<ShardLease>, now: Instant) {
        let pause = RETRY_MAX.min(lease.terms.lease / 12);
        self.tend_at(lease, now + self.around.random.jitter(pause));
    }

    /// It was renewed as `mode`: renews it again at its time, or at once if its writer has downgraded since.
    fn keep_as(self: &Arc<Self>, lease: &Arc<ShardLease>, mode: LockMode, now: Instant) {
        match mode == lease.mode() {
            true => self.keep(lease),
            false => self.tend_at(lease, now),
        }
    }

    /// The deadline has passed: no guard is held any more, so a remaining record is released, unless
    /// another process may have renewed it.
    fn expire(self: &Arc<Self>, lease: &Arc<ShardLease>) {
        if self.requests.over(lease) == Phase::Held {
            if lease.is_to_go_on() {
                tracing::warn!(key = %lease.key, "lock lost: not renewed before its deadline");
            }
            if !lease.is_detached() {
                self.requests.releases.send(lease, false);
            }
        }
    }
}
