//! The classic consistent-hash ring (Karger et al., 1997): `V` pseudo-random points per shard.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::limits::{POINTS_MAX, POINTS_PER_SHARD_MAX};
use crate::{Membership, Replicas, RingError, ShardId};

/// Owner of each slot, as an index into the sorted shards: the shard of the first point at or
/// after the slot's start, round the circle. A shard of weight `w` has `points_per_shard * w`.
pub(crate) fn owners(
    membership: &Membership,
    points_per_shard: u32,
    seed: u64,
) -> Result<Vec<u16>, RingError> {
    check(membership, points_per_shard)?;
    let members = membership
        .shards()
        .iter()
        .zip(membership.weights())
        .enumerate();
    let mut points: Vec<(u64, u16)> = members
        .flat_map(|(index, (id, weight))| {
            let count = points_per_shard * weight.get();
            (0..count).map(move |nth| (point(id, nth, seed), index as u16))
        })
        .collect();
    points.sort_unstable();

    let slots = membership.slots();
    let owner = |start: u64| {
        let next = points.partition_point(|&(position, _)| position < start);
        points[next % points.len()].1
    };
    Ok(slots.iter().map(|slot| owner(slots.start(slot))).collect())
}

/// Refuses replicas, zero points, and more points than fit in memory.
pub(crate) fn check(membership: &Membership, points_per_shard: u32) -> Result<(), RingError> {
    let replicas = membership.replicas();
    if replicas != Replicas::One {
        return Err(RingError::ReplicasOnClassicRing { replicas });
    }
    let max = POINTS_PER_SHARD_MAX.into();
    RingError::check("points_per_shard", points_per_shard.into(), 1, max)?;
    let weights: u64 = membership
        .weights()
        .iter()
        .map(|weight| u64::from(weight.get()))
        .sum();
    RingError::check(
        "points of all shards",
        weights * u64::from(points_per_shard),
        1,
        POINTS_MAX,
    )
}

/// Position on the circle of the `nth` point of `id`.
fn point(id: &ShardId, nth: u32, seed: u64) -> u64 {
    let shard = xxh3_64_with_seed(id.as_str().as_bytes(), seed);
    xxh3_64_with_seed(&nth.to_le_bytes(), shard)
}
