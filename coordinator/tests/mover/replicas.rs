//! Namespaces with replicas: their slots are opened, and move like others.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_coordinator::{
    engine::Wait,
    ids::{ClientId, MapVersion, Nonce},
    mover::{NamespaceError, Observer},
    name::{Label, LockKey, Namespace},
    shard::{LockLane, LockMode, Op, Reply, Request, Shard},
    topology::{Namespaces, shard_id},
};
use ringfence_ring::{Replicas, Slot, SlotCount};
use tokio::time::{Instant, sleep};

use super::{
    lockers::Lockers,
    replicated::{ask, records, scene_of},
    stage::Stage,
};

pub(super) fn ledger() -> Namespace {
    Namespace::new("ledger").unwrap()
}

/// Declares that locks of `ledger` have three replicas.
pub(super) async fn declare(stage: &Stage) -> Result<(), NamespaceError> {
    let mover = stage.mover(16, Observer::default());
    mover.declare(&ledger(), Replicas::Three).await
}

/// A key in each of `slots`, of a ring that has as many without ranks.
fn keys(slots: &[Slot]) -> Vec<LockKey> {
    let all = SlotCount::new(256).unwrap();
    let mut found = BTreeMap::new();
    for at in 0_u32.. {
        let key = LockKey::new(&ledger(), at.to_string().as_bytes(), all).unwrap();
        if slots.contains(&key.slot()) {
            found.insert(key.slot(), key);
        }
        if found.len() == slots.len() {
            break;
        }
    }
    found.into_values().collect()
}

/// Every slot of every rank grants at its owner, and nowhere else.
async fn each_slot_grants_at_its_owner_alone(stage: &Stage) {
    let record = stage.record();
    let keys = keys(&record.table.all_slots().collect::<Vec<_>>());
    assert_eq!(keys.len(), 192);
    for name in record.shards.keys() {
        let index = (0..).find(|index| shard_id(*index) == name.0).unwrap();
        let link = stage.shard(index).connect_locks(LockLane::Work, None).await;
        let mut link = link.unwrap();
        for (sequence, key) in (0..).zip(&keys) {
            let client = ClientId(9 + index as u128);
            let nonce = Nonce { client, sequence };
            let acquire = Op::Acquire {
                nonce,
                label: Label::new("test"),
                lease: stage.record().constants.max_lease(),
                mode: LockMode::Exclusive,
                preferred: false,
                tokens: 1,
                ticket: None,
                proof: None,
            };
            let request = |op| Request {
                key: key.clone(),
                map: MapVersion::UNKNOWN,
                declared: record.declared,
                op,
            };
            let answers = link.call(&[request(acquire)]).await.unwrap();
            let granted = matches!(answers.replies[0], Reply::Granted { .. });
            let owned = *record.table.owner(key.slot()) == name.0;
            assert_eq!(granted, owned, "{key:?} at {}: {answers:?}", name.0);
            link.call(&[request(Op::Release { nonce })]).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_slots_of_a_declared_namespace_are_opened_and_no_lock_is_lost() {
    let stage = Stage::new(4).await;
    let lockers = Lockers::start(&stage.ring()).await;
    declare(&stage).await.unwrap();
    let resized = stage.resize().await;
    assert_eq!(resized.slots_moved, 0);
    assert!(!stage.record().is_under_way());
    each_slot_grants_at_its_owner_alone(&stage).await;
    lockers.stop().await;
}

#[tokio::test(start_paused = true)]
async fn ranks_move_from_shard_to_shard_and_no_lock_is_lost() {
    let stage = Stage::new(3).await;
    let lockers = Lockers::start(&stage.ring()).await;
    declare(&stage).await.unwrap();
    stage.resize().await;
    let mut change = stage.adding(3, 1).await;
    change.remove = vec![shard_id(0)];
    stage.begin(change);
    let resized = stage.resize_with(64, Observer::default()).await;
    assert_eq!(resized.slots_moved, 64);
    each_slot_grants_at_its_owner_alone(&stage).await;
    for slot in stage.record().table.slots().iter() {
        let record = stage.record();
        let at: BTreeSet<_> = record.table.replicas(slot).collect();
        assert_eq!(at.len(), 3, "slot {slot}");
    }
    lockers.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_ranks_of_a_dead_shard_are_opened_elsewhere() {
    let stage = Stage::new(4).await;
    let lockers = Lockers::start(&stage.ring()).await;
    declare(&stage).await.unwrap();
    stage.resize().await;
    stage.kill(3);
    stage.decommission(3);
    stage.resize().await;
    tokio::time::sleep(2 * stage.record().constants.grace()).await;
    each_slot_grants_at_its_owner_alone(&stage).await;
    lockers.stop().await;
}

/// Grace concerns the slots of the dead shard: one replica of a lock, and none of most.
#[tokio::test(start_paused = true)]
async fn new_locks_are_granted_while_the_ranks_of_a_dead_shard_are_in_grace() {
    let (stage, [engine]) = scene_of(4, Replicas::Three).await;
    stage.kill(3);
    stage.decommission(3);
    stage.resize().await;
    let mut in_grace = 0;
    for index in 0..3 {
        let mut control = stage.shard(index).connect_control(None).await.unwrap();
        in_grace += usize::from(!control.armed().await.unwrap().unwrap().grace_left.is_zero());
    }
    assert_eq!(in_grace, 3);
    let grace = stage.record().constants.grace();
    let began = Instant::now();
    for nth in 0..64 {
        let guard = ask(&engine, &format!("key/{nth}"), Wait::For(grace)).await;
        guard.unwrap().release().await;
    }
    assert!(began.elapsed() < grace / 2, "{:?}", began.elapsed());
}

/// The shard that fails has a replica of some of these locks, for longer than a lease before it is removed: the two
/// others keep them.
#[tokio::test(start_paused = true)]
async fn locks_with_replicas_are_held_while_shards_join_leave_and_are_removed_by_force() {
    let mut namespaces = Namespaces::default();
    namespaces.declare(ledger(), Replicas::Three).unwrap();
    let stage = Stage::with_namespaces(4, namespaces).await;
    let lockers = Lockers::start_in(&stage.ring(), ledger()).await;
    stage.add(4, 1).await;
    assert!(stage.resize().await.slots_moved > 0);
    stage.remove(0);
    assert!(stage.resize().await.slots_moved > 0);
    let lease = stage.record().constants.max_lease();
    stage.kill(1);
    sleep(lease + lease / 3).await;
    lockers.are_held();
    stage.decommission(1);
    stage.resize().await;
    sleep(2 * lease).await;
    let mut all = Vec::new();
    for key in Lockers::held_keys() {
        all.push(records(&stage, &key).await);
    }
    assert!(all.iter().all(|records| *records == 3), "{all:?}");
    lockers.stop().await;
}
