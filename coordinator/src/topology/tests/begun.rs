//! The begin of a resize, its turning back, and the refusals.

use ringfence_ring::{ShardId, Weight};

use super::{UNIX, adding, founder, name, owner, removing, topology, weighing};
use crate::{
    ids::{Epoch, Life, MapVersion},
    topology::{Change, Founder, ResizeError, Round, Topology, found::shard_id},
};

const ROUND: Round = Round {
    listed: Vec::new(),
    finished: Vec::new(),
    slots_in_flight: 8,
};

fn refused(topology: &Topology, change: Change) -> String {
    topology.begin(change, UNIX).unwrap_err().to_string()
}

/// A resize with slots that have arrived, migrating slots, and slots still to go.
fn under_way() -> Topology {
    let begun = topology(64, &[1, 1, 1]).begin(adding(3, 1), UNIX).unwrap();
    let first = begun.turn(&ROUND, UNIX).unwrap().unwrap();
    let finished = first.migrations.iter();
    let finished = finished.map(|migration| (migration.epoch, migration.slots[..1].to_vec()));
    let round = Round {
        finished: finished.collect(),
        ..ROUND
    };
    let second = first.turn(&round, UNIX).unwrap().unwrap();
    let round = Round {
        listed: vec![second.migrations[0].id()],
        finished: vec![(
            second.migrations[0].epoch,
            second.migrations[0].slots[..1].to_vec(),
        )],
        ..ROUND
    };
    second.turn(&round, UNIX).unwrap().unwrap()
}

#[test]
fn new_members_own_nothing_yet_and_nothing_moves() {
    let before = topology(64, &[1, 1]);
    let begun = before.begin(adding(2, 3), UNIX).unwrap();
    assert_eq!(begun.version, before.version + 1);
    assert_eq!(begun.incarnation, before.incarnation);
    let joined = begun.shard(&shard_id(2)).unwrap();
    assert_eq!(joined.address, "memory:2");
    assert_eq!(joined.life, Life::new("life-2"));
    assert_eq!(joined.epoch, begun.last_epoch);
    assert!(begun.last_epoch > before.last_epoch);
    assert_eq!(joined.changed, MapVersion(begun.version));
    assert!(begun.migrations.is_empty());
    for slot in before.table.slots().iter() {
        assert_eq!(owner(&before, slot), owner(&begun, slot));
    }
    let goal = begun.goal.as_ref().unwrap();
    assert_eq!(goal.to_string(), "a 1, b 1 → a 1, b 1, c 3");
    assert_eq!(Topology::decode(&begun.encode()).unwrap(), begun);
}

#[test]
fn members_that_leave_stay_until_they_own_nothing() {
    let begun = topology(64, &[1, 2, 1]).begin(removing(1), UNIX).unwrap();
    assert!(begun.shards.contains_key(&name(1)));
    let two = Weight::new(2).unwrap();
    assert_eq!(begun.table.membership().weight(&shard_id(1)), Some(two));
    let goal = begun.goal.unwrap();
    assert!(goal.before.contains_key(&name(1)) && !goal.after.contains_key(&name(1)));
}

#[test]
fn invalid_resizes_are_refused_with_the_reason() {
    let topology = topology(4, &[1, 1]);
    let weigh = |index, weight| weighing(index, weight);
    let taken = |index: usize, address: &str, life: &str| Change {
        add: vec![Founder {
            address: address.into(),
            life: Life::new(life),
            ..founder(index, 1)
        }],
        ..Change::default()
    };
    let all_go = Change {
        remove: vec![shard_id(0), shard_id(1)],
        ..Change::default()
    };
    let too_many = Change {
        add: (2..5).map(|index| founder(index, 1)).collect(),
        ..Change::default()
    };
    for (change, message) in [
        (removing(2), "shard c is not a member; the members are a, b"),
        (weigh(2, 2), "shard c is not a member; the members are a, b"),
        (taken(1, "new", "new"), "shard id b is taken, by memory:1"),
        (
            taken(2, "memory:1", "new"),
            "address memory:1 is taken, by shard b",
        ),
        (
            taken(2, "alias", "life-1"),
            "address alias is taken, by shard b",
        ),
        (all_go, "shards is 0, must be 1 to 1024"),
        (
            too_many,
            "shards is 5, must be at most the number of slots, 4",
        ),
        (
            Change::default(),
            "nothing changes: the members are a 1, b 1",
        ),
        (weigh(1, 1), "nothing changes: the members are a 1, b 1"),
    ] {
        assert_eq!(refused(&topology, change), message);
    }
    let twice = Change {
        add: vec![founder(2, 1), founder(2, 1)],
        ..Change::default()
    };
    assert_eq!(
        refused(&topology, twice),
        "shard id c is taken, by memory:2"
    );
    let decommissioned = topology.decommission(&shard_id(1), UNIX).unwrap();
    for change in [taken(1, "new", "new"), taken(2, "new", "life-1")] {
        assert_eq!(
            refused(&decommissioned, change),
            "shard b, memory:1, was declared dead: restart its server, and give it another id"
        );
    }
    let begun = topology.begin(weigh(0, 2), UNIX).unwrap();
    assert_eq!(
        refused(&begun, weigh(0, 3)),
        "a resize is under way already, a 1, b 1 → a 2, b 1: wait for it, or abort it"
    );
    let aborted = topology.abort(UNIX);
    assert!(
        matches!(aborted, Err(ResizeError::NoneUnderWay)),
        "{aborted:?}"
    );
}

#[test]
fn an_abort_turns_the_goal_and_every_move_under_way_with_a_fresh_epoch() {
    let topology = under_way();
    let aborted = topology.abort(UNIX).unwrap();
    assert_eq!(aborted.version, topology.version + 1);
    let (goal, turned) = (topology.goal.unwrap(), aborted.goal.as_ref().unwrap());
    assert_eq!((&goal.before, &goal.after), (&turned.after, &turned.before));
    assert!(!topology.migrations.is_empty());
    for migration in &aborted.migrations {
        assert_eq!(migration.epoch, aborted.last_epoch);
        assert!(migration.epoch > topology.last_epoch && !migration.listed);
    }
    let slots = |migrations: &[crate::topology::Migration]| {
        let slots = migrations
            .iter()
            .flat_map(|migration| migration.slots.clone());
        let mut slots: Vec<_> = slots.collect();
        slots.sort();
        slots
    };
    assert_eq!(slots(&topology.migrations), slots(&aborted.migrations));
    for slot in slots(&topology.migrations) {
        let (was, is) = (
            topology.table.owner(slot),
            aborted.migration_of(slot).unwrap(),
        );
        assert_eq!((is.from.0.as_str(), &is.to.0), ("d", was));
    }
    assert_eq!(Topology::decode(&aborted.encode()).unwrap(), aborted);
}

#[test]
fn an_abort_of_an_abort_goes_on() {
    let topology = under_way();
    let again = topology.abort(UNIX).unwrap().abort(UNIX).unwrap();
    assert_eq!(again.goal, topology.goal);
    for migration in &again.migrations {
        assert_eq!(migration.to, name(3));
        assert!(migration.epoch > topology.last_epoch);
    }
}

#[test]
fn a_shard_is_fresh_until_slots_may_have_been_granted_there() {
    let begun = topology(64, &[1, 1, 1]).begin(adding(3, 1), UNIX).unwrap();
    let d = shard_id(3);
    let is_fresh = |topology: &Topology, id: &ShardId| topology.is_fresh(id);
    assert!(is_fresh(&begun, &d) && !is_fresh(&begun, &shard_id(0)));
    let planned = begun.turn(&ROUND, UNIX).unwrap().unwrap();
    assert!(is_fresh(&planned, &d));
    let reborn = planned
        .reborn(&d, Life::new("other"), UNIX)
        .unwrap()
        .unwrap();
    assert!(
        !is_fresh(&reborn, &d),
        "it may have granted in its former life"
    );
    assert!(!is_fresh(&under_way(), &d));
    assert!(!is_fresh(&begun, &shard_id(9)));
}

#[test]
fn a_shard_in_another_life_gets_an_epoch_of_its_own() {
    let topology = under_way();
    let life = Life::new("other");
    let reborn = topology
        .reborn(&shard_id(1), life.clone(), UNIX)
        .unwrap()
        .unwrap();
    let entry = reborn.shard(&shard_id(1)).unwrap();
    assert_eq!((&entry.life, entry.epoch), (&life, reborn.last_epoch));
    assert!(reborn.last_epoch > topology.last_epoch);
    assert_eq!(reborn.version, topology.version + 1);
    assert_eq!(reborn.migrations, topology.migrations);
    assert_eq!(topology.reborn(&shard_id(9), life, UNIX).unwrap(), None);
}

#[test]
fn a_record_whose_moves_do_not_fit_its_table_is_refused() {
    let sound = under_way();
    let mut elsewhere = sound.clone();
    elsewhere.migrations[0].from = name(3);
    let mut stranger = sound.clone();
    stranger.migrations[0].to = name(9);
    let mut out_of_order = sound.clone();
    out_of_order.migrations[1].slots.reverse();
    let mut beyond = sound.clone();
    let last = ringfence_ring::Slot::new(64).unwrap();
    beyond.migrations[0].slots.push(last);
    for topology in [elsewhere, stranger, out_of_order, beyond] {
        let refused = Topology::decode(&topology.encode()).unwrap_err();
        assert!(refused.contains("does not fit the table"), "{refused}");
    }
    assert_eq!(Topology::decode(&sound.encode()).unwrap(), sound);
    assert!(sound.last_epoch > Epoch(10));
}

#[test]
fn a_preview_tells_moves_and_shares() {
    let begun = topology(64, &[1, 1]).begin(adding(2, 2), UNIX).unwrap();
    let preview = begun.preview().unwrap();
    let shares: Vec<_> = preview.shards.iter().collect();
    assert_eq!(
        shares
            .iter()
            .map(|share| (share.slots_before, share.slots_after))
            .collect::<Vec<_>>(),
        [(32, 16), (32, 16), (0, 32)]
    );
    assert_eq!(preview.slots_to_move(), 32);
    let moves: Vec<_> = preview.moves.iter().collect();
    assert_eq!(
        moves,
        [
            (&(shard_id(0), shard_id(2)), &16),
            (&(shard_id(1), shard_id(2)), &16)
        ]
    );
    let first = begun.turn(&ROUND, UNIX).unwrap().unwrap();
    assert_eq!(
        first.preview().unwrap(),
        preview,
        "migrating slots are still to move"
    );
    let at_rest = topology(64, &[1, 1]).preview().unwrap();
    assert!(at_rest.moves.is_empty());
    let leaving = topology(64, &[1, 1]).begin(removing(1), UNIX).unwrap();
    assert_eq!(leaving.preview().unwrap().shards[1].weight_after, None);
}
