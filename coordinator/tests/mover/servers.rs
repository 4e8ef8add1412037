//! On Redis servers.

use std::{sync::Arc, time::Duration};

use ringfence_coordinator::{
    clock::BootClock,
    ids::ClientId,
    mover::{Mover, Observer, Pace, Parts, Resized},
    random::Random,
    shard::redis::RedisOptions,
    spawn::{RedisServer, RedisServerBuilder},
    topology::{
        Change, Constants, Topology, TopologyStore,
        server::{Founding, ServerTopology, connect},
        shard_id,
    },
};
use ringfence_ring::{SlotCount, Weight};
use tokio::time::timeout;

use super::{
    bank::Bank,
    lockers::{Lockers, Ring},
    stage::moved,
};

/// Long enough for a busy machine to renew in time, short enough to wait for.
const LEASE_MS: u64 = 15_000;

/// Of a mover, where nothing is measured.
pub(crate) const PAUSE: Duration = Duration::from_millis(4);

/// Nothing takes so long.
const SOON: Duration = Duration::from_secs(120);

/// The topology of 256 slots on the servers at `urls`; founded on them, if they have none.
pub(crate) async fn topology(urls: &[String]) -> Arc<ServerTopology> {
    let founding = Founding {
        constants: Constants {
            max_lease_ms: LEASE_MS,
            ..Constants::default()
        },
        slots: SlotCount::new(256).unwrap(),
        watch_every: Duration::from_millis(50),
        ..Founding::default()
    };
    let random = Arc::new(Random::from_os());
    let seeds = urls.iter().map(|url| options(url)).collect();
    let joined = connect(seeds, founding, Arc::new(BootClock), random, ClientId(1)).await;
    joined.unwrap().store
}

fn options(url: &str) -> RedisOptions {
    RedisOptions::new(url.parse().unwrap(), ClientId(1))
}

/// Four servers, the topology on three of them, and processes that take locks there.
pub(crate) struct Stage {
    pub(crate) servers: Vec<RedisServer>,
    pub(crate) store: Arc<ServerTopology>,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::of(RedisServer::builder).await
    }

    /// On servers that are set up as given.
    pub(crate) async fn of(server: impl Fn() -> RedisServerBuilder) -> Self {
        let mut servers = Vec::new();
        for _ in 0..4 {
            servers.push(server().spawn().await.unwrap());
        }
        let urls: Vec<_> = servers[..3].iter().map(RedisServer::url).collect();
        let store = topology(&urls).await;
        Self { servers, store }
    }

    /// Begins to take in the fourth server, or to do without it. Answers the record of before.
    pub(crate) async fn begin(&self, grow: bool) -> Arc<Topology> {
        let mut change = Change::default();
        if grow {
            let options = options(&self.servers[3].url());
            let founder = self.store.take_in(options, Some(shard_id(3)), Weight::ONE);
            change.add.push(founder.await.unwrap());
        } else {
            change.remove.push(shard_id(3));
        }
        let before = self.store.load().await.unwrap();
        let begun = mover(&ring(&self.store)).begin(change).await.unwrap();
        assert!(begun.goal.is_some());
        before
    }

    /// Moves slots to the end.
    pub(crate) async fn resize(&self) -> Resized {
        self.resize_with(Observer::default()).await
    }

    /// As [`resize`](Self::resize), and `observer` is told.
    pub(crate) async fn resize_with(&self, observer: Observer) -> Resized {
        self.resize_at(PAUSE, observer).await
    }

    /// As [`resize_with`](Self::resize_with), with pauses of that length at most.
    pub(crate) async fn resize_at(&self, pause: Duration, observer: Observer) -> Resized {
        let mover = mover_with(&ring(&self.store), pause, observer);
        let resized = timeout(SOON, mover.run()).await;
        let stuck = || format!("stuck: {:?}", mover.progress().borrow());
        resized.unwrap_or_else(|_| panic!("{}", stuck())).unwrap()
    }
}

/// Where locks are taken.
pub(crate) fn ring(store: &Arc<ServerTopology>) -> Ring {
    Ring {
        dial: store.clone(),
        store: store.clone(),
        clock: Arc::new(BootClock),
        hold: Duration::from_millis(300),
    }
}

pub(crate) fn mover(ring: &Ring) -> Mover {
    mover_with(ring, PAUSE, Observer::default())
}

fn mover_with(ring: &Ring, pause: Duration, observer: Observer) -> Mover {
    Mover::new(Parts {
        store: ring.store.clone(),
        dial: ring.dial.clone(),
        clock: ring.clock.clone(),
        random: Arc::new(Random::from_os()),
        pace: Pace {
            slots_in_flight: 48,
            pause,
        },
        servers_are_new: true,
        observer,
    })
}

#[tokio::test]
async fn from_three_servers_to_four_and_back_no_lock_and_no_coin_is_lost() {
    let stage = Stage::new().await;
    let lockers = Lockers::start(&ring(&stage.store)).await;
    let bank = Bank::open(&ring(&stage.store)).await;
    for grow in [true, false] {
        let before = stage.begin(grow).await;
        let resized = stage.resize().await;
        let after = stage.store.load().await.unwrap();
        assert_eq!((moved(&before, &after), resized.slots_moved), (64, 64));
        assert!(resized.locks_carried > 0 && resized.counters_carried > 0);
    }
    lockers.stop().await;
    bank.close().await;
    let address = options(&stage.servers[3].url()).address.to_string();
    assert!(stage.store.release(&address).await.unwrap(), "it is let go");
}
