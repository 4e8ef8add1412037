//! Leased removal: an engine that cannot confirm the topology holds nothing.

use std::{ops::Deref, sync::Arc, time::Duration};

use async_trait::async_trait;
use ringfence_coordinator::{
    engine::{Acquire, AcquireError, Danger, Engine, Guard, Parts, Sharing, Wait},
    ids::{ClientId, Incarnation},
    name::{Label, LockKey, Namespace},
    random::Random,
    shard::{Holder, Shard},
    topology::{
        Copies, Namespaces, Removal, ShardName, Swap, Topology, TopologyError, TopologyStore,
        Version, memory::MemoryTopology, shard_id,
    },
};
use ringfence_ring::Replicas;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{lockers::acquire, replicas::ledger, stage::Stage};

pub(super) const SECOND: Duration = Duration::from_secs(1);

/// How long a view is gone by.
pub(super) const V: Duration = Duration::from_secs(5);

/// How long nobody new is granted anything once it has ended.
const GRACE: Duration = Duration::from_secs(31);

/// The topology's store, which a process may be cut off from.
#[derive(Debug)]
struct Away {
    store: Arc<MemoryTopology>,
    cut: watch::Sender<bool>,
}

impl Away {
    fn answer(&self) -> Result<&MemoryTopology, TopologyError> {
        match *self.cut.borrow() {
            false => Ok(&self.store),
            true => Err(TopologyError::Unreachable {
                address: "memory".into(),
                reason: "cut off".into(),
            }),
        }
    }
}

#[async_trait]
impl TopologyStore for Away {
    async fn load(&self) -> Result<Arc<Topology>, TopologyError> {
        self.answer()?.load().await
    }

    async fn swap(&self, expected: Version, next: &Topology) -> Result<Swap, TopologyError> {
        self.answer()?.swap(expected, next).await
    }

    async fn watch(&self, known: Version) -> Result<Arc<Topology>, TopologyError> {
        let mut cut = self.cut.subscribe();
        let cut_off = async { cut.wait_for(|cut| *cut).await.is_ok() };
        tokio::select! {
            biased;
            _ = cut_off => self.load().await,
            newer = self.answer()?.watch(known) => newer,
        }
    }

    async fn copies(&self) -> Copies {
        Copies::default()
    }

    fn outrun(&self, incarnation: Incarnation) {
        self.store.outrun(incarnation);
    }
}

/// A process, and its way to the topology's store.
pub(super) struct Process {
    engine: Engine,
    store: Arc<Away>,
}

impl Deref for Process {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Process {
    pub(super) fn cut_off(&self, cut: bool) {
        self.store.cut.send_replace(cut);
    }

    /// Asks again and again for `key`, for 10 s, and gives it back. Returns how often it got it, never while `guard` of
    /// another process is held.
    pub(super) async fn asks_beside(&self, key: &str, guard: &Guard) -> u32 {
        let mut granted = 0;
        for _ in 0..100 {
            sleep(SECOND / 10).await;
            if let Ok(other) = self.ask(key, None).await {
                granted += 1;
                assert!(!guard.is_held(), "two holders");
                other.release().await;
            }
        }
        granted
    }

    pub(super) async fn ask(
        &self,
        key: &str,
        lease: Option<Duration>,
    ) -> Result<Guard, AcquireError> {
        self.ask_in(&Namespace::default(), key, lease).await
    }

    pub(super) async fn ask_in(
        &self,
        namespace: &Namespace,
        key: &str,
        lease: Option<Duration>,
    ) -> Result<Guard, AcquireError> {
        let ask = Acquire {
            namespace,
            key: key.as_bytes(),
            lease,
            hold_for: None,
            wait: Wait::No,
            preferred: false,
            tokens: 1,
            owner: None,
            label: None,
            observer: None,
        };
        self.engine.acquire(ask).await
    }

    fn waits(&self, key: &str) -> JoinHandle<Guard> {
        let (engine, key) = (self.engine.clone(), key.to_owned());
        tokio::spawn(async move { acquire(&engine, &key).await })
    }
}

impl Stage {
    /// Where a shard may be removed without asking.
    pub(super) async fn leased() -> Arc<Self> {
        let stage = Self::new(3).await;
        stage.without_asking();
        stage
    }

    pub(super) fn without_asking(&self) {
        self.change(|record| {
            let mut next = record.clone();
            next.version += 1;
            next.constants.removal = Removal::Leased;
            next
        });
        assert_eq!(self.record().constants.view_lease(), Some(V));
    }

    pub(super) async fn process(&self, number: u128) -> Process {
        self.started(number, false).await
    }

    /// A process that starts with the record in force, and may be cut off from then on.
    async fn started(&self, number: u128, cut: bool) -> Process {
        let store = Arc::new(Away {
            store: self.store.clone(),
            cut: watch::Sender::new(cut),
        });
        let engine = Engine::start(Parts {
            clock: Arc::new(self.clock),
            random: Arc::new(Random::seeded(number as u64)),
            client: ClientId(number),
            label: Label::new(&format!("process {number}")),
            topology: self.record(),
            store: store.clone(),
            dial: self.shards.clone(),
            sharing: Sharing::default(),
            servers_are_new: true,
            shared: false,
            coordinators: None,
        });
        let engine = engine.await;
        Process { engine, store }
    }

    pub(super) fn lock_key(&self, key: &str) -> LockKey {
        self.lock_key_in(&Namespace::default(), key)
    }

    pub(super) fn lock_key_in(&self, namespace: &Namespace, key: &str) -> LockKey {
        let slots = self.record().table.slots();
        LockKey::new(namespace, key.as_bytes(), slots).unwrap()
    }

    /// A key of a slot that the shard at `index` has.
    pub(crate) fn key_at(&self, index: usize) -> String {
        let its = |key: &String| self.owner(key).0 == shard_id(index);
        let mut keys = (0..).map(|nth| format!("key/{nth}"));
        keys.find(its).expect("it has slots")
    }

    fn owner(&self, key: &str) -> ShardName {
        let slot = self.lock_key(key).slot();
        ShardName(self.record().table.owner(slot).clone())
    }

    /// The place of the shard that has `key` now.
    pub(super) fn heir(&self, key: &str) -> usize {
        let owner = self.owner(key).0;
        (0..3)
            .find(|&index| shard_id(index) == owner)
            .expect("one of three")
    }

    /// The holder of `key` at the shard at `index`, by the record there.
    pub(super) async fn holder(&self, index: usize, key: &str) -> Option<Holder> {
        let mut link = self.shard(index).connect_control(None).await.unwrap();
        link.inspect(&self.lock_key(key)).await.unwrap().holder
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_confirm_the_topology_holds_nothing_and_sends_nothing() {
    let stage = Stage::leased().await;
    let one = stage.process(1).await;
    let guard = acquire(&one, "held").await;
    sleep(60 * SECOND).await;
    assert!(guard.is_held(), "confirmed again and again");
    one.cut_off(true);
    sleep(SECOND).await;
    assert!(guard.is_held(), "it was confirmed just before");
    sleep(V).await;
    assert!(!guard.is_held());
    let home = stage.heir("held");
    assert!(
        stage.holder(home, "held").await.is_some(),
        "no release is sent"
    );
    assert!(one.ask("other", None).await.is_err());
    sleep(SECOND).await;
    assert!(stage.holder(stage.heir("other"), "other").await.is_none());
    sleep(30 * SECOND).await;
    assert!(stage.holder(home, "held").await.is_none(), "it has run out");

    let waiting = one.waits("other");
    sleep(SECOND).await;
    assert!(!waiting.is_finished());
    one.cut_off(false);
    let granted = timeout(V, waiting).await.expect("confirmed").unwrap();
    assert!(granted.is_held());
    assert!(!guard.is_held(), "what is lost is lost");
}

#[tokio::test(start_paused = true)]
async fn a_lock_with_replicas_is_held_while_the_topology_is_confirmed_and_no_longer() {
    let mut namespaces = Namespaces::default();
    namespaces.declare(ledger(), Replicas::Three).unwrap();
    let stage = Stage::with_namespaces(3, namespaces).await;
    stage.without_asking();
    let one = stage.process(1).await;
    let guard = one.ask_in(&ledger(), "key", None).await.unwrap();
    // Its renewals are further apart than confirmations.
    for _ in 0..60 {
        sleep(SECOND).await;
        assert!(guard.is_held());
    }
    one.cut_off(true);
    sleep(V).await;
    assert!(!guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn danger_comes_with_a_third_of_the_view_or_of_the_lease_left_and_not_before() {
    let stage = Stage::leased().await;
    let one = stage.process(1).await;
    let key = stage.key_at(2);
    let guard = acquire(&one, &key).await;
    let in_danger = timeout(60 * SECOND, guard.danger()).await;
    assert!(in_danger.is_err(), "{in_danger:?}, renewed and confirmed");

    one.cut_off(true);
    assert_eq!(guard.danger().await, Danger::NearDeadline);
    let left = guard.remaining();
    assert!(left <= V / 3 && left > V / 4, "of the view: {left:?}");
    one.cut_off(false);
    sleep(V / 3).await;
    stage.faults(2).stall();
    assert_eq!(guard.danger().await, Danger::NearDeadline);
    let lease = stage.record().constants.max_lease();
    let stalled = Instant::now();
    guard.lost().await;
    let left = stalled.elapsed();
    assert!(
        left > lease / 4 && left <= lease / 3,
        "of the lease: {left:?}"
    );
}

/// What it starts with was read before that, perhaps long before.
#[tokio::test(start_paused = true)]
async fn a_new_client_sends_nothing_before_the_topology_is_confirmed() {
    let stage = Stage::leased().await;
    let one = stage.started(1, true).await;
    assert!(one.ask("key", None).await.is_err());
    one.cut_off(false);
    let granted = timeout(V, one.waits("key")).await;
    assert!(granted.expect("confirmed").unwrap().is_held());
    let two = stage.started(2, false).await;
    let granted = two.ask("other", None).await;
    assert!(granted.unwrap().is_held(), "at once");
}

/// The view ended between the request and the answer, and was confirmed again: by now another shard
/// may be responsible for the key.
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_the_view_has_ended_is_dropped() {
    let stage = Stage::leased().await;
    let one = stage.process(1).await;
    let key = stage.key_at(2);
    sleep(SECOND).await;
    stage
        .faults(2)
        .latency(5 * SECOND..5 * SECOND + SECOND / 1000);
    one.cut_off(true);
    sleep(SECOND).await;
    let (began, waiting) = (Instant::now(), one.waits(&key));
    sleep(5 * SECOND).await;
    one.cut_off(false);
    sleep(6 * SECOND).await;
    assert!(stage.holder_is_there(&key).await, "it was granted");
    assert!(!waiting.is_finished(), "nobody believes it");
    let guard = timeout(60 * SECOND, waiting).await.expect("asked again");
    assert!(guard.unwrap().is_held());
    assert!(began.elapsed() > 19 * SECOND, "{:?}", began.elapsed());
}

impl Stage {
    /// Whether the shard at 2 has a record of `key`, without the way there.
    async fn holder_is_there(&self, key: &str) -> bool {
        self.faults(2).latency(Duration::ZERO..Duration::ZERO);
        let there = self.holder(2, key).await.is_some();
        self.faults(2)
            .latency(5 * SECOND..5 * SECOND + SECOND / 1000);
        there
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_a_shard_that_was_given_up_is_dropped() {
    let stage = Stage::leased().await;
    let one = stage.process(1).await;
    let key = stage.key_at(2);
    sleep(SECOND).await;
    stage
        .faults(2)
        .latency(3 * SECOND..3 * SECOND + SECOND / 1000);
    let waiting = one.waits(&key);
    sleep(SECOND).await;
    stage.decommission(2);
    sleep(7 * SECOND).await;
    assert!(!waiting.is_finished(), "it granted, and nobody believes it");
    stage.resize().await;
    let guard = timeout(2 * GRACE, waiting).await.expect("its heir grants");
    let guard = guard.unwrap();
    let there = stage.holder(stage.heir(&key), &key).await;
    assert_eq!(there.map(|holder| holder.token), Some(guard.token()));
}

#[tokio::test(start_paused = true)]
async fn a_holder_puts_its_lock_back_where_its_slot_is_and_nobody_else_has_it() {
    let stage = Stage::leased().await;
    let (one, two) = (stage.process(1).await, stage.process(2).await);
    let key = stage.key_at(2);
    let guard = acquire(&one, &key).await;
    let waiting = two.waits(&key);
    sleep(SECOND).await;
    stage.kill(2);
    sleep(SECOND).await;
    stage.decommission(2);
    stage.resize().await;
    sleep(2 * GRACE).await;
    assert!(guard.is_held());
    let there = stage.holder(stage.heir(&key), &key).await;
    assert_eq!(there.map(|holder| holder.token), Some(guard.token()));
    assert!(!waiting.is_finished());
    let token = guard.token();
    guard.release().await;
    let next = timeout(GRACE, waiting).await.expect("its turn").unwrap();
    assert!(next.token() > token);
}

/// Only the topology's store is out of its reach: the shard that was given up goes on renewing it.
#[tokio::test(start_paused = true)]
async fn a_holder_that_hears_of_nothing_has_lost_it_before_another_may_have_it() {
    let stage = Stage::leased().await;
    let (one, two) = (stage.process(1).await, stage.process(2).await);
    let key = stage.key_at(2);
    let guard = acquire(&one, &key).await;
    one.cut_off(true);
    stage.faults(2).unreachable(true);
    stage.decommission(2);
    stage.resize().await;
    let waiting = two.waits(&key);
    sleep(V).await;
    assert!(!guard.is_held());
    let next = timeout(2 * GRACE, waiting)
        .await
        .expect("its heir grants")
        .unwrap();
    assert!(next.is_held() && next.token() > guard.token());
    assert!(!guard.is_held());
}

/// An engine that has learnt of it is at the next shard, and no longer renews at the dead one.
/// There its record expires, and an engine that has not learnt of it gets the lock.
#[tokio::test(start_paused = true)]
async fn clients_with_the_old_and_the_new_record_never_hold_the_same_lock() {
    let stage = Stage::leased().await;
    let (one, two) = (stage.process(1).await, stage.process(2).await);
    let key = stage.key_at(2);
    let guard = one.ask(&key, Some(2 * SECOND)).await.unwrap();
    two.cut_off(true);
    // The mover cannot reach it either; connected clients stay connected.
    stage.faults(2).unreachable(true);
    stage.decommission(2);
    let (_, granted) = tokio::join!(stage.resize(), two.asks_beside(&key, &guard));
    assert!(granted > 0, "it was to be had there");
}
