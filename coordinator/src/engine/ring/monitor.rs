//! Tends shards: has a life armed that is not, marks shards at rest quiet, raises token epochs, and
//! follows the topology.

use std::{collections::BTreeMap, future::pending, pin::pin, sync::Arc, time::Duration};

use futures_util::{
    FutureExt,
    future::{FusedFuture, join_all},
};
use ringfence_ring::ShardId;
use tokio::time::{sleep, timeout};

use super::{
    super::local::events,
    checks,
    clock::{Whose, whose},
    renewer::LeaseRenewer,
    routing::Routing,
};
use crate::{
    arming::{ArmError, Arming, Known},
    clock::sleep_until,
    driver::{ClockStep, Context},
    ids::Epoch,
    name::Label,
    shard::{ControlLink, ShardError},
    sync::Mutex,
    topology::{ClockAlarm, Swap, Topology, TopologyError, TopologyStore},
};

/// How long the topology's store may take to answer, before members are asked for their copies.
const STORE_SLOW: Duration = Duration::from_millis(250);

/// Minimum pause between two looks at one shard.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A connection without a request for this long is closed.
const IDLE: Duration = Duration::from_secs(5);

/// Pause before the topology is read again because a shard said that it has changed.
const REFRESH: Duration = Duration::from_millis(20);

/// Pause before an unreachable topology store is asked again.
const STORE_AGAIN: Duration = Duration::from_secs(1);

/// Arms every shard once and marks it quiet, then starts a task for each, and one that follows the
/// topology.
pub(crate) async fn start(
    (routing, store, label): (&Arc<Routing>, &Arc<dyn TopologyStore>, Label),
    around: &Context,
    servers_are_new: bool,
) {
    let stewards = Stewards {
        routing: routing.clone(),
        store: store.clone(),
        label,
        servers_are_new,
    };
    if let Some(length) = around.view.length() {
        // The topology may have been read long ago. An unreachable store is no error here.
        let _ = timeout(length, confirm_once(routing, &**store, around)).await;
    }
    let renewers = routing.view().renewers.clone();
    let (stewards, known) = (Arc::new(stewards), renewers.clone());
    let (following, around) = (stewards.clone(), around.clone());
    // Before the shards are brought up: a silent shard takes longer than a view lease.
    around.tasks.clone().spawn(async move {
        let Stewards { routing, store, .. } = &*following;
        let follow = async {
            tokio::join!(
                follow(routing, &**store, &around),
                confirm(routing, &**store, &around),
                following.welcome(known)
            )
        };
        around.stop.run_until_cancelled(follow).await;
    });
    join_all(renewers.iter().map(|renewer| stewards.start(renewer))).await;
}

/// Starts a monitor for every shard.
struct Stewards {
    routing: Arc<Routing>,
    store: Arc<dyn TopologyStore>,
    label: Label,
    servers_are_new: bool,
}

impl Stewards {
    /// Brings a shard up, if possible, and starts the task that tends it while it is a member.
    async fn start(&self, renewer: &Arc<LeaseRenewer>) {
        let monitor = ShardMonitor {
            link: Mutex::default(),
            known: Mutex::default(),
            renewer: renewer.clone(),
            routing: self.routing.clone(),
            store: self.store.clone(),
            label: self.label.clone(),
            servers_are_new: self.servers_are_new,
        };
        if let Err(error) = monitor.bring_up().await {
            tracing::warn!(shard = %monitor.id(), %error, "shard not ready; its keys wait for it");
        }
        let renewer = renewer.clone();
        let tasks = renewer.around.tasks.clone();
        tasks.spawn(async move {
            let tending = async { tokio::join!(monitor.tend(), checks::watch(&renewer)) };
            renewer.around.stop.run_until_cancelled(tending).await;
        });
    }

    /// Starts a monitor for every shard that joins.
    async fn welcome(&self, mut known: Vec<Arc<LeaseRenewer>>) {
        loop {
            self.routing.adopted().await;
            let renewers = self.routing.view().renewers.clone();
            let is_known =
                |renewer: &&Arc<LeaseRenewer>| known.iter().any(|its| Arc::ptr_eq(its, renewer));
            let new = renewers.iter().filter(|renewer| !is_known(renewer));
            join_all(new.map(|renewer| self.start(renewer))).await;
            known = renewers;
        }
    }
}

/// Adopts every newer topology.
async fn follow(routing: &Routing, store: &dyn TopologyStore, around: &Context) {
    let mut fruitless = None;
    loop {
        let known = routing.topology().version();
        // Spreads the reads of engines that are told `moved` at once: most learn of it before, by
        // push.
        let stale = async {
            if let Some(since) = fruitless {
                sleep_until(&*around.clock, since + LOOK_AGAIN).await;
            }
            routing.stale().await;
            sleep(around.random.jitter(REFRESH)).await;
        };
        let newer = tokio::select! {
            biased;
            newer = store.watch(known) => newer,
            () = stale => store.load().await,
        };
        match newer {
            Ok(topology) if topology.version() > known => {
                fruitless = None;
                routing.adopt(topology);
            }
            Ok(_) => fruitless = Some(around.clock.now()),
            Err(error) => {
                tracing::debug!(%error, "going on with the last topology seen");
                sleep(STORE_AGAIN).await;
            }
        }
    }
}

/// Confirms the topology in use for new connections, and again and again if views expire. Ends all
/// grants made under a view that expired.
async fn confirm(routing: &Routing, store: &dyn TopologyStore, around: &Context) {
    loop {
        let due = async {
            match around.view.length() {
                Some(length) => sleep(around.random.jitter(length / 3)).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = around.view.wanted() => {}
        }
        let left = around.view.until().since(around.clock.now());
        match left.is_zero() {
            _ if around.view.length().is_none() => read(routing, store, around).await,
            true => drop(confirm_once(routing, store, around).await),
            false => drop(timeout(left, confirm_once(routing, store, around)).await),
        }
        if !around.view.is_believed(around.clock.now()) {
            tracing::warn!("the topology could not be confirmed in time: nothing is held any more");
            routing
                .view()
                .renewers
                .iter()
                .for_each(LeaseRenewer::disbelieve);
        }
    }
}

/// Confirms the topology in use. If the store does not answer soon, goes by copies, if they are there first.
async fn read(routing: &Routing, store: &dyn TopologyStore, around: &Context) {
    let mut confirming = pin!(confirm_once(routing, store, around).fuse());
    if matches!(timeout(STORE_SLOW, &mut confirming).await, Ok(true)) {
        return;
    }
    tokio::select! {
        biased;
        true = &mut confirming, if !confirming.is_terminated() => {}
        true = go_by_copies(routing, store, around) => {}
        else => {}
    }
}

/// Confirms the topology in use, or adopts a newer one. Returns whether the store answered.
async fn confirm_once(routing: &Routing, store: &dyn TopologyStore, around: &Context) -> bool {
    let sent = around.clock.now();
    let Ok(topology) = store.load().await else {
        return false;
    };
    // The engine acts on it before it counts as confirmed.
    routing.adopt(topology);
    around.view.confirm(sent, around.clock.now());
    true
}

/// Adopts the newest copy, if it is newer: another process may have read the record and acted on it. Returns whether all
/// members but the home answered.
async fn go_by_copies(routing: &Routing, store: &dyn TopologyStore, around: &Context) -> bool {
    let copies = store.copies().await;
    copies
        .newest
        .into_iter()
        .for_each(|newest| routing.adopt(newest));
    let asked = copies
        .of_all_at
        .inspect(|asked| around.view.surveyed(*asked));
    asked.is_some()
}

/// A shard, as the engine sees it.
#[derive(Clone, Debug)]
pub struct ShardStatus {
    /// Its share of the slots, of 1.
    pub share: f64,
    /// How long it grants nothing yet.
    pub grace_left: Duration,
    /// The reason if it cannot be reached.
    pub error: Option<ShardError>,
}

/// The state of every shard, requested now.
pub(crate) async fn look(routing: &Routing) -> BTreeMap<ShardId, ShardStatus> {
    let view = routing.view();
    let look_at = |renewer: &Arc<LeaseRenewer>| {
        let (topology, driver) = (view.topology.clone(), renewer.driver.clone());
        async move {
            let id = driver.id().clone();
            let grace_left = async {
                let mut link = driver.shard().connect_control(None).await?;
                let armed = link.armed().await?.ok_or(ShardError::Unarmed)?;
                let is_named = topology
                    .shard(&id)
                    .is_none_or(|entry| entry.life == *link.life() && entry.epoch <= armed.epoch);
                is_named
                    .then_some(armed.grace_left)
                    .ok_or(ShardError::Unarmed)
            };
            let (grace_left, error) = match grace_left.await {
                Ok(left) => (left, None),
                Err(error) => (Duration::ZERO, Some(error)),
            };
            let share = topology.table.share(&id);
            (
                id,
                ShardStatus {
                    share,
                    grace_left,
                    error,
                },
            )
        }
    };
    join_all(view.renewers.iter().map(look_at))
        .await
        .into_iter()
        .collect()
}

/// Tends one shard.
struct ShardMonitor {
    /// A connection, kept for a while after use.
    link: Mutex<Option<Box<dyn ControlLink>>>,
    known: Mutex<Known>,
    renewer: Arc<LeaseRenewer>,
    routing: Arc<Routing>,
    store: Arc<dyn TopologyStore>,
    /// The name of this process shown to others.
    label: Label,
    servers_are_new: bool,
}

impl ShardMonitor {
    fn id(&self) -> &ShardId {
        self.renewer.driver.id()
    }

    /// Serves the needs that its lanes report, until stopped.
    async fn tend(&self) {
        let needs = self.renewer.driver.needs();
        loop {
            let idle = timeout(IDLE, needs.something()).await.is_err();
            if idle {
                drop(self.link.lock().take());
                needs.something().await;
            }
            if let Some(step) = needs.take_clock_step() {
                self.clock_stepped(&step).await;
            }
            let tended = async {
                if needs.take_arm() {
                    self.bring_up().await?;
                }
                if needs.take_raise() {
                    self.raise().await?;
                }
                if needs.take_mark_quiet() {
                    self.mark_quiet().await?;
                }
                Ok::<(), ArmError>(())
            };
            if let Err(error) = tended.await {
                tracing::debug!(shard = %self.id(), %error, "will look again");
                self.heed(&error);
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// The wall clock by which leases end has stepped, or the one by which guards do. Either way this process's locks are in
    /// danger. A lease that was granted before the server's clock stepped may end earlier than its holder believes, and so
    /// may the recovery period: then the shard is armed anew, and nobody gets new locks for a while. So no process may do that
    /// again and again because of its own clock.
    async fn clock_stepped(&self, step: &ClockStep) {
        let (id, by_ms) = (self.id(), step.by_ms);
        events::clock_stepped(id, by_ms, self.renewer.around.clock.now());
        self.renewer.endanger();
        let (whose, unix) = (
            whose(step, &self.renewer, &self.routing).await,
            self.renewer.around.clock.unix(),
        );
        let topology = self.routing.topology();
        match (whose, topology.recent_alarm(id, unix)) {
            (Whose::Own, _) => {
                tracing::warn!(
                    shard = %id, by_ms,
                    "this process's clock stepped, or runs at a wrong rate: the locks that it holds are in danger"
                );
                return;
            }
            (Whose::Unknown, Some(alarm)) => {
                tracing::warn!(
                    shard = %id, by_ms, since = alarm.unix_s, by = alarm.by,
                    "the server's clock or this process's stepped: the locks that it holds are in danger. The shard was armed \
                     anew for such a step lately, and is not for this one"
                );
                return;
            }
            _ => tracing::warn!(
                shard = %id, by_ms,
                "the server's wall clock stepped: its locks are in danger, and it is armed anew"
            ),
        }
        self.known.lock().alarm = Some(ClockAlarm {
            by: self.label.as_str().to_owned(),
            by_ms,
            unix_s: unix.as_secs(),
        });
        self.renewer.driver.needs().distrust(step.epoch);
    }

    /// Follows the topology at once if a shard has seen a later one.
    fn heed(&self, error: &ArmError) {
        if let ArmError::Shard(ShardError::Stale { fence }) = error
            && let Ok(fence) = fence.parse()
        {
            self.store.outrun(fence);
            self.routing.refresh();
        }
    }

    async fn connect(&self) -> Result<Box<dyn ControlLink>, ShardError> {
        let shard = self.renewer.driver.shard();
        shard.connect_control(None).await
    }

    /// The kept connection, if it is to the life that the topology names, or a new one. After use,
    /// the caller keeps it again, unless it failed.
    async fn link(&self) -> Result<Box<dyn ControlLink>, ShardError> {
        let topology = self.routing.topology();
        let named = topology.shard(self.id()).map(|entry| &entry.life);
        let kept = self.link.lock().take();
        match kept.filter(|link| Some(link.life()) == named) {
            Some(link) => Ok(link),
            None => self.connect().await,
        }
    }

    /// Has the shard's present life armed, if it is not, and marks it quiet if possible.
    async fn bring_up(&self) -> Result<(), ArmError> {
        let (driver, around) = (&self.renewer.driver, &self.renewer.around);
        let mut link = self.connect().await?;
        let mut known = self.known.lock().clone();
        known.distrusted = driver.needs().distrusted();
        let arming = Arming {
            shard: self.id(),
            store: &*self.store,
            clock: &*around.clock,
            random: &around.random,
            servers_are_new: self.servers_are_new,
        };
        let topology = self.routing.topology();
        let brought_up = arming.bring_up(&mut *link, topology, &mut known).await;
        known.alarm.take_if(|_| brought_up.is_ok());
        *self.known.lock() = known;
        let Some((topology, armed)) = brought_up? else {
            // It has left meanwhile.
            return Ok(());
        };
        self.routing.adopt(topology.clone());
        driver.seen_armed(link.life(), armed.epoch);
        if armed.grace_left.is_zero() {
            link.mark_quiet(&topology.mark_quiet(self.id())).await?;
        } else if let Some(entry) = topology.shard(self.id()) {
            driver.metrics().recovers(entry.epoch);
        }
        *self.link.lock() = Some(link);
        Ok(())
    }

    /// Gives the shard a fresh token epoch. If the epoch was allotted to another process, this one
    /// must not use it: the next batch then asks again.
    async fn raise(&self) -> Result<(), ArmError> {
        let loaded = self.store.load().await?;
        let mut next = Topology::clone(&loaded);
        next.version += 1;
        next.last_epoch = self.next_epoch(&loaded)?;
        let raised = (next.incarnation, next.last_epoch);
        let swapped = self.store.swap(loaded.version(), &next).await?;
        if let Swap::Done = swapped {
            self.routing.adopt(Arc::new(next));
            let mut link = self.link().await?;
            link.raise(raised.0, raised.1).await?;
            *self.link.lock() = Some(link);
        }
        Ok(())
    }

    async fn mark_quiet(&self) -> Result<(), ArmError> {
        let topology = self.routing.topology();
        if topology.shard(self.id()).is_some() {
            let mut link = self.link().await?;
            link.mark_quiet(&topology.mark_quiet(self.id())).await?;
            *self.link.lock() = Some(link);
        }
        Ok(())
    }

    fn next_epoch(&self, topology: &Topology) -> Result<Epoch, ArmError> {
        let epoch = Epoch::after(topology.last_epoch, self.renewer.around.clock.unix());
        Ok(epoch.ok_or(TopologyError::NoEpochs)?)
    }
}
