//! What holds for any membership, any table and any change of shards.

mod encoding;
mod errors;
mod movement;
mod oracle;
mod placement;
mod replicas;

use proptest::prelude::*;
use ringfence_ring::{Membership, ShardId, SlotCount, Table, Weight};

/// Weights by id; `BTreeMap` only to have ids once.
type Shards = std::collections::BTreeMap<String, u32>;

fn id(name: &str) -> ShardId {
    ShardId::new(name).unwrap()
}

fn membership(slots: u32, shards: &Shards) -> Membership {
    let members = shards
        .iter()
        .map(|(name, &weight)| (id(name), Weight::new(weight).unwrap()));
    Membership::new(SlotCount::new(slots).unwrap(), members).unwrap()
}

/// `count` shards of weight 1.
fn alike(slots: u32, count: usize) -> Membership {
    membership(
        slots,
        &(0..count).map(|nth| (format!("s{nth}"), 1)).collect(),
    )
}

fn table(membership: &Membership) -> Table {
    Table::bootstrap(membership)
}

/// 1 to `max` of a dozen shards, so that two draws have some in common. Weights are often equal,
/// often small, sometimes far apart.
fn shards(max: usize) -> impl Strategy<Value = Shards> {
    let weight = prop_oneof![3 => Just(1_u32), 3 => 1..=7_u32, 1 => 1..=10_000_u32];
    prop::collection::btree_map("[a-l]", weight, 1..=max)
}
