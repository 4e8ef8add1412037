//! A ring of unlike servers: a shard on Redis gives way to one that stores documents.

use std::{sync::Arc, time::Duration};

use ringfence_conformance::shard::Fixture;
use ringfence_coordinator::{
    clock::{BootClock, Clock},
    ids::{ClientId, Epoch, Life},
    shard::{Shard, ShardError},
    topology::{
        Blueprint, Change, Constants, Dial, Founder, Home, Namespaces, ShardEntry, Topology,
        TopologyStore, memory::MemoryTopology, shard_id,
    },
};
use ringfence_ring::{ShardId, SlotCount, Weight};
use tokio::time::timeout;

use super::{
    lockers::{Lockers, Ring},
    servers::mover,
};
use crate::{
    etcd_fixture::OnEtcd, mariadb_fixture::Maria, postgres_fixture::Postgres, redis_fixture::Redis,
    zookeeper_fixture::OnZookeeper,
};

/// As the pointer of the fixture on Redis has it.
const TOPOLOGY: u128 = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;

/// Nothing takes so long.
const SOON: Duration = Duration::from_secs(120);

/// `a` is on Redis, `b` stores documents.
#[derive(Debug)]
struct Unlike([Arc<dyn Shard>; 2]);

impl Dial for Unlike {
    fn dial(&self, id: &ShardId, _: &ShardEntry) -> Result<Arc<dyn Shard>, ShardError> {
        Ok(self.0[usize::from(*id == shard_id(1))].clone())
    }
}

impl Unlike {
    async fn founder(&self, index: usize) -> Founder {
        let link = self.0[index].connect_control(None).await.unwrap();
        Founder {
            id: shard_id(index),
            address: format!("server:{index}:{}", link.life()),
            life: link.life().clone(),
            weight: Weight::ONE,
            zone: None,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: chaos moves locks between servers of all kinds"]
async fn locks_move_from_redis_to_postgresql_and_none_is_lost() {
    locks_move_from_redis(&Postgres::new().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: chaos moves locks between servers of all kinds"]
async fn locks_move_from_redis_to_mariadb_and_none_is_lost() {
    locks_move_from_redis(&Maria::new().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: chaos moves locks between servers of all kinds"]
async fn locks_move_from_redis_to_etcd_and_none_is_lost() {
    locks_move_from_redis(&OnEtcd::new().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: chaos moves locks between servers of all kinds"]
async fn locks_move_from_redis_to_zookeeper_and_none_is_lost() {
    locks_move_from_redis(&OnZookeeper::new().await).await;
}

async fn locks_move_from_redis(to: &dyn Fixture) {
    let redis = Redis::new().await;
    let dial = Arc::new(Unlike([redis.shard(), to.shard()]));
    let blueprint = Blueprint {
        id: TOPOLOGY,
        engine: ClientId(1),
        unix: BootClock.unix(),
        after: Epoch::default(),
        constants: Constants {
            max_lease_ms: 10_000,
            ..Constants::default()
        },
        slots: SlotCount::new(256).unwrap(),
        namespaces: Namespaces::default(),
        home: Home {
            address: "memory".into(),
            life: Life::new("memory"),
        },
        founders: vec![dial.founder(0).await],
    };
    let store = Arc::new(MemoryTopology::new(Topology::found(blueprint).unwrap()));
    let ring = Ring {
        store: store.clone(),
        dial: dial.clone(),
        clock: Arc::new(BootClock),
        hold: Duration::from_millis(100),
    };
    let lockers = Lockers::start(&ring).await;
    let grow = Change {
        add: vec![dial.founder(1).await],
        ..Change::default()
    };
    let shrink = Change {
        remove: vec![shard_id(0)],
        ..Change::default()
    };
    for change in [grow, shrink] {
        let mover = mover(&ring);
        mover.begin(change).await.unwrap();
        let resized = timeout(SOON, mover.run()).await;
        let stuck = || format!("stuck: {:?}", mover.progress().borrow());
        resized.unwrap_or_else(|_| panic!("{}", stuck())).unwrap();
    }
    let record = store.load().await.unwrap();
    assert_eq!(record.shards.len(), 1, "all slots are there");
    lockers.stop().await;
}
