//! Namespaces with replicas: the ranks of a slot stay at distinct shards, in distinct zones, during any change.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prelude::*, sample::Index};
use ringfence_ring::{Replicas, Zone};

use super::*;
use crate::{
    ids::MapVersion,
    limits::NAMESPACES_MAX,
    name::Namespace,
    shard::{Grace, Mode},
    topology::{DeclareError, DecommissionError, Namespaces, Round, TopologyError},
};

fn namespace(name: &str) -> Namespace {
    Namespace::new(name).unwrap()
}

fn ledger(replicas: Replicas) -> Namespaces {
    let mut namespaces = Namespaces::default();
    namespaces.declare(namespace("ledger"), replicas).unwrap();
    namespaces
}

/// A shard in zone `index % zones`; in none if there are no zones.
fn zoned(index: usize, zones: usize) -> Founder {
    let zone = index
        .checked_rem(zones)
        .map(|zone| Zone::new(&format!("z{zone}")).unwrap());
    Founder {
        zone,
        ..founder(index, 1)
    }
}

fn found(
    slots: u32,
    namespaces: Namespaces,
    founders: Vec<Founder>,
) -> Result<Topology, TopologyError> {
    Topology::found(Blueprint {
        namespaces,
        founders,
        ..blueprint(slots)
    })
}

fn replicated(slots: u32, replicas: Replicas, shards: usize, zones: usize) -> Topology {
    let founders = (0..shards).map(|index| zoned(index, zones)).collect();
    found(slots, ledger(replicas), founders).unwrap()
}

/// The zones that have a rank of each slot, or come to have it, are distinct, and a minority of its ranks
/// migrates, for each number of replicas.
fn check_ranks(topology: &Topology) -> Result<(), TestCaseError> {
    let replicas = topology.table.membership().replicas();
    for slot in topology.table.slots().iter() {
        let (mut at, mut busy) = (BTreeSet::new(), 0);
        for (number, rank) in (1..).zip(topology.table.slots().replicas(slot, replicas)) {
            let migration = topology.migration_of(rank);
            let next = migration.map(|migration| &migration.to.0);
            let shards = [Some(topology.table.owner(rank)), next];
            let zone = |id: &ShardId| {
                let zone = topology.table.membership().zone(id);
                zone.map_or(id.to_string(), |zone| format!("zone {zone}"))
            };
            let zones: BTreeSet<_> = shards.into_iter().flatten().map(zone).collect();
            for zone in zones {
                prop_assert!(
                    at.insert(zone.clone()),
                    "two ranks of slot {} at {}",
                    slot,
                    zone
                );
            }
            busy += u32::from(migration.is_some());
            if let Ok(replicas) = Replicas::new(number) {
                prop_assert!(
                    busy <= replicas.minority().max(1),
                    "{} of {} ranks of slot {}",
                    busy,
                    replicas,
                    slot
                );
            }
        }
    }
    let decoded = Topology::decode(&topology.encode());
    prop_assert_eq!(decoded.as_ref(), Ok(topology));
    Ok(())
}

/// A round that finishes some of the moves under way, or all of them.
fn round(topology: &Topology, finished: Option<&[Index]>, slots_in_flight: usize) -> Round {
    let moving: Vec<(Epoch, Slot)> = topology
        .migrations
        .iter()
        .flat_map(|migration| migration.slots.iter().map(|&slot| (migration.epoch, slot)))
        .collect();
    let picked: Vec<_> = match finished {
        None => moving.clone(),
        Some(_) if moving.is_empty() => Vec::new(),
        Some(some) => {
            let some = some.iter();
            some.map(|index| moving[index.index(moving.len())])
                .collect()
        }
    };
    Round {
        finished: picked
            .into_iter()
            .map(|(epoch, slot)| (epoch, vec![slot]))
            .collect(),
        slots_in_flight,
        ..Round::default()
    }
}

/// Rounds that finish and open everything, until nothing is left.
fn to_the_end(mut topology: Topology) -> Result<Topology, TestCaseError> {
    for _ in 0..1000 {
        for opening in topology.openings.clone() {
            topology = topology.opened(&opening.to.0, opening.epoch).unwrap();
        }
        let round = round(&topology, None, 8);
        let Some(next) = topology.turn(&round, UNIX).unwrap() else {
            prop_assert!(!topology.is_under_way());
            return Ok(topology);
        };
        check_ranks(&next)?;
        topology = next;
    }
    Err(TestCaseError::fail("never at an end"))
}

/// A change of a record with `zones` zones, in which the first of two letters is a member or not.
#[derive(Clone, Debug)]
enum Deed {
    Turn(Vec<Index>),
    Abort,
    Begin { toggle: BTreeSet<usize>, weigh: u32 },
    Decommission(usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    let finished = prop::collection::vec(any::<Index>(), 0..12);
    let begin = (prop::collection::btree_set(0..9_usize, 1..4), 1..4_u32);
    prop_oneof![
        8 => finished.prop_map(Deed::Turn),
        1 => Just(Deed::Abort),
        2 => begin.prop_map(|(toggle, weigh)| Deed::Begin { toggle, weigh }),
        1 => (1..9_usize).prop_map(Deed::Decommission),
    ]
}

/// Members leave, and shards that were never members join.
fn begin(
    topology: &Topology,
    toggle: &BTreeSet<usize>,
    weigh: u32,
    zones: usize,
) -> Result<Topology, super::super::ResizeError> {
    let (there, new): (Vec<_>, Vec<_>) = toggle
        .iter()
        .partition(|&&index| topology.shards.contains_key(&name(index)));
    let stays = |name: &ShardName| there.iter().all(|&&index| shard_id(index) != name.0);
    let weighed = topology.shards.keys().find(|name| stays(name));
    let weight = |name: &ShardName| (name.0.clone(), Weight::new(weigh).unwrap());
    let change = Change {
        add: new.into_iter().map(|&index| zoned(index, zones)).collect(),
        remove: there.iter().map(|&&index| shard_id(index)).collect(),
        weigh: weighed.map(weight).into_iter().collect(),
    };
    topology.begin(change, UNIX)
}

proptest! {
    #[test]
    fn ranks_stay_apart_in_any_order_of_changes(
        replicas in prop_oneof![Just(Replicas::Three), Just(Replicas::Five)],
        zones in prop_oneof![Just(0_usize), 5..8_usize],
        deeds in prop::collection::vec(deed(), 0..40),
        max in 1..40_usize,
    ) {
        let mut current = replicated(16, replicas, 6, zones);
        check_ranks(&current)?;
        for deed in deeds {
            let next = match deed {
                Deed::Turn(finished) => {
                    current.turn(&round(&current, Some(&finished), max), UNIX).unwrap()
                }
                Deed::Abort => current.abort(UNIX).ok(),
                Deed::Begin { toggle, weigh } => begin(&current, &toggle, weigh, zones).ok(),
                Deed::Decommission(index) => current.decommission(&shard_id(index), UNIX).ok(),
            };
            let Some(next) = next else { continue };
            check_ranks(&next)?;
            prop_assert!(next.preview().is_ok());
            current = next;
        }
        let end = to_the_end(current)?;
        prop_assert!(end.table.shards().len() >= replicas.get() as usize);
    }
}

#[test]
fn a_resize_moves_one_rank_of_three_at_a_time() {
    let before = replicated(64, Replicas::Three, 3, 0);
    let change = Change {
        remove: vec![shard_id(0), shard_id(1), shard_id(2)],
        add: (3..6).map(|index| founder(index, 1)).collect(),
        ..Change::default()
    };
    let mut begun = before.begin(change, UNIX).unwrap();
    // Every rank of every slot has to move.
    assert_eq!(begun.preview().unwrap().slots_to_move(), 192);
    let first = begun
        .turn(&round(&begun, None, 1000), UNIX)
        .unwrap()
        .unwrap();
    let moving: usize = first.migrations.iter().map(|one| one.slots.len()).sum();
    assert_eq!(moving, 64);
    begun = to_the_end(first).unwrap();
    assert_eq!(
        begun.shards.into_keys().collect::<Vec<_>>(),
        [3, 4, 5].map(name)
    );
}

#[test]
fn a_removed_shard_leaves_its_ranks_to_shards_without_one() {
    let before = replicated(64, Replicas::Three, 4, 0);
    let after = before.decommission(&shard_id(3), UNIX).unwrap();
    check_ranks(&after).unwrap();
    let its = before.table.slots_of(&shard_id(3)).count();
    let to_open: usize = after
        .openings
        .iter()
        .map(|opening| opening.slots.len())
        .sum();
    assert_eq!(to_open, its);
    let refused = after.decommission(&shard_id(2), UNIX).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "shards is 2, must be at least the number of replicas, 3"
    );
}

/// The fourth shard is the only place left, and another rank is on its way to it.
#[test]
fn a_rank_without_a_place_is_not_forced_to_another() {
    let mut before = replicated(4, Replicas::Three, 4, 0);
    let slot = before.table.all_slots().next().unwrap();
    let at: Vec<_> = before.table.replicas(slot).cloned().collect();
    let [first, other, _] = &at[..] else {
        panic!("three ranks")
    };
    if *first == shard_id(0) {
        before.home.address = "elsewhere".into();
    }
    let rank = before
        .table
        .slots()
        .replicas(slot, Replicas::Three)
        .nth(1)
        .unwrap();
    let free = before
        .table
        .shards()
        .iter()
        .find(|id| !at.contains(id))
        .unwrap();
    let moves = [(
        ShardName(other.clone()),
        ShardName(free.clone()),
        vec![rank],
    )];
    before.last_epoch = Epoch(before.last_epoch.0 + 1);
    before.migrations = super::super::migration::moves_of(before.last_epoch, moves);
    let refused = before.decommission(first, UNIX).unwrap_err();
    assert!(
        matches!(&refused, DecommissionError::ReplicasMigrate { slot: its, .. } if *its == slot),
        "{refused}"
    );
    let arrived = before
        .turn(&round(&before, None, 8), UNIX)
        .unwrap()
        .unwrap();
    check_ranks(&arrived.decommission(first, UNIX).unwrap()).unwrap();
}

#[test]
fn fewer_shards_or_zones_than_replicas_are_refused_with_both_numbers() {
    let shards = |count, zones| (0..count).map(|index| zoned(index, zones)).collect();
    let message = |result: Result<Topology, TopologyError>| result.unwrap_err().to_string();
    let refused = message(found(16, ledger(Replicas::Three), shards(2, 0)));
    assert!(
        refused.ends_with("shards is 2, must be at least the number of replicas, 3"),
        "{refused}"
    );
    let refused = message(found(16, ledger(Replicas::Five), shards(6, 4)));
    assert!(
        refused.ends_with("zones is 4, must be at least the number of replicas, 5"),
        "{refused}"
    );

    let begin = |remove: &[usize]| {
        let change = Change {
            remove: remove.iter().map(|&index| shard_id(index)).collect(),
            ..Change::default()
        };
        replicated(16, Replicas::Three, 6, 3)
            .begin(change, UNIX)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        begin(&[0, 1, 2, 3]),
        "shards is 2, must be at least the number of replicas, 3"
    );
    assert_eq!(
        begin(&[0, 3]),
        "zones is 2, must be at least the number of replicas, 3"
    );
    let refused = topology(16, &[1, 1]).begin_declaration(&namespace("ledger"), Replicas::Three);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "namespace ledger: shards is 2, must be at least the number of replicas, 3"
    );
}

/// The record with `name` declared.
fn declared(topology: &Topology, name: &str, replicas: Replicas) -> Topology {
    let begun = topology.begin_declaration(&namespace(name), replicas);
    let begun = begun.unwrap().unwrap();
    let finished = begun.finish_declaration(begun.declared, UNIX);
    finished.unwrap().unwrap()
}

/// Processes with the record refuse the locks of the namespace, and shards those with a record of before.
#[test]
fn a_namespace_that_is_being_declared_has_no_replicas_yet() {
    let before = topology(64, &[1, 1, 1]);
    let ledger = namespace("ledger");
    let begun = before.begin_declaration(&ledger, Replicas::Three);
    let begun = begun.unwrap().unwrap();
    assert_eq!(begun.declaring.replicas(&ledger), Replicas::Three);
    assert!(begun.namespaces.is_empty() && begun.openings.is_empty());
    assert_eq!(begun.table, before.table);
    let declared = MapVersion(begun.version);
    assert_eq!(begun.declared, declared);
    for (ShardName(id), entry) in &begun.shards {
        assert_eq!(entry.changed, declared);
        assert_eq!(begun.arm(id, Grace::None).declared, declared);
    }

    let undone = begun.undo_declaration().unwrap();
    assert!(undone.declaring.is_empty() && undone.namespaces.is_empty());
    assert_eq!(undone.declared, declared);
    assert_eq!(undone.undo_declaration(), None);
    assert_eq!(undone.finish_declaration(declared, UNIX).unwrap(), None);

    let finished = begun.finish_declaration(declared, UNIX).unwrap().unwrap();
    assert_eq!(finished.namespaces.replicas(&ledger), Replicas::Three);
    assert!(finished.declaring.is_empty());
    assert_eq!(finished.declared, declared);
}

#[test]
fn a_declaration_is_finished_only_if_no_slot_has_moved_since() {
    let before = topology(64, &[1, 1, 1]);
    let ledger = namespace("ledger");
    let begun = before.begin_declaration(&ledger, Replicas::Three);
    let begun = begun.unwrap().unwrap();
    let moved = begun.begin(adding(3, 1), UNIX).unwrap();
    let moved = to_the_end(moved).unwrap();
    let refused = moved.finish_declaration(begun.declared, UNIX).unwrap_err();
    assert!(matches!(refused, DeclareError::UnderWay(_)) && refused.is_retryable());

    // Begun again, it has to be finished as such.
    let again = moved.begin_declaration(&ledger, Replicas::Three);
    let again = again.unwrap().unwrap();
    assert!(again.declared > begun.declared);
    let refused = again.finish_declaration(begun.declared, UNIX).unwrap_err();
    assert!(matches!(refused, DeclareError::UnderWay(_)));
    again
        .finish_declaration(again.declared, UNIX)
        .unwrap()
        .unwrap();

    let refused = begun.begin_declaration(&namespace("coins"), Replicas::Three);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "namespace ledger is being declared with 3 replicas: finish that, then declare namespace coins"
    );
}

#[test]
fn a_declaration_changes_every_map_and_moves_nothing() {
    let before = topology(64, &[1, 1, 1, 2]);
    let after = declared(&before, "ledger", Replicas::Three);
    check_ranks(&after).unwrap();
    assert_eq!(
        after.namespaces.replicas(&namespace("ledger")),
        Replicas::Three
    );
    assert_eq!(
        after.namespaces.replicas(&namespace("coins")),
        Replicas::One
    );
    assert!(
        after
            .shards
            .values()
            .all(|entry| entry.changed == MapVersion(after.version))
    );
    for slot in before.table.all_slots() {
        assert_eq!(owner(&before, slot), owner(&after, slot));
    }
    // A number of replicas that there is already: no rank is new, and every map changes all the same.
    let again = to_the_end(after).unwrap();
    let again = declared(&again, "coins", Replicas::Three);
    assert!(again.openings.is_empty());
    assert!(
        again
            .shards
            .values()
            .all(|entry| entry.changed == MapVersion(again.version))
    );
}

#[test]
fn slots_of_new_ranks_are_opened_once_without_a_recovery_period() {
    let before = topology(64, &[1, 1, 1, 1]);
    let declared = declared(&before, "ledger", Replicas::Three);
    let mut opened = BTreeMap::new();
    for id in declared.table.shards() {
        assert!(declared.force_opens(id).is_empty());
        assert_eq!(declared.forced_grace(id), None);
        let [step] = &declared.first_opens(id)[..] else {
            panic!("one for {id}")
        };
        assert_eq!((step.mode, step.epoch), (Mode::Open, declared.last_epoch));
        assert!(step.above.epoch() == step.epoch && step.epoch > before.last_epoch);
        let arm = declared.arm(id, Grace::None);
        for slot in &step.slots {
            assert_eq!(owner(&declared, *slot), id);
            let state = arm.slots.get(*slot);
            assert_eq!((state.mode, state.epoch), (Mode::Open, step.epoch));
            assert_eq!(opened.insert(*slot, id.clone()), None);
        }
    }
    let new: Vec<_> = declared.table.all_slots().skip(64).collect();
    assert!(opened.into_keys().eq(new));
    // They move no further before they are open.
    let begun = Topology {
        openings: Vec::new(),
        ..declared.clone()
    };
    let begun = begun.begin(adding(4, 1), UNIX).unwrap();
    let begun = Topology {
        openings: declared.openings.clone(),
        ..begun
    };
    let turned = begun.turn(&round(&begun, None, 1000), UNIX).unwrap();
    let moving = turned.iter().flat_map(|turned| &turned.migrations);
    assert_eq!(moving.count(), 0, "both other ranks of each slot wait");
}

#[test]
fn invalid_declarations_are_refused_with_the_reason() {
    let before = replicated(16, Replicas::Three, 5, 0);
    let declare = |topology: &Topology, name: &str, replicas| {
        topology.begin_declaration(&namespace(name), replicas)
    };
    assert_eq!(declare(&before, "ledger", Replicas::Three).unwrap(), None);
    let refused = declare(&before, "ledger", Replicas::Five).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "namespace ledger has 3 replicas, for good; asked for 5"
    );
    let begun = before.begin(adding(5, 1), UNIX).unwrap();
    let refused = declare(&begun, "coins", Replicas::Three).unwrap_err();
    assert!(matches!(refused, DeclareError::UnderWay(_)) && refused.is_retryable());

    let mut full = before.clone();
    for nth in 1..NAMESPACES_MAX {
        full = declared(&full, &format!("n{nth}"), Replicas::One);
    }
    let refused = declare(&full, "coins", Replicas::One).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "namespaces is 257, must be at most 256"
    );
    let text = before.encode().replace("\"ledger\":3", "\"ledger\":2");
    let refused = Topology::decode(&text).unwrap_err();
    assert!(
        refused.contains("replicas is 2, must be 1, 3 or 5"),
        "{refused}"
    );
}

#[test]
fn a_record_without_replicas_and_zones_names_none() {
    let text = topology(16, &[1, 1]).encode();
    assert!(
        !text.contains("namespaces") && !text.contains("zone"),
        "{text}"
    );
}

/// Slots above 65,535 need five hex digits.
#[test]
fn slots_of_the_last_rank_of_a_great_ring_are_written_and_read() {
    let mut before = replicated(65_536, Replicas::Five, 5, 0);
    let last = before.table.all_slots().next_back().unwrap();
    before.openings = before.first_openings(last.index());
    assert_eq!(before.openings[0].slots, [last]);
    assert_eq!(Topology::decode(&before.encode()).unwrap(), before);
}
