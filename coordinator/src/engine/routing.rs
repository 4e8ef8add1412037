//! Key → slot → shard: a snapshot of the ring, swapped whole.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use ringfence_ring::{ShardId, Slot, SlotCount};
use tokio::sync::Notify;

use super::{Dial, keeper::Keeper, line::Lines, map::Map, release::Releases};
use crate::{
    driver::{Driver, Surroundings},
    ids::{ClientId, Epoch},
    name::LockKey,
    shard::ShardError,
    sync::Mutex,
    topology::{Motion, Topology},
};

/// The route of a key.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// The keeper of the shard to ask first.
    pub(super) keeper: Arc<Keeper>,
    /// The slot is in motion.
    pub(super) way: Option<Way>,
}

impl Route {
    /// The keepers of all shards that may have something of the key.
    pub(super) fn keepers(&self) -> Vec<Arc<Keeper>> {
        match &self.way {
            Some(way) => vec![way.from.clone(), way.to.clone()],
            None => vec![self.keeper.clone()],
        }
    }

    /// Whether `keeper` can answer a request that is there already.
    pub(super) fn leads_by(&self, keeper: &Arc<Keeper>) -> bool {
        let is = |other| Arc::ptr_eq(keeper, other);
        match &self.way {
            Some(way) => is(&way.from) || is(&way.to),
            None => is(&self.keeper),
        }
    }
}

/// The two shards of a slot in motion.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) epoch: Epoch,
    pub(super) from: Arc<Keeper>,
    pub(super) to: Arc<Keeper>,
}

/// The topology in use, and the keepers of its shards.
#[derive(Debug)]
pub(super) struct Routing {
    view: ArcSwap<View>,
    /// Held while the view is changed.
    adopting: Mutex<()>,
    dial: Arc<dyn Dial>,
    client: ClientId,
    /// Fixed at the founding, like the longest lease.
    slots: SlotCount,
    max_lease: Duration,
    releases: Arc<Releases>,
    lines: Arc<Lines>,
    around: Surroundings,
    stale: Notify,
    adopted: Notify,
}

#[derive(Debug)]
pub(super) struct View {
    pub(super) topology: Arc<Topology>,
    /// In the order of the table's shards.
    pub(super) keepers: Vec<Arc<Keeper>>,
}

impl Routing {
    pub(super) fn new(
        topology: Arc<Topology>,
        dial: Arc<dyn Dial>,
        client: ClientId,
        (releases, lines): (Arc<Releases>, Arc<Lines>),
        around: &Surroundings,
    ) -> Self {
        let nothing = View {
            topology: topology.clone(),
            keepers: Vec::new(),
        };
        let routing = Self {
            view: ArcSwap::from_pointee(nothing),
            adopting: Mutex::default(),
            dial,
            client,
            slots: topology.table.slots(),
            max_lease: topology.constants.max_lease(),
            releases,
            lines,
            around: around.clone(),
            stale: Notify::new(),
            adopted: Notify::new(),
        };
        routing.view_from(topology);
        routing
    }

    /// The route of `key`, by the present view.
    pub(super) fn route(&self, key: &LockKey) -> Route {
        self.view.load().route(key.slot())
    }

    /// The shards of `key` in the move of `epoch`. If the view knows no such move, it is out of
    /// date.
    pub(super) fn way(&self, key: &LockKey, epoch: Epoch) -> Option<Way> {
        let way = self.route(key).way.filter(|way| way.epoch == epoch);
        if way.is_none() {
            self.refresh();
        }
        way
    }

    /// Whether the slot of `key` belonged to a shard declared dead, and may not be open yet.
    pub(super) fn is_to_be_forced(&self, key: &LockKey) -> bool {
        self.view.load().topology.opening_of(key.slot()).is_some()
    }

    /// The keeper of shard `id`, if it is a member.
    pub(super) fn keeper(&self, id: &ShardId) -> Option<Arc<Keeper>> {
        let view = self.view.load();
        let mut keepers = view.keepers.iter();
        keepers.find(|keeper| keeper.driver.id() == id).cloned()
    }

    /// The dialer of its shards.
    pub(super) fn dial(&self) -> &Arc<dyn Dial> {
        &self.dial
    }

    pub(super) fn slots(&self) -> SlotCount {
        self.slots
    }

    /// The longest lease that may be requested.
    pub(super) fn max_lease(&self) -> Duration {
        self.max_lease
    }

    pub(super) fn topology(&self) -> Arc<Topology> {
        self.view.load().topology.clone()
    }

    pub(super) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Reports that the view seems to be out of date.
    pub(super) fn refresh(&self) {
        self.stale.notify_one();
    }

    /// Waits for such a report.
    pub(super) async fn stale(&self) {
        self.stale.notified().await;
    }

    /// Waits until the view has changed.
    pub(super) async fn adopted(&self) {
        self.adopted.notified().await;
    }

    /// Routes by `topology` from now on, unless a newer one is in use. Shards that stay keep their
    /// connections and their holds.
    pub(super) fn adopt(&self, topology: Arc<Topology>) {
        let adopting = self.adopting.lock();
        let before = self.view.load_full();
        if topology.version() <= before.topology.version() {
            return;
        }
        self.view_from(topology);
        let view = self.view.load();
        let is_kept =
            |keeper: &Arc<Keeper>| view.keepers.iter().any(|its| Arc::ptr_eq(its, keeper));
        let left = before.keepers.iter().filter(|keeper| !is_kept(keeper));
        drop(adopting);
        left.for_each(|keeper| keeper.leave(self));
        self.lines.look_again();
        self.adopted.notify_one();
    }

    fn view_from(&self, topology: Arc<Topology>) {
        let before = self.view.load_full();
        let keeper = |id: &ShardId| {
            let entry = topology
                .shard(id)
                .expect("the table's shards are the record's");
            let map = Map::of(&topology, id);
            if let Some(keeper) = before.keeper_of(id, &entry.address) {
                keeper.set_map(map);
                keeper.driver.name(&entry.life, entry.epoch);
                return keeper;
            }
            let shard = self.dial.dial(id, entry).unwrap_or_else(|error| {
                tracing::error!(shard = %id, %error, "shard cannot be reached");
                Arc::new(Undialable(error))
            });
            let around = Surroundings {
                stop: self.around.stop.child_token(),
                ..self.around.clone()
            };
            let (lines, from) = (self.lines.clone(), id.clone());
            let woken = Arc::new(move |wake| lines.woken(&from, wake));
            let present = (entry.life.clone(), entry.epoch);
            let driver = Driver::start(id.clone(), shard, present, self.client, woken, &around);
            let shared = (self.releases.clone(), self.lines.clone());
            Keeper::start(driver, map, shared, around)
        };
        let keepers = topology.table.shards().iter().map(keeper).collect();
        self.view.store(Arc::new(View { topology, keepers }));
    }
}

impl View {
    fn route(&self, slot: Slot) -> Route {
        let owner = &self.keepers[self.topology.table.owner_index(slot)];
        // None in a ring at rest: there is nothing to look for.
        let Some(motion) = self.topology.motion_of(slot) else {
            return Route {
                keeper: owner.clone(),
                way: None,
            };
        };
        let way = self.way(motion);
        Route {
            keeper: if motion.listed { &way.to } else { &way.from }.clone(),
            way: Some(way),
        }
    }

    fn way(&self, motion: &Motion) -> Way {
        let keeper = |id: &ShardId| {
            let index = self.topology.table.membership().index_of(id);
            self.keepers[index.expect("both ends of a move are members")].clone()
        };
        Way {
            epoch: motion.epoch,
            from: keeper(&motion.from.0),
            to: keeper(&motion.to.0),
        }
    }

    fn keeper_of(&self, id: &ShardId, address: &str) -> Option<Arc<Keeper>> {
        let at_the_same_address = self.topology.shard(id)?.address == address;
        let mut keepers = self.keepers.iter().filter(|_| at_the_same_address);
        keepers.find(|keeper| keeper.driver.id() == id).cloned()
    }
}

/// Stands for a shard whose address has no meaning here: requests for its keys report that.
#[derive(Debug)]
struct Undialable(ShardError);

#[async_trait::async_trait]
impl crate::shard::Shard for Undialable {
    async fn connect(
        &self,
        _lane: crate::shard::Lane,
        _former: Option<(crate::ids::Life, crate::shard::ConnectionId)>,
    ) -> Result<Box<dyn crate::shard::Link>, ShardError> {
        Err(self.0.clone())
    }

    async fn listen(&self, _client: ClientId) -> Result<Box<dyn crate::shard::Wakes>, ShardError> {
        Err(self.0.clone())
    }
}
