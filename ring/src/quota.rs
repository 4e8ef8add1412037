//! The number of slots due to each shard: Webster's method (Sainte-Laguë), at least one per shard.
//!
//! Every shard *claims* slots: its `k`-th with strength `w / (2k - 1)`, its first above all
//! others. The `S` strongest claims are granted; that is `w / d` rounded to nearest for the one
//! divisor `d` that gives `S` in all.
//!
//! Largest remainders do not work here: if another shard comes, goes or changes weight, two shards
//! that stay the same may exchange slots (the population paradox). Every method that always rounds
//! the exact share `S·w/W` up or down has this problem (Balinski and Young, "Fair Representation",
//! 1982). With Webster's method only `d` changes for the shards that stay, so either all of them
//! gain or all lose. Trade-off: quota and exact share differ by at most `(1 + w/mean w) / 2`, not
//! by 1, while every shard is due half a slot or more. With equal weights the quota is the share
//! rounded up or down.

use std::cmp::{Ordering, Reverse};

use crate::{Membership, Weight};

/// Slots due to each shard, in the order of `membership.shards()`. They add up to `S`.
///
/// Among equally strong claims, a claim to a slot that the shard already has is granted first, so
/// that no other quotas by this method need fewer moves from `held`; then the lesser id's claim.
pub(crate) fn quotas(membership: &Membership, held: &[u32]) -> Vec<u32> {
    let slots = membership.slots().get();
    let mut quotas = rounded_shares(membership);
    let claim = |shard: usize, nth: u32| Claim {
        weight: membership.weights()[shard],
        nth,
        kept: nth <= held[shard],
        shard: Reverse(shard),
    };
    loop {
        let shards = 0..quotas.len();
        match quotas.iter().sum::<u32>().cmp(&slots) {
            Ordering::Equal => return quotas,
            Ordering::Less => {
                let strongest = shards.max_by_key(|&shard| claim(shard, quotas[shard] + 1));
                quotas[strongest.expect("a membership is never empty")] += 1;
            }
            Ordering::Greater => {
                let above_one = shards.filter(|&shard| quotas[shard] > 1);
                let weakest = above_one.min_by_key(|&shard| claim(shard, quotas[shard]));
                quotas[weakest.expect("shards are at most as many as slots")] -= 1;
            }
        }
    }
}

/// Slots of all ranks due to each shard, in the order of `membership.shards()`. They add up to `R·S`.
///
/// A zone has one rank of a slot at most, so it is due `S` slots at most: zones that would be due
/// more get `S`, and the others share the rest. Each shard is due at least its slots of rank 0,
/// `first`, of which each zone has `S` at most. `held` are its slots of all ranks now.
pub(crate) fn quotas_of_all_ranks(
    membership: &Membership,
    first: &[u32],
    held: &[u32],
) -> Vec<u32> {
    let slots = membership.slots().get();
    let fates = membership.fates();
    let shares = capped_shares(membership, &fates);
    let mut quotas: Vec<_> = shares
        .iter()
        .zip(first)
        .map(|(&due, &first)| due.max(first))
        .collect();
    let claim = |shard: usize, nth: u32| Claim {
        weight: membership.weights()[shard],
        nth,
        kept: nth <= held[shard],
        shard: Reverse(shard),
    };
    let mut of_zone = vec![0; membership.fate_count()];
    for (&fate, quota) in fates.iter().zip(&quotas) {
        of_zone[fate] += quota;
    }
    let all = membership.all_slots().len() as u32;
    loop {
        let total: u32 = of_zone.iter().sum();
        let full = of_zone.iter().position(|&quota| quota > slots);
        let shards = 0..quotas.len();
        let (shard, up) = match (full, total.cmp(&all)) {
            (None, Ordering::Equal) => return quotas,
            (None, Ordering::Less) => {
                let open = shards.filter(|&shard| of_zone[fates[shard]] < slots);
                (
                    open.max_by_key(|&shard| claim(shard, quotas[shard] + 1)),
                    true,
                )
            }
            (full, _) => {
                let above = shards.filter(|&shard| quotas[shard] > first[shard]);
                let above = above.filter(|&shard| full.is_none_or(|full| fates[shard] == full));
                (
                    above.min_by_key(|&shard| claim(shard, quotas[shard])),
                    false,
                )
            }
        };
        let shard = shard.expect("zones are at least as many as replicas, and rank 0 fits each");
        match up {
            true => {
                (quotas[shard], of_zone[fates[shard]]) =
                    (quotas[shard] + 1, of_zone[fates[shard]] + 1)
            }
            false => {
                (quotas[shard], of_zone[fates[shard]]) =
                    (quotas[shard] - 1, of_zone[fates[shard]] - 1)
            }
        }
    }
}

/// The shares of `R·S` slots, rounded half up, if no zone gets more than `S`.
fn capped_shares(membership: &Membership, fates: &[usize]) -> Vec<u32> {
    let slots = u64::from(membership.slots().get());
    let weight = |shard: usize| u64::from(membership.weights()[shard].get());
    let mut of_zone = vec![0; membership.fate_count()];
    for (shard, &fate) in fates.iter().enumerate() {
        of_zone[fate] += weight(shard);
    }
    let mut capped = vec![false; of_zone.len()];
    let (mut left, mut weights) = (
        membership.all_slots().len() as u64,
        of_zone.iter().sum::<u64>(),
    );
    while let Some(zone) =
        (0..of_zone.len()).find(|&zone| !capped[zone] && of_zone[zone] * left > slots * weights)
    {
        capped[zone] = true;
        left -= slots;
        weights -= of_zone[zone];
    }
    let share = |shard: usize| {
        let zone = fates[shard];
        let (due, among) = match capped[zone] {
            true => (slots, of_zone[zone]),
            false => (left, weights),
        };
        ((2 * due * weight(shard) + among) / (2 * among)) as u32
    };
    (0..fates.len()).map(share).collect()
}

/// Exact shares `S·w/W` rounded half up, at least 1: these are all claims above some strength, and
/// in total off by at most one slot per shard.
fn rounded_shares(membership: &Membership) -> Vec<u32> {
    let slots = u64::from(membership.slots().get());
    let weights = membership
        .weights()
        .iter()
        .map(|weight| u64::from(weight.get()));
    let total: u64 = weights.clone().sum();
    weights
        .map(|weight| ((2 * slots * weight + total) / (2 * total)).max(1) as u32)
        .collect()
}

/// A shard's claim to its `nth` slot, `nth` at least 2; greater is stronger.
struct Claim {
    weight: Weight,
    nth: u32,
    /// Whether the shard already has that many slots.
    kept: bool,
    shard: Reverse<usize>,
}

impl Ord for Claim {
    fn cmp(&self, other: &Self) -> Ordering {
        // a / b < c / d  as  a * d < c * b: exact, and below 2^31.
        let strength =
            |of: &Self, divisor: u32| u64::from(of.weight.get()) * u64::from(2 * divisor - 1);
        strength(self, other.nth)
            .cmp(&strength(other, self.nth))
            .then(self.kept.cmp(&other.kept))
            .then(self.shard.cmp(&other.shard))
    }
}

impl PartialOrd for Claim {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Claim {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Claim {}
