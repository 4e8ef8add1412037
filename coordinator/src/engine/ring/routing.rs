//! Key → slot → shard: a snapshot of the ring, swapped whole.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use ringfence_ring::{Replicas, ShardId, Slot, SlotCount};
use tokio::sync::Notify;

use super::{super::AcquireError, Requests, map::Map, renewer::LeaseRenewer};
use crate::{
    driver::{Context, Driver},
    ids::{ClientId, Epoch, Life, MapVersion},
    limits::LANES_BY_SLOT,
    metrics::ShardMetrics,
    name::{LockKey, Namespace},
    shard::{
        ConnectionId, ControlLink, CounterLink, LockLane, LockLink, Notification, Shard,
        ShardError, Subscription,
    },
    sync::Mutex,
    topology::{Dial, Migration, ShardName, Topology},
};

/// The replicas of a key's lock, and when a namespace was last declared, by one view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) replicas: Replicas,
    pub(crate) version: MapVersion,
}

impl Declaration {
    /// Shards that have learned of a declaration accept nothing by this one.
    pub(crate) const NONE: Self = Self {
        replicas: Replicas::One,
        version: MapVersion::UNKNOWN,
    };
}

/// The route of a key.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The renewer of the shard to ask first.
    pub(crate) renewer: Arc<LeaseRenewer>,
    /// The slot is migrating.
    pub(crate) migration: Option<MigrationEnds>,
}

impl Route {
    /// The renewers of all shards that may have something of the key.
    pub(crate) fn renewers(&self) -> Vec<Arc<LeaseRenewer>> {
        match &self.migration {
            Some(migration) => vec![migration.from.clone(), migration.to.clone()],
            None => vec![self.renewer.clone()],
        }
    }

    /// Whether `renewer` can answer a request that is there already.
    pub(crate) fn leads_by(&self, renewer: &Arc<LeaseRenewer>) -> bool {
        let is = |other| Arc::ptr_eq(renewer, other);
        match &self.migration {
            Some(migration) => is(&migration.from) || is(&migration.to),
            None => is(&self.renewer),
        }
    }
}

/// The two shards of a migrating slot.
#[derive(Clone, Debug)]
pub(crate) struct MigrationEnds {
    pub(crate) epoch: Epoch,
    pub(crate) from: Arc<LeaseRenewer>,
    pub(crate) to: Arc<LeaseRenewer>,
}

/// The topology in use, and the renewers of its shards.
#[derive(Debug)]
pub(crate) struct Routing {
    view: ArcSwap<View>,
    /// Held while the view is changed.
    adopting: Mutex<()>,
    dial: Arc<dyn Dial>,
    client: ClientId,
    /// Fixed at the founding, like the longest lease.
    slots: SlotCount,
    max_lease: Duration,
    requests: Arc<Requests>,
    around: Context,
    stale: Notify,
    adopted: Notify,
}

#[derive(Debug)]
pub(crate) struct View {
    pub(crate) topology: Arc<Topology>,
    /// In the order of the table's shards.
    pub(crate) renewers: Vec<Arc<LeaseRenewer>>,
    /// A shard that keeps no counters, and its address.
    locks_only: Option<(ShardId, String)>,
}

impl Routing {
    pub(crate) fn new(
        topology: Arc<Topology>,
        dial: Arc<dyn Dial>,
        client: ClientId,
        requests: Arc<Requests>,
        around: &Context,
    ) -> Self {
        let nothing = View {
            topology: topology.clone(),
            renewers: Vec::new(),
            locks_only: None,
        };
        let routing = Self {
            view: ArcSwap::from_pointee(nothing),
            adopting: Mutex::default(),
            dial,
            client,
            slots: topology.table.slots(),
            max_lease: topology.constants.max_lease(),
            requests,
            around: around.clone(),
            stale: Notify::new(),
            adopted: Notify::new(),
        };
        routing.view_from(topology);
        routing
    }

    /// The route of `key`, by the present view.
    pub(crate) fn route(&self, key: &LockKey) -> Route {
        self.view.load().route(key.slot())
    }

    /// What is counted at the shard to ask first.
    pub(crate) fn metrics(&self, key: &LockKey) -> Arc<ShardMetrics> {
        let view = self.view.load();
        let migration = view.topology.migration_of(key.slot());
        let renewer = view.first(key.slot(), migration);
        renewer.driver.metrics().clone()
    }

    /// The shards of `key` in the move of `epoch`. If the view knows no such move, it is out of
    /// date.
    pub(crate) fn migration(&self, key: &LockKey, epoch: Epoch) -> Option<MigrationEnds> {
        let migration = self
            .route(key)
            .migration
            .filter(|migration| migration.epoch == epoch);
        if migration.is_none() {
            self.refresh();
        }
        migration
    }

    /// Whether the slot of `key` belonged to a shard declared dead, and may not be open yet.
    pub(crate) fn is_to_be_forced(&self, key: &LockKey) -> bool {
        self.view.load().topology.opening_of(key.slot()).is_some()
    }

    /// Whether it belonged to one that other processes may still use.
    pub(crate) fn awaits_views(&self, key: &LockKey) -> bool {
        let view = self.view.load();
        let opening = view.topology.opening_of(key.slot());
        opening.is_some_and(|opening| opening.opens.is_none())
    }

    /// The declaration for the lock of `key`. While its namespace is being declared, none that a shard accepts.
    pub(crate) fn declaration(&self, key: &LockKey) -> Declaration {
        let view = self.view.load();
        let topology = &view.topology;
        let name = key.namespace();
        match topology.declaring.of_name(name) {
            Replicas::One => Declaration {
                replicas: topology.namespaces.of_name(name),
                version: topology.declared,
            },
            _ => Declaration::NONE,
        }
    }

    /// Refuses a key whose namespace is being declared.
    pub(crate) fn check_declared(&self, key: &LockKey) -> Result<(), AcquireError> {
        let view = self.view.load();
        match view.topology.declaring.of_name(key.namespace()) {
            Replicas::One => Ok(()),
            _ => Err(AcquireError::Declaring(Namespace::new(key.namespace())?)),
        }
    }

    /// The replicas of the lock of `key`.
    pub(crate) fn replicas_of(&self, key: &LockKey) -> Replicas {
        self.view
            .load()
            .topology
            .namespaces
            .of_name(key.namespace())
    }

    /// The keys of the ranks of the lock of `key`.
    pub(crate) fn ranks_of(&self, key: &LockKey) -> Vec<LockKey> {
        let slots = self.slots.replicas(key.slot(), self.replicas_of(key));
        slots.map(|slot| key.at(slot)).collect()
    }

    /// The renewer of shard `id`, if it is a member.
    pub(crate) fn renewer(&self, id: &ShardId) -> Option<Arc<LeaseRenewer>> {
        let view = self.view.load();
        let mut renewers = view.renewers.iter();
        renewers.find(|renewer| renewer.driver.id() == id).cloned()
    }

    /// The dialer of its shards.
    pub(crate) fn dial(&self) -> &Arc<dyn Dial> {
        &self.dial
    }

    pub(crate) fn slots(&self) -> SlotCount {
        self.slots
    }

    /// The longest lease that may be requested.
    pub(crate) fn max_lease(&self) -> Duration {
        self.max_lease
    }

    pub(crate) fn topology(&self) -> Arc<Topology> {
        self.view.load().topology.clone()
    }

    /// A shard that keeps no counters, and its address.
    pub(crate) fn locks_only(&self) -> Option<(ShardId, String)> {
        self.view.load().locks_only.clone()
    }

    pub(crate) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Reports that the view seems to be out of date.
    pub(crate) fn refresh(&self) {
        self.stale.notify_one();
    }

    /// Waits for such a report.
    pub(crate) async fn stale(&self) {
        self.stale.notified().await;
    }

    /// Waits until the view has changed.
    pub(crate) async fn adopted(&self) {
        self.adopted.notified().await;
    }

    /// Routes by `topology` from now on, unless a newer one is in use. Shards that stay keep their
    /// connections and their leases.
    pub(crate) fn adopt(&self, topology: Arc<Topology>) {
        let adopting = self.adopting.lock();
        let before = self.view.load_full();
        if topology.version() <= before.topology.version() {
            return;
        }
        self.view_from(topology);
        let view = self.view.load();
        view.count_moves_since(&before.topology);
        let is_kept =
            |renewer: &Arc<LeaseRenewer>| view.renewers.iter().any(|its| Arc::ptr_eq(its, renewer));
        let left = before.renewers.iter().filter(|renewer| !is_kept(renewer));
        drop(adopting);
        left.for_each(|renewer| renewer.leave(self));
        self.requests.look_again();
        self.adopted.notify_one();
    }

    fn view_from(&self, topology: Arc<Topology>) {
        let before = self.view.load_full();
        let renewer = |id: &ShardId| {
            let entry = topology
                .shard(id)
                .expect("the table's shards are the record's");
            let map = Map::of(&topology, id);
            if let Some(renewer) = before.keeper_of(id, &entry.address) {
                renewer.set_map(map);
                renewer.driver.name(&entry.life, entry.epoch);
                // Another process may have armed it.
                if topology.recovers_since(&before.topology, id) {
                    renewer.driver.metrics().recovers(entry.epoch);
                }
                return renewer;
            }
            let shard = self.dial.dial(id, entry).unwrap_or_else(|error| {
                tracing::error!(shard = %id, %error, "shard cannot be reached");
                Arc::new(Undialable(error))
            });
            let around = Context {
                stop: self.around.stop.child_token(),
                ..self.around.clone()
            };
            let (local, from) = (self.requests.local.clone(), id.clone());
            let slots = self.slots;
            // The local queue knows the key by the slot of its first rank.
            let callback = Arc::new(move |message: Notification| {
                local.pushed(&from, message.of_first_rank(slots));
            });
            let present = (entry.life.clone(), entry.epoch);
            let driver = Driver::start(id.clone(), shard, present, self.client, callback, &around);
            LeaseRenewer::start(driver, map, self.requests.clone(), around)
        };
        let renewers = topology.table.shards().iter().map(renewer).collect();
        self.view.store(Arc::new(View {
            locks_only: topology
                .locks_only()
                .map(|(id, address)| (id.clone(), address.to_owned())),
            topology,
            renewers,
        }));
    }
}

impl View {
    /// Counts the slots that other shards had by the topology `before`.
    fn count_moves_since(&self, before: &Topology) {
        let (before, now) = (&before.table, &self.topology.table);
        let mut taken_over = vec![0; self.renewers.len()];
        // Slots of ranks that were declared since come from no shard.
        let slots_of_both = before.all_slots().len().min(now.all_slots().len());
        for slot in now.all_slots().take(slots_of_both) {
            if before.owner(slot) != now.owner(slot) {
                taken_over[now.owner_index(slot)] += 1;
            }
        }
        for (renewer, slots) in self.renewers.iter().zip(taken_over) {
            renewer.driver.metrics().takes_over(slots);
        }
    }

    fn route(&self, slot: Slot) -> Route {
        // None in a ring at rest: there is nothing to look for.
        let migration = self.topology.migration_of(slot);
        Route {
            renewer: self.first(slot, migration).clone(),
            migration: migration.map(|migration| self.ends_of(migration)),
        }
    }

    /// The renewer of the shard to ask first.
    fn first(&self, slot: Slot, migration: Option<&Migration>) -> &Arc<LeaseRenewer> {
        match migration {
            None => &self.renewers[self.topology.table.owner_index(slot)],
            Some(migration) if migration.listed => self.end(&migration.to),
            Some(migration) => self.end(&migration.from),
        }
    }

    fn ends_of(&self, migration: &Migration) -> MigrationEnds {
        MigrationEnds {
            epoch: migration.epoch,
            from: self.end(&migration.from).clone(),
            to: self.end(&migration.to).clone(),
        }
    }

    fn end(&self, shard: &ShardName) -> &Arc<LeaseRenewer> {
        let index = self.topology.table.membership().index_of(&shard.0);
        &self.renewers[index.expect("both ends of a move are members")]
    }

    fn keeper_of(&self, id: &ShardId, address: &str) -> Option<Arc<LeaseRenewer>> {
        let at_the_same_address = self.topology.shard(id)?.address == address;
        let mut renewers = self.renewers.iter().filter(|_| at_the_same_address);
        renewers.find(|renewer| renewer.driver.id() == id).cloned()
    }
}

/// Stands for a shard whose address has no meaning here: requests for its keys report that.
#[derive(Debug)]
struct Undialable(ShardError);

#[async_trait::async_trait]
impl Shard for Undialable {
    fn work_lanes(&self) -> usize {
        LANES_BY_SLOT
    }

    async fn connect_locks(
        &self,
        _lane: LockLane,
        _former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn LockLink>, ShardError> {
        Err(self.0.clone())
    }

    async fn connect_counters(
        &self,
        _former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn CounterLink>, ShardError> {
        Err(self.0.clone())
    }

    async fn connect_control(
        &self,
        _former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn ControlLink>, ShardError> {
        Err(self.0.clone())
    }

    async fn listen(&self, _client: ClientId) -> Result<Box<dyn Subscription>, ShardError> {
        Err(self.0.clone())
    }
}
