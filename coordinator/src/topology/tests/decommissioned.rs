//! Shards that are gone for good.

use std::collections::BTreeSet;

use super::*;
use crate::{
    shard::{Grace, Mode},
    topology::{DecommissionError, Migration, Opening, Removal, Round},
};

fn decommission(topology: &Topology, index: usize) -> Topology {
    let decommissioned = topology.decommission(&shard_id(index), UNIX).unwrap();
    assert_eq!(
        Topology::decode(&decommissioned.encode()),
        Ok(decommissioned.clone())
    );
    assert_eq!(decommissioned.version, topology.version + 1);
    decommissioned
}

/// One round of a mover that does all its work.
fn turn(topology: &Topology, finished: Vec<(Epoch, Vec<Slot>)>) -> Option<Topology> {
    let round = Round {
        finished,
        slots_in_flight: 8,
        ..Round::default()
    };
    topology.turn(&round, UNIX).unwrap()
}

fn to_open(topology: &Topology) -> BTreeSet<Slot> {
    let slots = topology.openings.iter();
    slots.flat_map(|opening| opening.slots.clone()).collect()
}

#[test]
fn its_slots_are_the_others_by_plan_and_wait_to_be_opened() {
    let before = topology(64, &[1, 1, 2]);
    let after = decommission(&before, 2);
    assert!(after.last_epoch > before.last_epoch);
    let members: Vec<_> = after.shards.keys().cloned().collect();
    assert_eq!(members, [name(0), name(1)]);
    assert_eq!(
        [0, 1].map(|index| after.table.quota(&shard_id(index))),
        [32; 2]
    );
    for slot in before.table.slots().iter() {
        let was = owner(&before, slot);
        assert!(owner(&after, slot) == was || *was == shard_id(2));
    }
    let its: BTreeSet<_> = before.table.slots_of(&shard_id(2)).collect();
    assert_eq!(to_open(&after), its);
    for Opening {
        epoch, to, slots, ..
    } in &after.openings
    {
        assert_eq!(*epoch, after.last_epoch);
        assert!(slots.is_sorted());
        assert!(slots.iter().all(|slot| *owner(&after, *slot) == to.0));
        assert_eq!(after.shards[to].changed.0, after.version);
    }
    let [failed] = &after.failed[..] else {
        panic!("{:?}", after.failed)
    };
    assert_eq!((&failed.shard, failed.epoch), (&name(2), after.last_epoch));
    assert_eq!(failed.lives, [Life::new("life-2")]);
}

#[test]
fn slots_on_their_way_from_it_are_where_they_went_and_those_to_it_where_they_came_from() {
    let mut before = topology(64, &[1, 1, 1, 1]);
    before.last_epoch = Epoch(before.last_epoch.0 + 1);
    let moves = |from: usize, to: usize| Migration {
        epoch: before.last_epoch,
        from: name(from),
        to: name(to),
        listed: true,
        slots: before.table.slots_of(&shard_id(from)).take(3).collect(),
    };
    let [away, here, beside] = [moves(3, 1), moves(2, 3), moves(1, 2)];
    let (table, migrations) = (
        &before.table,
        vec![away.clone(), here.clone(), beside.clone()],
    );
    let mut its: BTreeSet<_> = table.slots_of(&shard_id(3)).collect();
    its.extend(here.slots.clone());
    before.migrations = migrations;
    let after = decommission(&before, 3);
    assert_eq!(
        after.migrations,
        vec![beside],
        "no business of the dead one"
    );
    assert_eq!(to_open(&after), its);
    assert!(
        away.slots
            .iter()
            .all(|slot| *owner(&after, *slot) == shard_id(1))
    );
    assert!(
        here.slots
            .iter()
            .all(|slot| *owner(&after, *slot) == shard_id(2))
    );
}

#[test]
fn a_resize_under_way_goes_on_without_it_and_moves_no_slot_before_it_is_open() {
    let begun = topology(64, &[1, 1, 1]).begin(adding(3, 1), UNIX).unwrap();
    let under_way = turn(&begun, Vec::new()).unwrap();
    assert!(!under_way.migrations.is_empty());
    let mut next = decommission(&under_way, 2);
    let waiting = to_open(&next);
    let goal = next.goal.clone().unwrap();
    assert_eq!(
        goal.before.into_keys().collect::<Vec<_>>(),
        [name(0), name(1)]
    );
    assert_eq!(
        goal.after.into_keys().collect::<Vec<_>>(),
        [name(0), name(1), name(3)]
    );

    // A mover that goes on as far as possible.
    while let Some(turned) = turn(&next, finished(&next)) {
        let moving = turned
            .migrations
            .iter()
            .flat_map(|migration| &migration.slots);
        assert!(moving.clone().all(|slot| !waiting.contains(slot)));
        next = turned;
    }
    for opening in next.openings.clone() {
        next = next.opened(&opening.to.0, opening.epoch).unwrap();
        assert_eq!(next.opened(&opening.to.0, opening.epoch), None);
    }
    while let Some(turned) = turn(&next, finished(&next)) {
        next = turned;
    }
    assert_eq!(next.goal, None);
    let quotas = [0, 1, 3].map(|index| next.table.quota(&shard_id(index)));
    assert!(
        quotas.iter().all(|quota| (21..=22).contains(quota)),
        "{quotas:?}"
    );
}

fn finished(topology: &Topology) -> Vec<(Epoch, Vec<Slot>)> {
    let migrations = topology.migrations.iter();
    migrations
        .map(|migration| (migration.epoch, migration.slots.clone()))
        .collect()
}

#[test]
fn a_shard_that_joins_or_leaves_may_be_declared_dead() {
    let coming = topology(64, &[1, 1]).begin(adding(2, 1), UNIX).unwrap();
    let coming = turn(&coming, Vec::new()).unwrap();
    let without = decommission(&coming, 2);
    assert_eq!((without.migrations.len(), without.shards.len()), (0, 2));
    assert_eq!(without.table, topology(64, &[1, 1]).table);
    // Keys of slots migrating to it may have been granted there.
    let sent: usize = coming
        .migrations
        .iter()
        .map(|migration| migration.slots.len())
        .sum();
    assert_eq!(to_open(&without).len(), sent);

    let going = topology(64, &[1, 1]).begin(removing(1), UNIX).unwrap();
    let mut gone = decommission(&turn(&going, Vec::new()).unwrap(), 1);
    assert_eq!(gone.table.quota(&shard_id(0)), 64);
    while let Some(turned) = turn(&gone, Vec::new()) {
        gone = turned;
    }
    assert_eq!(gone.goal, None);
}

#[test]
fn a_second_decommission_takes_over_the_slots_that_the_first_left_shut() {
    let once = decommission(&topology(64, &[1, 1, 1]), 2);
    let twice = decommission(&once, 1);
    let its: BTreeSet<_> = once.table.slots_of(&shard_id(1)).collect();
    let of = |epoch| {
        let openings = twice.openings.iter();
        let openings = openings.filter(move |opening| opening.epoch == epoch);
        openings
            .flat_map(|opening| opening.slots.clone())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(of(twice.last_epoch), its);
    assert!(!of(once.last_epoch).is_empty(), "those of the other heir");
    assert!(twice.openings.iter().all(|opening| opening.to == name(0)));
    assert_eq!(twice.failed.len(), 2);
}

#[test]
fn invalid_decommissions_are_refused() {
    let topology = topology(64, &[1, 1]);
    let refused =
        |topology: &Topology, index| topology.decommission(&shard_id(index), UNIX).unwrap_err();
    assert!(matches!(
        refused(&topology, 0),
        DecommissionError::KeepsRecord { .. }
    ));
    assert!(matches!(
        refused(&topology, 7),
        DecommissionError::Unknown { .. }
    ));
    let mut last = decommission(&topology, 1);
    last.home.address = "elsewhere".into();
    assert!(matches!(refused(&last, 0), DecommissionError::Last { .. }));
}

#[test]
fn a_shard_armed_meanwhile_opens_them_then_and_waits_as_long() {
    let mut after = decommission(&topology(64, &[1, 1, 1]), 2);
    after.last_epoch.0 += 5;
    let heir = after.openings[0].to.0.clone();
    let [force] = &after.force_opens(&heir)[..] else {
        panic!("one for the shard")
    };
    assert_eq!(force.slots, after.openings[0].slots);
    assert_eq!(force.epoch, after.failed[0].epoch);
    assert_eq!(force.grace_for, after.constants.grace());
    assert_eq!(
        after.arm(&heir, Grace::None).grace,
        Grace::Full(force.grace_for)
    );
    check_armed(&after, 0, (Mode::Open, force.epoch));
    let done = after.opened(&heir, force.epoch).unwrap();
    assert_eq!(done.arm(&heir, Grace::None).grace, Grace::None);
}

/// How the first heir is armed: the slots that it has in place of the dead shard are as `expected`.
fn check_armed(topology: &Topology, index: usize, expected: (Mode, Epoch)) {
    let Opening { to, slots, .. } = &topology.openings[index];
    let arm = topology.arm(&to.0, Grace::None);
    for slot in topology.table.slots().iter() {
        let state = arm.slots.get(slot);
        let expected = match slots.contains(&slot) {
            true => expected,
            false if *owner(topology, slot) == to.0 => (Mode::Open, topology.last_epoch),
            false => (Mode::Shut, topology.last_epoch),
        };
        assert_eq!((state.mode, state.epoch), expected);
    }
}

/// Until then, a process may confirm a token with any epoch that was allotted before, or get a lock at the dead shard.
#[test]
fn with_leased_removal_slots_are_opened_at_an_epoch_that_is_allotted_after_every_view_has_ended() {
    let mut topology = topology(64, &[1, 1, 1]);
    topology.constants.removal = Removal::Leased;
    let mut waiting = decommission(&topology, 2);
    let declared = waiting.last_epoch;
    assert_eq!(waiting.awaiting_views().count(), 2);
    waiting.last_epoch.0 += 5;
    let heir = waiting.openings[0].to.0.clone();
    assert!(waiting.force_opens(&heir).is_empty() && waiting.is_under_way());
    assert_eq!(waiting.arm(&heir, Grace::None).grace, Grace::None);
    check_armed(&waiting, 0, (Mode::Shut, waiting.last_epoch));

    let due = waiting.let_open(declared, UNIX).unwrap().unwrap();
    assert_eq!(Topology::decode(&due.encode()), Ok(due.clone()));
    assert_eq!(due.awaiting_views().count(), 0);
    assert_eq!(due.let_open(declared, UNIX).unwrap(), None);
    let [force] = &due.force_opens(&heir)[..] else {
        panic!("one for the shard")
    };
    assert!(force.epoch > waiting.last_epoch);
    assert_eq!(due.failed[0].epoch, declared);
    check_armed(&due, 0, (Mode::Open, force.epoch));
    let grace = due.arm(&heir, Grace::None).grace;
    assert_eq!(grace, Grace::Full(force.grace_for));
    let done = due.opened(&heir, force.epoch).unwrap();
    assert_eq!(done.openings.len(), 1, "the other heir's");
}

#[test]
fn the_dead_are_told_that_they_have_nothing() {
    let after = decommission(&topology(64, &[1, 1]), 1);
    let step = after.tell_failed(&after.failed[0]);
    assert_eq!((step.epoch, step.mode), (after.last_epoch, Mode::Shut));
    assert_eq!(step.slots.len(), 64);
}
