//! Replicas of slots: at distinct shards, in distinct zones, in balance, and few moves.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ringfence_ring::{
    Membership, Replicas, RingError, ShardId, Slot, SlotCount, Table, Weight, Zone,
};

use super::{alike, id, table};

/// Weight and zone by id.
type Members = BTreeMap<String, (u32, Option<u8>)>;

fn zone(number: u8) -> Zone {
    Zone::new(&format!("z{number}")).unwrap()
}

fn members(slots: u32, replicas: Replicas, members: &Members) -> Result<Membership, RingError> {
    let weights = members
        .iter()
        .map(|(name, &(weight, _))| (id(name), Weight::new(weight).unwrap()));
    let zone_of = |id: &ShardId| members[id.as_str()].1.map(zone);
    Membership::new(SlotCount::new(slots).unwrap(), weights)?.replicated(replicas, zone_of)
}

/// Up to a dozen shards, some of them in one of six zones.
fn any_members() -> impl Strategy<Value = Members> {
    let weight = prop_oneof![3 => Just(1_u32), 2 => 1..=4_u32];
    let zone = prop_oneof![1 => Just(None), 3 => (0..6_u8).prop_map(Some)];
    let one = || (weight.clone(), zone.clone());
    prop_oneof![
        prop::collection::btree_map("[a-l]", (weight.clone(), Just(None)), 1..=12),
        prop::collection::btree_map("[a-l]", one(), 1..=12),
    ]
}

fn any_replicas() -> impl Strategy<Value = Replicas> {
    prop_oneof![
        Just(Replicas::One),
        Just(Replicas::Three),
        Just(Replicas::Five)
    ]
}

/// The zone of a shard; a shard without one has its own.
fn fate(table: &Table, id: &ShardId) -> String {
    match table.membership().zone(id) {
        Some(zone) => format!("zone {zone}"),
        None => id.to_string(),
    }
}

fn check_apart(table: &Table) {
    for slot in table.slots().iter() {
        let fates: BTreeSet<_> = table.replicas(slot).map(|id| fate(table, id)).collect();
        let replicas = table.membership().replicas().get() as usize;
        assert_eq!(fates.len(), replicas, "slot {slot}");
    }
}

/// The owner of each slot.
fn owners(table: &Table) -> Vec<ShardId> {
    let slots = table.all_slots();
    slots.map(|slot| table.owner(slot).clone()).collect()
}

proptest! {
    #[test]
    fn replicas_lie_in_distinct_zones_or_are_refused(all in any_members(), replicas in any_replicas()) {
        let needed = replicas.get() as usize;
        let zones: BTreeSet<_> =
            all.iter().map(|(id, (_, zone))| zone.map_or(id.clone(), |zone| format!("zone {zone}"))).collect();
        match members(64, replicas, &all) {
            Ok(members) => {
                prop_assert!(zones.len() >= needed);
                let table = Table::bootstrap(&members);
                check_apart(&table);
                prop_assert_eq!(table.all_slots().len(), 64 * needed);
            }
            Err(RingError::FewerShardsThanReplicas { shards, replicas: said }) => {
                prop_assert_eq!((shards, said), (all.len(), replicas));
                prop_assert!(shards < needed);
            }
            Err(error) => {
                let expected = RingError::FewerZonesThanReplicas { zones: zones.len(), replicas };
                prop_assert_eq!(error, expected);
                prop_assert!(zones.len() < needed && all.len() >= needed);
            }
        }
    }

    /// Keys without replicas do not notice that others have some.
    #[test]
    fn rank_0_is_the_table_without_replicas(all in any_members(), replicas in any_replicas()) {
        let Ok(members) = members(64, replicas, &all) else { return Ok(()) };
        let replicated = Table::bootstrap(&members);
        let plain = super::membership(64, &all.iter().map(|(id, (weight, _))| (id.clone(), *weight)).collect());
        let plain = table(&plain);
        prop_assert_eq!(&owners(&replicated)[..64], &owners(&plain));
    }

    #[test]
    fn more_replicas_move_nothing(all in any_members()) {
        let Ok(three) = members(64, Replicas::Three, &all) else { return Ok(()) };
        let three = Table::bootstrap(&three);
        let Ok(five) = three.replicated(Replicas::Five) else { return Ok(()) };
        check_apart(&five);
        prop_assert_eq!(&owners(&five)[..192], &owners(&three));
        prop_assert_eq!(five.replicated(Replicas::Five).unwrap(), five);
    }

    #[test]
    fn a_plan_keeps_replicas_apart_after_each_move_and_ends(
        before in any_members(),
        mut after in any_members(),
        replicas in any_replicas(),
    ) {
        // A member keeps its zone.
        for (id, (_, zone)) in &before {
            if let Some((_, its)) = after.get_mut(id) {
                *its = *zone;
            }
        }
        let Ok(first) = members(64, replicas, &before) else { return Ok(()) };
        let Ok(target) = members(64, replicas, &after) else { return Ok(()) };
        let first = Table::bootstrap(&first);
        let plan = first.plan(&target).unwrap();
        check_apart(plan.table());
        prop_assert!(plan.moves().len() >= plan.optimum());

        let mut at = owners(&first);
        for step in plan.moves() {
            prop_assert_eq!(&at[step.slot.index()], &step.from);
            at[step.slot.index()] = step.to.clone();
            let ranks = first.slots().replicas(step.slot, replicas);
            let zone = |id: &ShardId| match first.membership().zone(id).or(target.zone(id)) {
                Some(zone) => format!("zone {zone}"),
                None => id.to_string(),
            };
            let distinct: BTreeSet<_> = ranks.map(|rank| zone(&at[rank.index()])).collect();
            prop_assert_eq!(distinct.len(), replicas.get() as usize, "{:?}", step);
        }
        prop_assert_eq!(at, owners(plan.table()));
        // A plan that was kept from the quotas by its own moves is continued by the next, and that ends.
        let mut table = plan.table().clone();
        let again = |table: &Table| table.plan(&target).unwrap();
        let mut plans = 0;
        while !again(&table).moves().is_empty() {
            table = again(&table).table().clone();
            plans += 1;
            prop_assert!(plans < 64);
        }
    }

    #[test]
    fn encoding_and_decoding_agree(all in any_members(), replicas in any_replicas()) {
        let Ok(members) = members(64, replicas, &all) else { return Ok(()) };
        let table = Table::bootstrap(&members);
        prop_assert_eq!(Table::decode(&table.encode()).unwrap(), table);
    }
}

/// A change of shards, of replicas and of zones, with the numbers that it leads to.
struct Changes {
    /// Moves in all.
    moves: usize,
    /// The fewest moves, for the same numbers of slots.
    optimum: usize,
    count: usize,
    /// The greatest difference between a shard's slots and its share of them, as a part of it.
    unbalanced: f64,
}

/// Shards of equal weight join and leave, one at a time: from `least` to `most` and back.
fn changes(
    slots: u32,
    replicas: Replicas,
    zones: Option<u8>,
    least: usize,
    most: usize,
) -> Changes {
    let of = |count: usize| {
        let member = |nth: usize| {
            (
                format!("s{nth:03}"),
                (1, zones.map(|zones| (nth % usize::from(zones)) as u8)),
            )
        };
        members(slots, replicas, &(0..count).map(member).collect()).unwrap()
    };
    let mut table = Table::bootstrap(&of(least));
    let mut changes = Changes {
        moves: 0,
        optimum: 0,
        count: 0,
        unbalanced: 0.0,
    };
    for count in (least + 1..=most).chain((least..most).rev()) {
        let plan = table.plan(&of(count)).unwrap();
        changes.moves += plan.moves().len();
        changes.optimum += plan.optimum();
        changes.count += 1;
        table = plan.table().clone();
        check_apart(&table);
        // With zones of unequal sizes a shard's share is not that of all slots.
        if zones.is_none_or(|zones| count % usize::from(zones) == 0) {
            let share = f64::from(slots * replicas.get()) / count as f64;
            let off = |&quota: &u32| (f64::from(quota) - share).abs() / share;
            let worst = table.quotas().iter().map(off).fold(0.0, f64::max);
            // One slot more or less is rounding.
            changes.unbalanced = changes.unbalanced.max(worst - 1.0 / share);
        }
    }
    changes
}

#[test]
fn shards_that_join_and_leave_move_little_more_than_they_must() {
    let (mut moves, mut optimum, mut count) = (0, 0, 0);
    for slots in [256, 1024] {
        for replicas in [Replicas::Three, Replicas::Five] {
            let least = replicas.get() as usize;
            for zones in [
                None,
                Some(replicas.get() as u8),
                Some(replicas.get() as u8 + 2),
            ] {
                let least = zones.map_or(least, |zones| least.max(zones.into()));
                let changes = changes(slots, replicas, zones, least, 46);
                println!(
                    "S {slots}, R {replicas}, zones {zones:?}: {} changes, {:.2} % more moves, {:.2} % off balance",
                    changes.count,
                    100.0 * (changes.moves as f64 / changes.optimum as f64 - 1.0),
                    100.0 * changes.unbalanced,
                );
                assert!(
                    changes.unbalanced < 0.02,
                    "{replicas} {zones:?}: {}",
                    changes.unbalanced
                );
                moves += changes.moves;
                optimum += changes.optimum;
                count += changes.count;
            }
        }
    }
    let over = moves as f64 / optimum as f64 - 1.0;
    println!(
        "{count} changes: {moves} moves, {optimum} at least: {:.2} % more",
        100.0 * over
    );
    assert!((0.0..0.02).contains(&over), "{over}");
}

#[test]
fn slots_have_ranks() {
    let slots = SlotCount::new(16).unwrap();
    let slot = slots.slot(5).unwrap();
    let ranks: Vec<_> = slots.replicas(slot, Replicas::Five).collect();
    let index: Vec<_> = ranks.iter().map(|rank| rank.index()).collect();
    assert_eq!(index, [5, 21, 37, 53, 69]);
    for (rank, slot) in (0..).zip(&ranks) {
        assert_eq!(slots.rank(*slot), rank);
        assert!(
            slots
                .replicas(*slot, Replicas::Five)
                .eq(ranks.iter().copied())
        );
    }
    assert_eq!(slots.all(Replicas::Three).len(), 48);
    assert_eq!(Slot::new(327_679).unwrap().index(), 327_679);
    let error = Slot::new(327_680).unwrap_err().to_string();
    assert_eq!(error, "slot is 327680, must be 0 to 327679");
}

#[test]
fn two_replicas_at_one_shard_are_refused() {
    let members = alike(8, 3).replicated(Replicas::Three, |_| None).unwrap();
    let table = Table::bootstrap(&members);
    let mut together = table.clone();
    let last = together.all_slots().next_back().unwrap();
    let first = together.slots().slot(7).unwrap();
    let shard = table.owner(first).clone();
    together.give(last, &shard).unwrap();
    let error = Table::decode(&together.encode()).unwrap_err();
    assert_eq!(
        error,
        RingError::ReplicasTogether {
            slot: 23,
            id: shard
        }
    );
}
