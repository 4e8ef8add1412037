//! Key → slot → shard: a snapshot of the ring, swapped whole.

use std::sync::Arc;

use arc_swap::ArcSwap;
use ringfence_ring::{ShardId, SlotCount};
use tokio::sync::Notify;

use super::{Dial, keeper::Keeper, line::Lines, release::Releases};
use crate::{
    driver::{Driver, Surroundings},
    ids::{ClientId, MapVersion},
    name::LockKey,
    shard::ShardError,
    topology::Topology,
};

/// Where a request goes, and the map version it goes by.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) keeper: Arc<Keeper>,
    pub(super) map: MapVersion,
}

/// The topology in use, and the keepers of its shards.
#[derive(Debug)]
pub(super) struct Routing {
    view: ArcSwap<View>,
    dial: Arc<dyn Dial>,
    client: ClientId,
    releases: Arc<Releases>,
    lines: Arc<Lines>,
    around: Surroundings,
    stale: Notify,
}

#[derive(Debug)]
pub(super) struct View {
    pub(super) topology: Arc<Topology>,
    /// In the order of the table's shards.
    pub(super) routes: Vec<Route>,
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
            routes: Vec::new(),
        };
        let routing = Self {
            view: ArcSwap::from_pointee(nothing),
            dial,
            client,
            releases,
            lines,
            around: around.clone(),
            stale: Notify::new(),
        };
        routing.adopt(topology);
        routing
    }

    /// Where `key` is, by the present view.
    pub(super) fn route(&self, key: &LockKey) -> Route {
        let view = self.view.load();
        view.routes[view.topology.table.owner_index(key.slot())].clone()
    }

    pub(super) fn slots(&self) -> SlotCount {
        self.view.load().topology.table.slots()
    }

    pub(super) fn topology(&self) -> Arc<Topology> {
        self.view.load().topology.clone()
    }

    pub(super) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Says that the view seems to be out of date.
    pub(super) fn refresh(&self) {
        self.stale.notify_one();
    }

    /// Waits until somebody says so.
    pub(super) async fn stale(&self) {
        self.stale.notified().await;
    }

    /// Routes by `topology` from now on. Shards that stay keep their connections and their holds.
    pub(super) fn adopt(&self, topology: Arc<Topology>) {
        let before = self.view.load_full();
        let route = |id: &ShardId| {
            let entry = topology
                .shard(id)
                .expect("the table's shards are the record's");
            let known = before.keeper_of(id, &entry.address);
            let keeper = known.unwrap_or_else(|| {
                let shard = self.dial.dial(id, entry).unwrap_or_else(|error| {
                    tracing::error!(shard = %id, %error, "shard cannot be reached");
                    Arc::new(Undialable(error))
                });
                let lines = self.lines.clone();
                let woken = Arc::new(move |wake| lines.woken(wake));
                let driver = Driver::start(id.clone(), shard, self.client, woken, &self.around);
                let shared = (self.releases.clone(), self.lines.clone());
                Keeper::start(driver, entry.changed, shared, &self.around)
            });
            keeper.set_map(entry.changed);
            Route {
                keeper,
                map: entry.changed,
            }
        };
        let routes = topology.table.shards().iter().map(route).collect();
        self.view.store(Arc::new(View { topology, routes }));
    }
}

impl View {
    fn keeper_of(&self, id: &ShardId, address: &str) -> Option<Arc<Keeper>> {
        let at_the_same_address = self.topology.shard(id)?.address == address;
        let routes = self.routes.iter().filter(|_| at_the_same_address);
        routes
            .map(|route| &route.keeper)
            .find(|keeper| keeper.driver.id() == id)
            .cloned()
    }
}

/// Stands for a shard whose address means nothing here: its own keys answer so.
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
