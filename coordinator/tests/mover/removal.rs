//! Leased removal: what is opened in place of a dead shard, when, and at which epoch.

use std::sync::Arc;

use ringfence_coordinator::{
    engine::AcquireError,
    mover::{Observer, Phase},
    shard::Shard as _,
    topology::{Namespaces, Topology, shard_id},
};
use ringfence_ring::Replicas;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};

use super::{
    replicas::ledger,
    stage::{Stage, at},
    view::{Process, SECOND, V},
};

/// The mover that began to wait is gone, and the heir came back meanwhile.
#[tokio::test(start_paused = true)]
async fn slots_of_a_dead_shard_are_opened_once_every_view_has_ended_whichever_mover_does_it() {
    let stage = Stage::leased().await;
    let one = stage.process(1).await;
    let key = stage.key_at(2);
    stage.kill(2);
    let declared = stage.decommission(2).last_epoch;
    let heir = stage.heir(&key);
    let own = stage.key_at(heir);
    for _ in 0..2 {
        let mover = stage.mover(6, Observer::default());
        assert!(timeout(V, mover.run()).await.is_err());
        let waiting_for = mover.progress().borrow().waiting_for.clone();
        let waiting_for = waiting_for.unwrap().to_string();
        assert!(
            waiting_for.contains("may use the dead shard"),
            "{waiting_for}"
        );
        stage.faults(heir).restart(true);
    }
    refuses(&one, &own, in_grace).await;
    let shut = |refused: &AcquireError| matches!(refused, AcquireError::Moved);
    refuses(&one, &key, shut).await;

    let began = Instant::now();
    let allotted = stage.record().last_epoch;
    stage.resize().await;
    let waited = began.elapsed();
    assert!(waited > V && waited < V + 2 * SECOND, "{waited:?}");
    sleep(40 * SECOND).await;
    let guard = one.ask(&key, None).await.unwrap();
    assert!(guard.token().epoch() > allotted && allotted > declared);
}

/// A process with a view from before confirms a token at the dead shard. It is of an epoch that was allotted later than
/// the one at which the shard was declared dead.
#[tokio::test(start_paused = true)]
async fn a_token_confirmed_at_a_dead_shard_is_below_every_later_one() {
    let mut namespaces = Namespaces::default();
    namespaces.declare(ledger(), Replicas::Three).unwrap();
    let stage = Stage::with_namespaces(4, namespaces).await;
    stage.without_asking();
    let (one, two) = (stage.process(1).await, stage.process(2).await);
    // They connect to every shard.
    sleep(SECOND).await;
    let [dead, raised, third] = stage.replicas_of("key");
    one.cut_off(true);
    stage.faults(dead).unreachable(true);
    stage.decommission(dead);
    stage.change(|record| {
        let mut next = record.clone();
        (next.version, next.last_epoch.0) = (next.version + 1, next.last_epoch.0 + 1);
        next
    });
    let record = stage.record();
    let mut control = stage.shard(raised).connect_control(None).await.unwrap();
    let raise = control.raise(record.incarnation, record.last_epoch);
    raise.await.unwrap();
    stage.faults(third).stall();
    let guard = one.ask_in(&ledger(), "key", None).await.unwrap();
    assert_eq!(guard.token().epoch(), record.last_epoch);
    let token = guard.token();
    guard.release().await;
    stage.faults(third).resume();

    stage.resize().await;
    sleep(40 * SECOND).await;
    stage.faults(raised).stall();
    let next = two.ask_in(&ledger(), "key", None).await.unwrap();
    assert!(next.token() > token, "{} after {token}", next.token());
}

/// The dead shard was about to get the slot. Its former shard has it again, and came back in between: it is in grace,
/// and still seals the slot. The dead shard goes on granting by views from before.
#[tokio::test(start_paused = true)]
async fn a_holder_comes_back_to_the_former_shard_once_every_view_has_ended() {
    let stage = Stage::leased().await;
    let (one, two) = (stage.process(1).await, stage.process(2).await);
    // What is held is listed, and noted in the record, before anything is opened.
    let is_at_first =
        |key: &String| *stage.record().table.owner(stage.lock_key(key).slot()) == shard_id(0);
    let mut held = Vec::new();
    for key in (0..200)
        .map(|nth| format!("held/{nth}"))
        .filter(is_at_first)
    {
        held.push(one.ask(&key, None).await.unwrap());
    }
    stage.add(3, 1).await;
    let listed = Arc::new(Notify::new());
    let told = listed.clone();
    let (observer, _) = at(Phase::Listed, 1, move || told.notify_one());
    let mover = stage.mover(16, observer);
    tokio::select! {
        biased;
        () = listed.notified() => {}
        resized = mover.run() => panic!("{resized:?}"),
    }
    drop(mover);
    let key = stage.key_of(|record, key| {
        let slot = stage.lock_key(key).slot();
        let migration = record.migration_of(slot);
        migration.is_some_and(|its| its.listed && its.from.0 == shard_id(0))
    });
    sleep(SECOND).await;
    let guard = one.ask(&key, Some(2 * SECOND)).await.unwrap();
    assert!(stage.holder(3, &key).await.is_some(), "it is there already");
    two.ask(&key, None).await.unwrap_err();
    let own = stage.key_of(|record, key| {
        let slot = stage.lock_key(key).slot();
        *record.table.owner(slot) == shard_id(0) && record.migration_of(slot).is_none()
    });
    stage.faults(0).restart(true);
    refuses(&one, &own, in_grace).await;
    assert!(guard.is_held());
    two.cut_off(true);
    stage.faults(3).unreachable(true);
    stage.decommission(3);
    let granted = two.asks_beside(&key, &guard).await;
    assert!(granted > 0, "it was to be had there");
}

/// Waits until `key` is refused for that reason: each lane learns by itself that its shard came back.
async fn refuses(process: &Process, key: &str, reason: impl Fn(&AcquireError) -> bool) {
    let refused = async {
        while !matches!(process.ask(key, None).await, Err(refused) if reason(&refused)) {
            sleep(SECOND / 10).await;
        }
    };
    timeout(10 * SECOND, refused).await.expect("refused");
}

fn in_grace(refused: &AcquireError) -> bool {
    matches!(refused, AcquireError::Grace { .. })
}

impl Stage {
    /// A key that is as it should be.
    fn key_of(&self, fits: impl Fn(&Topology, &str) -> bool) -> String {
        let record = self.record();
        let mut keys = (0..10_000).map(|nth| format!("key/{nth}"));
        keys.find(|key| fits(&record, key)).expect("one of them")
    }

    /// The places of the shards of a lock with three replicas.
    fn replicas_of(&self, key: &str) -> [usize; 3] {
        let record = self.record();
        let slots = record.table.slots();
        let slot = self.lock_key_in(&ledger(), key).slot();
        let place = |slot| {
            let owner = record.table.owner(slot);
            (0..4).find(|&index| shard_id(index) == *owner)
        };
        let places = slots.replicas(slot, Replicas::Three).filter_map(place);
        let places: Vec<_> = places.collect();
        places.try_into().expect("three of four")
    }
}
