//! Locks with three replicas: what is done, whichever rules are on.

use std::time::Duration;

use ringfence_chaos::{client::Holder, history::History, ledger};
use ringfence_client::{BootClock, Clock as _, LockKey, Replicas};
use ringfence_coordinator::topology::shard_id;
use ringfence_test_support::{Flow, Proxy, Whose};

use super::{
    plain,
    stage::{LEASE, Stage},
};

const KEY: &str = "ledger/0";
/// How long somebody asks for a lock that somebody else holds.
const WAIT: Duration = Duration::from_secs(3);

/// Nothing that is sent to the shard arrives.
fn away(proxy: &Proxy) {
    proxy.requests(&Whose::lane("work"), Flow::Lose);
}

/// A key whose replicas are at these shards, in the order of the ranks.
fn key_at(holder: &Holder, shards: [usize; 3]) -> String {
    let table = &holder.client.topology().table;
    let is_there = |key: &String| {
        let namespace = ledger::namespace_of(key);
        let key = LockKey::new(&namespace, key.as_bytes(), table.slots()).expect("a valid name");
        let slots = table.slots().replicas(key.slot(), Replicas::Three);
        slots
            .zip(shards)
            .all(|(slot, shard)| *table.owner(slot) == shard_id(shard))
    };
    let mut keys = (0..).map(|number| format!("ledger/{number}"));
    keys.find(is_there)
        .expect("a third of a half of them are there")
}

/// One client has the key at two shards, of which the one that others queue at forgets it; another asks for it.
pub(crate) async fn restarted_empty() -> History {
    let mut stage = Stage::of(3, LEASE).await;
    let (first, second) = (stage.holder().await, stage.holder().await);
    away(stage.members[2].proxy());
    stage.members[2]
        .proxy()
        .requests(&Whose::lane("renew"), Flow::Lose);
    let key = &key_at(&first, [0, 2, 1]);
    let held = first.acquire(key, Some(LEASE)).await.unwrap();
    stage.restart_empty().await;
    stage.members[2].proxy().heal();
    let also = second.acquire(key, Some(WAIT)).await;
    first.release(held).await;
    if let Some(also) = also {
        second.release(also).await;
    }
    stage.history()
}

/// The same with Redlock as it is often written: no server that comes back empty waits for a lease.
pub(crate) async fn redlock_restarted_empty() -> History {
    let mut stage = Stage::of(3, LEASE).await;
    stage.members[2].proxy().refuse(true);
    assert_eq!(redlock(&stage, 1).await, [true, true, false]);
    stage.restart_empty().await;
    stage.members[2].proxy().refuse(false);
    assert_eq!(redlock(&stage, 2).await, [true, false, true]);
    stage.history()
}

/// Takes the lock on a majority of the servers. Returns which of them granted it.
async fn redlock(stage: &Stage, number: u64) -> [bool; 3] {
    let sent = BootClock.now();
    let mut granted = [false; 3];
    for (server, granted) in granted.iter_mut().enumerate() {
        *granted = plain::set(stage, server, number).await;
    }
    let count = granted.iter().filter(|granted| **granted).count();
    assert!(count >= 2, "{granted:?}");
    plain::record(stage, sent, number);
    granted
}

/// The lock is granted by the shard of the latest epoch and another, then by that one and the third.
pub(crate) async fn granted_by_another_majority() -> History {
    let stage = Stage::of(3, LEASE).await;
    let (first, second) = (stage.holder().await, stage.holder().await);
    let [earliest, _, latest] = by_epoch(&first);
    for (holder, index) in [(&first, earliest), (&second, latest)] {
        let proxy = stage.members[index].proxy();
        away(proxy);
        let held = holder.acquire(KEY, Some(LEASE)).await.unwrap();
        holder.release(held).await;
        proxy.heal();
    }
    stage.history()
}

/// The shards, by the epochs that they make tokens of.
fn by_epoch(holder: &Holder) -> [usize; 3] {
    let topology = holder.client.topology();
    let epoch = |shard: &usize| topology.shard(&shard_id(*shard)).map(|entry| entry.epoch);
    let mut shards = [0, 1, 2];
    shards.sort_by_key(epoch);
    shards
}
