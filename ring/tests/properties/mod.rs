//! What holds for any membership, any table and any change of shards.

mod encoding;
mod errors;
mod movement;
mod oracle;
mod placement;
mod replicas;

use proptest::prelude::*;
use ringfence_ring::{Membership, Placement, ShardId, SlotCount, Table, Weight};

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
    Table::bootstrap(membership, Placement::Quota).unwrap()
}

/// 1 to `max` of a dozen shards, so that two draws have some in common. Weights are often equal,
/// often small, sometimes far apart.
fn shards(max: usize) -> impl Strategy<Value = Shards> {
    let weight = prop_oneof![3 => Just(1_u32), 3 => 1..=7_u32, 1 => 1..=10_000_u32];
    prop::collection::btree_map("[a-l]", weight, 1..=max)
}

/// Up to a dozen shards with few enough points for a classic ring.
fn light_shards() -> impl Strategy<Value = Shards> {
    let capped = |(id, weight): (String, u32)| (id, weight.min(7));
    shards(12).prop_map(move |shards| shards.into_iter().map(capped).collect())
}

fn any_placement() -> impl Strategy<Value = Placement> {
    let classic =
        (1..=20_u32, any::<u64>()).prop_map(|(points_per_shard, seed)| Placement::Classic {
            points_per_shard,
            seed,
        });
    prop_oneof![Just(Placement::Quota), classic]
}
