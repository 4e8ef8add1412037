//! Weighted rendezvous: the order in which a slot prefers the shards.
//!
//! `cost = -log2(u) / w` with `u` in (0, 1) from the hash of slot and shard; the least cost is
//! first. A shard is first with probability `w / W`. A shard that comes or goes does not change the
//! order of the others (Schindelhauer and Schomaker, "Weighted Distributed Hash Tables", 2005).

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{Membership, Slot};

/// Seed of every shard's hash: `SHARDSLO` in ASCII. Never changes.
const SHARD_SEED: u64 = 0x5348_4152_4453_4c4f;

/// Bits after the point of [`log2`].
const FRACTION_BITS: u32 = 32;

/// Bits added before the division by the weight, so that it makes no two costs equal. They fit:
/// 7 + 32 + 24 < 64.
const DIVISION_BITS: u32 = 24;

/// The preferences of every slot among the shards of one membership.
pub(crate) struct Rendezvous {
    /// Hash and weight of each shard, in the order of the membership.
    shards: Vec<(u64, u64)>,
}

impl Rendezvous {
    pub(crate) fn new(membership: &Membership) -> Self {
        let seeds = membership
            .shards()
            .iter()
            .map(|id| xxh3_64_with_seed(id.as_str().as_bytes(), SHARD_SEED));
        let weights = membership
            .weights()
            .iter()
            .map(|weight| u64::from(weight.get()));
        Self {
            shards: seeds.zip(weights).collect(),
        }
    }

    /// The shard among those at `indices` that `slot` prefers, by its cost. The lesser id wins a
    /// tie.
    pub(crate) fn first(
        &self,
        slot: Slot,
        indices: impl Iterator<Item = usize>,
    ) -> Option<(u64, usize)> {
        indices.map(|index| (self.cost(slot, index), index)).min()
    }

    /// The cost of the shard at `index` for `slot`.
    pub(crate) fn cost(&self, slot: Slot, index: usize) -> u64 {
        let (seed, weight) = self.shards[index];
        let hash = xxh3_64_with_seed(&(slot.index() as u64).to_le_bytes(), seed);
        let minus_log2 = (64 << FRACTION_BITS) - log2(hash.max(1));
        (minus_log2 << DIVISION_BITS) / weight
    }
}

/// Binary logarithm of `x >= 1` in units of 2^-32: linear between 257 exact values, so never
/// falling and at most 3e-6 too small. In integers only, because the floating-point logarithms of
/// two platforms may differ in the last bit.
fn log2(x: u64) -> u64 {
    let shift = x.leading_zeros();
    let mantissa = x << shift;
    let index = (mantissa >> 55) as usize & 0xff;
    let between = (mantissa << 9) >> 32; // in units of 2^-32 of the way to the next
    let (low, high) = (LOG2_OF_MANTISSA[index], LOG2_OF_MANTISSA[index + 1]);
    (u64::from(63 - shift) << FRACTION_BITS) + low + (((high - low) * between) >> 32)
}

/// `log2(1 + n / 256)` at index `n`, in units of 2^-32.
const LOG2_OF_MANTISSA: [u64; 257] = {
    let mut logs = [0; 257];
    let mut n = 0;
    while n < logs.len() {
        logs[n] = log2_bit_by_bit(256 + n as u64) - (8 << FRACTION_BITS);
        n += 1;
    }
    logs
};

/// Squares the mantissa once per bit (Turner, "A Fast Binary Logarithm Algorithm", 2010).
const fn log2_bit_by_bit(x: u64) -> u64 {
    let shift = x.leading_zeros();
    let mut mantissa = x << shift; // in units of 2^-63: 1 to 2
    let mut log = 63 - shift as u64;
    let mut bits = 0;
    while bits < FRACTION_BITS {
        let square = (mantissa as u128 * mantissa as u128) >> 63;
        let bit = (square >> 64) as u64;
        mantissa = (square >> bit) as u64;
        log = (log << 1) | bit;
        bits += 1;
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_right_to_five_digits() {
        let one = (1_u64 << FRACTION_BITS) as f64;
        let powers = (0..64).map(|shift| 1 << shift);
        let others = (1..1000_u64).map(|nth| nth.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for x in powers.chain(others).chain([3, u64::MAX]) {
            let short = (x as f64).log2() - log2(x) as f64 / one;
            assert!(
                (-1e-9..3e-6).contains(&short),
                "log2({x}) is short by {short}"
            );
        }
    }

    #[test]
    fn the_logarithm_of_a_power_of_two_is_exact() {
        assert!((0..64).all(|shift| log2(1 << shift) == shift << FRACTION_BITS));
    }
}
