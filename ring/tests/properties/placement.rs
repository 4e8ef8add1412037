//! Balance, weights, order independence.

use proptest::prelude::*;
use ringfence_ring::{Membership, SlotCount, Weight};

use super::oracle::{error, sharings};
use super::{Shards, alike, id, membership, shards, table};

/// Up to a dozen shards, of weights that are near each other.
fn light_shards() -> impl Strategy<Value = Shards> {
    let capped = |(id, weight): (String, u32)| (id, weight.min(7));
    shards(12).prop_map(move |shards| shards.into_iter().map(capped).collect())
}

proptest! {
    #[test]
    fn equal_weights_give_the_share_rounded_up_or_down(log2 in 4..=10_u32, count in 1..=16_usize) {
        let slots = 1 << log2;
        let quotas = table(&alike(slots, count)).quotas();
        let share = slots / count as u32;
        prop_assert!(quotas.iter().all(|&quota| quota == share || quota == share + 1));
        // max / mean <= 1 + N / S, times S / N.
        let max = f64::from(*quotas.iter().max().unwrap());
        prop_assert!(max <= f64::from(slots) / count as f64 + 1.0);
    }

    /// Webster's quotas are the ones of least sum of `q^2 / w` (Sainte-Laguë, 1910): checked
    /// against every way of sharing 16 slots.
    #[test]
    fn quotas_are_the_nearest_to_the_weights(shards in shards(4)) {
        let membership = membership(16, &shards);
        let weights: Vec<u32> = membership.weights().iter().map(|weight| weight.get()).collect();
        let least = sharings(16, weights.len()).map(|quotas| error(&quotas, &weights)).min();
        prop_assert_eq!(Some(error(&table(&membership).quotas(), &weights)), least);
    }

    #[test]
    fn no_shard_is_without_a_slot_or_far_above_its_share(shards in shards(12)) {
        let (slots, count) = (64, shards.len() as u64);
        let membership = membership(slots, &shards);
        let total: u64 = shards.values().map(|&weight| u64::from(weight)).sum();
        for (quota, weight) in table(&membership).quotas().into_iter().zip(shards.values()) {
            prop_assert!(quota >= 1);
            // quota <= share + max(1, w / mean w), times W.
            let weight = u64::from(*weight);
            let share = u64::from(slots) * weight;
            prop_assert!(u64::from(quota) * total <= share + total.max(weight * count));
        }
    }

    #[test]
    fn quotas_are_near_the_exact_shares_of_shards_due_a_slot(shards in light_shards()) {
        // 12 shards of weight 7 at most add up to less than 128: each is due a slot or more.
        let (slots, count) = (128_u64, shards.len() as u64);
        let total: u64 = shards.values().map(|&weight| u64::from(weight)).sum();
        let quotas = table(&membership(128, &shards)).quotas();
        for (quota, &weight) in quotas.into_iter().zip(shards.values()) {
            let off = (u64::from(quota) * total).abs_diff(slots * u64::from(weight));
            // Off by (1 + w / mean w) / 2 at most, times 2 W.
            prop_assert!(2 * off <= total + u64::from(weight) * count);
        }
    }

    #[test]
    fn the_order_in_which_shards_are_given_does_not_matter(
        shards in shards(12),
        turn in 0..12_usize,
    ) {
        let mut members: Vec<_> =
            shards.iter().map(|(name, &weight)| (id(name), Weight::new(weight).unwrap())).collect();
        let slots = SlotCount::new(64).unwrap();
        let sorted = Membership::new(slots, members.clone()).unwrap();
        let by = turn % members.len();
        members.rotate_left(by);
        members.reverse();
        let shuffled = Membership::new(slots, members).unwrap();
        prop_assert_eq!(
            table(&sorted),
            table(&shuffled)
        );
    }

    #[test]
    fn every_slot_is_listed_under_its_owner_alone(shards in shards(12)) {
        let table = table(&membership(64, &shards));
        let mut listed = 0;
        for (index, (id, quota)) in table.shards().iter().zip(table.quotas()).enumerate() {
            prop_assert!(table.slots_of(id).all(|slot| table.owner_index(slot) == index));
            prop_assert_eq!(table.quota(id), quota);
            prop_assert_eq!(table.share(id), f64::from(quota) / 64.0);
            listed += table.slots_of(id).count();
        }
        prop_assert_eq!(listed, 64);
    }
}

#[test]
fn a_hundred_shards_are_within_one_slot_of_each_other() {
    let quotas = table(&alike(16_384, 100)).quotas();
    assert_eq!(quotas.iter().filter(|&&quota| quota == 163).count(), 16);
    assert_eq!(quotas.iter().filter(|&&quota| quota == 164).count(), 84);
}
