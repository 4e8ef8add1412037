//! Each refusal names the field, the value and the limit.

use ringfence_ring::{Membership, Replicas, RingError, ShardId, SlotCount, Weight, Zone};

use super::{alike, id, table};

fn members(names: &[&str]) -> Vec<(ShardId, Weight)> {
    names.iter().map(|name| (id(name), Weight::ONE)).collect()
}

fn message<T: std::fmt::Debug>(result: Result<T, RingError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn messages_name_the_field_the_value_and_the_limit() {
    let two = SlotCount::new(2).unwrap();
    let table = table(&alike(8, 3));
    let one_zone = |_: &ShardId| Some(Zone::new("eu").unwrap());
    for (actual, expected) in [
        (message(Weight::new(0)), "weight is 0, must be 1 to 10000"),
        (
            message(Weight::new(10_001)),
            "weight is 10001, must be 1 to 10000",
        ),
        (message(SlotCount::new(0)), "slots is 0, must be 2 to 65536"),
        (
            message(SlotCount::new(65_537)),
            "slots is 65537, must be 2 to 65536",
        ),
        (
            message(SlotCount::new(1000)),
            "slots is 1000, must be a power of two",
        ),
        (message(two.slot(2)), "slot is 2, must be 0 to 1"),
        (
            message(Membership::new(two, [])),
            "shards is 0, must be 1 to 1024",
        ),
        (
            message(Membership::new(two, members(&["b", "a", "b"]))),
            "shards is 3, must be at most the number of slots, 2",
        ),
        (
            message(Membership::new(two, members(&["b", "b"]))),
            "shard id \"b\" is given twice, must be unique",
        ),
        (
            message(Replicas::new(2)),
            "replicas is 2, must be 1, 3 or 5",
        ),
        (
            message(Zone::new("Eu")),
            "zone \"Eu\" must be 1 to 32 of a-z, 0-9, '-' and '_', a letter first",
        ),
        (
            message(table.replicated(Replicas::Five)),
            "shards is 3, must be at least the number of replicas, 5",
        ),
        (
            message(alike(8, 3).replicated(Replicas::Three, one_zone)),
            "zones is 1, must be at least the number of replicas, 3",
        ),
    ] {
        assert_eq!(actual, expected);
    }
}

#[test]
fn changes_of_a_table_are_refused_in_words() {
    let table = table(&alike(8, 3));
    let slot = table.slots().slot(0).unwrap();
    let replicated = table.replicated(Replicas::Three).unwrap();
    for (actual, expected) in [
        (
            message(table.plan(&alike(16, 3))),
            "slots is 16 in the target, must be 8 as in the table",
        ),
        (
            message(table.among(&alike(16, 3))),
            "slots is 16 in the target, must be 8 as in the table",
        ),
        (
            message(table.among(&alike(8, 2))),
            "shard \"s2\" owns 2 slots, must be a member until it owns none",
        ),
        (
            message(table.clone().give(slot, &id("z"))),
            "shard \"z\" is not a member",
        ),
        (
            message(table.plan(replicated.membership())),
            "replicas is 3 in the target, must be 1 as in the table",
        ),
        (
            message(replicated.replicated(Replicas::One)),
            "replicas is 1 in the target, must be 3 as in the table",
        ),
    ] {
        assert_eq!(actual, expected);
    }
}

#[test]
fn the_greatest_slot_count_and_the_greatest_membership_work() {
    let slots = SlotCount::new(65_536).unwrap();
    assert_eq!(slots.slot_of(u64::MAX).index(), 65_535);
    assert_eq!(SlotCount::new(2).unwrap().slot_of(u64::MAX).index(), 1);
    assert_eq!(slots.iter().len(), 65_536);
    assert_eq!(table(&alike(1024, 1024)).quotas(), [1; 1024]);
    let names: Vec<_> = (0..1025)
        .map(|nth| (id(&format!("s{nth}")), Weight::ONE))
        .collect();
    assert_eq!(
        message(Membership::new(slots, names)),
        "shards is 1025, must be 1 to 1024"
    );
}
