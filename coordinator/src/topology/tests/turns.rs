//! Rounds in any order, cut short anywhere: few moves, one per slot at a time, until the end.

use hashbrown::HashSet;
use proptest::{prelude::*, sample::Index};
use ringfence_ring::Slot;

use super::{UNIX, adding, name, removing, topology, weighing};
use crate::{
    ids::{Epoch, MapVersion},
    topology::{Change, Round, Topology, found::shard_id, migration::moves_of},
};

/// A change of a record.
#[derive(Clone, Debug)]
enum Deed {
    /// A round that lists and finishes some of the moves under way.
    Turn { listed: Index, finished: Vec<Index> },
    /// An abort.
    Abort,
}

fn deed() -> impl Strategy<Value = Deed> {
    let finished = prop::collection::vec(any::<Index>(), 0..12);
    let turn = (any::<Index>(), finished);
    prop_oneof![
        9 => turn.prop_map(|(listed, finished)| Deed::Turn { listed, finished }),
        1 => Just(Deed::Abort),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (4..6_usize, 1..4_u32).prop_map(|(index, weight)| adding(index, weight)),
        (0..4_usize).prop_map(removing),
        (0..4_usize, 5..9_u32).prop_map(|(index, weight)| weighing(index, weight)),
    ]
}

/// The round that `listed` and `finished` select, with at most `slots_in_flight` slots.
fn round(topology: &Topology, listed: &Index, finished: &[Index], slots_in_flight: usize) -> Round {
    let migrations = &topology.migrations;
    let moving: Vec<(Epoch, Slot)> = migrations
        .iter()
        .flat_map(|migration| migration.slots.iter().map(|&slot| (migration.epoch, slot)))
        .collect();
    let picked = finished.iter().filter(|_| !moving.is_empty());
    let listed = (!migrations.is_empty()).then(|| migrations[listed.index(migrations.len())].id());
    Round {
        listed: listed.into_iter().collect(),
        finished: picked
            .map(|index| moving[index.index(moving.len())])
            .map(|(epoch, slot)| (epoch, vec![slot]))
            .collect(),
        slots_in_flight,
    }
}

/// The round that finishes everything.
fn all_of(topology: &Topology, slots_in_flight: usize) -> Round {
    let migrations = topology.migrations.iter();
    Round {
        finished: migrations
            .map(|migration| (migration.epoch, migration.slots.clone()))
            .collect(),
        slots_in_flight,
        ..Round::default()
    }
}

fn in_flight(topology: &Topology) -> usize {
    topology
        .migrations
        .iter()
        .map(|migration| migration.slots.len())
        .sum()
}

/// The owner of each slot, and its move, if it is migrating.
fn places(topology: &Topology) -> Vec<(String, Option<Epoch>)> {
    let place = |slot: Slot| {
        let moves = topology.migration_of(slot).map(|migration| migration.epoch);
        (topology.table.owner(slot).to_string(), moves)
    };
    topology.table.slots().iter().map(place).collect()
}

/// The number of slots with another owner than before.
fn moved(before: &Topology, after: &Topology) -> usize {
    let slots = before.table.slots().iter();
    slots
        .filter(|&slot| before.table.owner(slot) != after.table.owner(slot))
        .count()
}

/// The properties that hold between a record and the next, after any change.
fn check_step(before: &Topology, after: &Topology, max: usize) -> Result<(), TestCaseError> {
    prop_assert_eq!(after.version, before.version + 1);
    prop_assert_eq!(after.incarnation, before.incarnation);
    prop_assert!(after.last_epoch >= before.last_epoch);
    prop_assert!(in_flight(after) <= max);
    let decoded = Topology::decode(&after.encode());
    prop_assert_eq!(decoded.as_ref(), Ok(after), "it fits its table");
    let mut seen = HashSet::new();
    for migration in &after.migrations {
        prop_assert!(migration.from != migration.to && !migration.slots.is_empty());
        prop_assert!(
            migration.slots.iter().all(|&slot| seen.insert(slot)),
            "by two moves at a time"
        );
        let same = before
            .migrations
            .iter()
            .find(|one| one.id() == migration.id());
        prop_assert!(same.is_some() || migration.epoch > before.last_epoch);
    }
    // The owner at rest, before or after, if it changed: both must learn of it.
    let rest = |(owner, moves): &(String, Option<Epoch>)| moves.is_none().then(|| owner.clone());
    let differ = places(before).into_iter().zip(places(after));
    let differ: HashSet<String> = differ
        .map(|(was, is)| (rest(&was), rest(&is)))
        .filter(|(was, is)| was != is)
        .flat_map(|(was, is)| [was, is])
        .flatten()
        .collect();
    for (name, entry) in &after.shards {
        let had = before.shard(&name.0).map(|entry| entry.changed);
        let expected = match differ.contains(name.0.as_str()) {
            true => Some(MapVersion(after.version)),
            false => had,
        };
        prop_assert_eq!(Some(entry.changed), expected, "{}", name.0);
    }
    Ok(())
}

/// Rounds that finish everything, until nothing is left. Returns the last record and the number of
/// slots moved.
fn to_the_end(mut topology: Topology, max: usize) -> Result<(Topology, usize), TestCaseError> {
    let mut slots = 0;
    for _ in 0..1000 {
        let round = all_of(&topology, max);
        let Some(next) = topology.turn(&round, UNIX).unwrap() else {
            prop_assert!(topology.goal.is_none() && topology.migrations.is_empty());
            return Ok((topology, slots));
        };
        check_step(&topology, &next, max)?;
        slots += moved(&topology, &next);
        topology = next;
    }
    Err(TestCaseError::fail("never at an end"))
}

proptest! {
    #[test]
    fn a_resize_moves_the_optimum_never_more_at_a_time_than_it_may_and_ends(
        weights in prop::collection::vec(1..4_u32, 4),
        change in change(),
        max in 1..40_usize,
        deeds in prop::collection::vec(deed(), 0..30),
    ) {
        let begun = topology(64, &weights).begin(change, UNIX).unwrap();
        let preview = begun.preview().unwrap();
        let (mut current, mut slots, mut aborted) = (begun.clone(), 0, false);
        for deed in deeds {
            let next = match deed {
                Deed::Turn { listed, finished } => {
                    let round = round(&current, &listed, &finished, max);
                    current.turn(&round, UNIX).unwrap()
                }
                Deed::Abort => current.abort(UNIX).ok(),
            };
            let Some(next) = next else { continue };
            aborted |= next.goal != current.goal && next.goal.is_some();
            check_step(&current, &next, max)?;
            slots += moved(&current, &next);
            current = next;
        }
        let goal = current.goal.clone();
        let (end, left) = to_the_end(current, max)?;
        if let Some(goal) = goal {
            prop_assert_eq!(end.weights(), goal.after);
        }
        prop_assert!(end.shards.keys().all(|name| end.table.membership().index_of(&name.0).is_some()));
        prop_assert_eq!(end.shards.len(), end.table.shards().len());
        let plan = end.table.plan(end.table.membership()).unwrap();
        prop_assert!(plan.moves().is_empty(), "the quotas are those of the weights");
        if !aborted {
            prop_assert_eq!(slots + left, preview.slots_to_move() as usize);
        }
    }

    /// Aborted before any slot arrived: every slot is where it was.
    #[test]
    fn an_abort_at_once_moves_nothing(weights in prop::collection::vec(1..4_u32, 4), change in change()) {
        let before = topology(64, &weights);
        let first = before.begin(change, UNIX).unwrap();
        let first = first.turn(&all_of(&first, 16), UNIX).unwrap().unwrap();
        let (end, _) = to_the_end(first.abort(UNIX).unwrap(), 16)?;
        prop_assert_eq!(end.table, before.table);
        prop_assert!(end.shards.keys().eq(before.shards.keys()));
    }
}

#[test]
fn a_batch_is_taken_from_all_shards_alike() {
    let begun = topology(1024, &[1, 1, 1])
        .begin(adding(3, 1), UNIX)
        .unwrap();
    let first = begun.turn(&all_of(&begun, 90), UNIX).unwrap().unwrap();
    let taken: Vec<_> = first
        .migrations
        .iter()
        .map(|migration| migration.slots.len())
        .collect();
    assert_eq!(taken, [30, 30, 30]);
    assert!(
        first
            .migrations
            .iter()
            .all(|migration| migration.to.0 == shard_id(3))
    );
}

#[test]
fn a_batch_waits_until_half_of_the_limit_may_migrate() {
    let begun = topology(1024, &[1, 1, 1])
        .begin(adding(3, 1), UNIX)
        .unwrap();
    let first = begun.turn(&all_of(&begun, 90), UNIX).unwrap().unwrap();
    let some = |count: usize| Round {
        finished: vec![(first.last_epoch, all_slots(&first)[..count].to_vec())],
        slots_in_flight: 90,
        ..Round::default()
    };
    let second = first.turn(&some(44), UNIX).unwrap().unwrap();
    assert_eq!(
        (in_flight(&second), second.last_epoch),
        (46, first.last_epoch)
    );
    let second = first.turn(&some(45), UNIX).unwrap().unwrap();
    assert_eq!(in_flight(&second), 90);
}

/// A chain of two moves: the second begins when the first is finished.
#[test]
fn a_migrating_slot_is_not_planned_again() {
    let mut begun = topology(64, &[1, 1, 1]).begin(removing(2), UNIX).unwrap();
    let slot = begun.table.slots_of(&shard_id(0)).next().unwrap();
    begun.migrations = moves_of(Epoch(5), [(name(0), name(2), vec![slot])]);
    let first = begun
        .turn(&all_of(&topology(64, &[1]), 64), UNIX)
        .unwrap()
        .unwrap();
    let of_it = first
        .migrations
        .iter()
        .filter(|migration| migration.slots.contains(&slot));
    assert_eq!(
        of_it.map(|migration| migration.epoch).collect::<Vec<_>>(),
        [Epoch(5)]
    );
    let (end, _) = to_the_end(first, 64).unwrap();
    assert_ne!(end.table.owner(slot), &shard_id(2));
}

#[test]
fn reports_of_unknown_moves_change_nothing() {
    let begun = topology(64, &[1, 1, 1]).begin(adding(3, 1), UNIX).unwrap();
    let first = begun.turn(&all_of(&begun, 8), UNIX).unwrap().unwrap();
    let aborted = first.abort(UNIX).unwrap();
    let mut late = all_of(&first, 8);
    late.listed = first
        .migrations
        .iter()
        .map(|migration| migration.id())
        .collect();
    let none = Round {
        slots_in_flight: 8,
        ..Round::default()
    };
    let turned = aborted.turn(&late, UNIX).unwrap();
    assert_eq!(turned, aborted.turn(&none, UNIX).unwrap());
    assert_eq!(turned, None);
}

fn all_slots(topology: &Topology) -> Vec<Slot> {
    let migrations = topology.migrations.iter();
    migrations
        .flat_map(|migration| migration.slots.clone())
        .collect()
}
