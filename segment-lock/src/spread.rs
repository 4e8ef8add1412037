//! Chooses the shards of new segments of one name: evenly, by the shards' shares.
//!
//! A segment's key ends in a small number, its **place**. Its only purpose is to put the key's slot on the chosen
//! shard. Places are tried one after the other, and the first one on a shard that may have one more segment is taken.
//! So the hash chooses among these shards, and the first segments of many names are not all on one shard.
//!
//! A shard may have one more segment as long as it has less than its share of all, rounded up, and at most ⌈N/M⌉ + 1
//! with it. A large shard gets more than a small one, but the failure of a shard never affects many more than N/M
//! segments. Both bounds hold for the first n segments, for every n: also for segments made little by little, and if
//! only the first of them are in use.

use crate::limits::PLACES_MAX;

/// The places of `more` segments, numbered after the segments at `taken`.
///
/// `shares`: one number per shard in any common unit, for example its slots; 0 for a shard that gets no segment.
/// `owner`: the index in `shares` of the shard that has segment `index` at `place`.
///
/// With N segments in all on M shards that have a share, this gives no shard more than ⌈N/M⌉ + 1. Existing segments
/// stay at their places: after a resize of the ring, a shard may have more of them.
///
/// # Panics
///
/// `owner` returns an index outside of `shares`.
pub fn spread(
    shares: &[u32],
    taken: &[u32],
    more: u32,
    owner: impl Fn(u32, u32) -> usize,
) -> Vec<u32> {
    let mut counts = vec![0; shares.len()];
    for (index, place) in (0..).zip(taken) {
        counts[owner(index, *place)] += 1;
    }
    let first = u32::try_from(taken.len()).expect("numbered by u32");
    let next = |index| {
        let may_have = wanted(shares, &counts, index);
        // A shard has at least one slot. It is next to impossible that none of so many keys falls there.
        let place = (0..PLACES_MAX)
            .find(|place| may_have[owner(index, *place)])
            .unwrap_or_default();
        counts[owner(index, place)] += 1;
        place
    };
    (first..first + more).map(next).collect()
}

/// The shards that may have the segment after `present` others, of which each shard has `counts`.
fn wanted(shares: &[u32], counts: &[u32], present: u32) -> Vec<bool> {
    let segments = present + 1;
    let shards = shares.iter().filter(|share| **share > 0).count().max(1);
    let most = segments.div_ceil(u32::try_from(shards).expect("shards are few")) + 1;
    let whole: u64 = shares.iter().map(|share| u64::from(*share)).sum();
    let both = || shares.iter().zip(counts);
    let is_short = |(share, count): (&u32, &u32)| {
        *count < most && u64::from(*count) * whole < u64::from(segments) * u64::from(*share)
    };
    if both().any(is_short) {
        return both().map(is_short).collect();
    }
    // A shard with less than its share may have one more.
    let with_share = both().filter(|(share, _)| **share > 0);
    let least = with_share.map(|(_, count)| *count).min();
    both()
        .map(|(share, count)| *share > 0 && Some(*count) == least)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    use super::*;

    /// A ring of as many slots as `shares` say, dealt out in runs.
    #[derive(Debug)]
    struct Ring {
        shares: Vec<u32>,
        seed: u64,
    }

    impl Ring {
        fn owner(&self, index: u32, place: u32) -> usize {
            let key = format!("stock/7#{index}.{place}");
            let slots: u64 = self.shares.iter().map(|share| u64::from(*share)).sum();
            let mut slot = xxh3_64_with_seed(key.as_bytes(), self.seed) % slots;
            let mut shares = self.shares.iter().map(|share| u64::from(*share));
            let holds = |share: u64| {
                let holds = slot < share;
                slot = slot.saturating_sub(share);
                holds
            };
            shares.position(holds).unwrap()
        }

        fn spread(&self, taken: &[u32], more: u32) -> Vec<u32> {
            spread(&self.shares, taken, more, |index, place| {
                self.owner(index, place)
            })
        }

        fn counts(&self, places: &[u32]) -> Vec<u32> {
            let mut counts = vec![0; self.shares.len()];
            for (index, place) in (0..).zip(places) {
                counts[self.owner(index, *place)] += 1;
            }
            counts
        }

        /// ⌈n/M⌉ + 1.
        fn most(&self, segments: usize) -> u32 {
            let shards = self.shares.iter().filter(|share| **share > 0).count();
            segments.div_ceil(shards) as u32 + 1
        }
    }

    fn rings(shares: impl Strategy<Value = Vec<u32>>) -> impl Strategy<Value = Ring> {
        let with_slots = shares.prop_filter("a shard has slots", |shares| {
            shares.iter().any(|share| *share > 0)
        });
        (with_slots, any::<u64>()).prop_map(|(shares, seed)| Ring { shares, seed })
    }

    fn uneven() -> impl Strategy<Value = Ring> {
        rings(vec(prop_oneof![4 => 1_u32..400, 1 => Just(0)], 1..=8))
    }

    fn even() -> impl Strategy<Value = Ring> {
        rings((1_usize..=8).prop_map(|shards| vec![100; shards]))
    }

    proptest! {
        #[test]
        fn no_shard_has_more_than_its_part_and_one(ring in uneven(), all in 1_u32..=64, first in 0_u32..=64) {
            let mut places = ring.spread(&[], first.min(all));
            places.extend(ring.spread(&places, all - first.min(all)));
            prop_assert_eq!(places.len(), all as usize);
            for n in 1..=places.len() {
                let counts = ring.counts(&places[..n]);
                prop_assert!(counts.iter().all(|count| *count <= ring.most(n)), "{n}: {counts:?}");
            }
        }

        #[test]
        fn nothing_is_put_where_no_share_is(ring in uneven(), all in 1_u32..=64) {
            let counts = ring.counts(&ring.spread(&[], all));
            let without = ring.shares.iter().zip(counts).filter(|(share, _)| **share == 0);
            prop_assert_eq!(without.map(|(_, count)| count).sum::<u32>(), 0);
        }

        #[test]
        fn even_shards_have_even_parts(ring in even(), all in 1_usize..=64) {
            let counts = ring.counts(&ring.spread(&[], all as u32));
            let parts = all / counts.len()..=all.div_ceil(counts.len());
            prop_assert!(counts.iter().all(|count| parts.contains(&(*count as usize))), "{counts:?}");
        }

        #[test]
        fn an_uneven_spread_after_a_resize_is_compensated(before in even(), ring in uneven(), n in 1_u32..=32, more in 1_u32..=32) {
            let mut places = before.spread(&[], n);
            let were = ring.counts(&places);
            places.extend(ring.spread(&places, more));
            for (is, was) in ring.counts(&places).iter().zip(were) {
                prop_assert!(*is <= ring.most(places.len()).max(was));
            }
        }
    }

    #[test]
    fn a_great_shard_gets_more_than_a_small_one() {
        let ring = Ring {
            shares: vec![200, 100, 100],
            seed: 7,
        };
        assert_eq!(ring.counts(&ring.spread(&[], 4)), [2, 1, 1]);
    }

    #[test]
    fn the_first_segments_of_many_names_are_on_every_shard() {
        let first = |seed| {
            let shares = vec![100; 4];
            let ring = Ring { shares, seed };
            ring.owner(0, ring.spread(&[], 1)[0])
        };
        let shards: std::collections::BTreeSet<_> = (0..64).map(first).collect();
        assert_eq!(shards.len(), 4);
    }

    #[test]
    fn places_are_small() {
        let shares = vec![2048; 8];
        let ring = Ring { shares, seed: 7 };
        let places = ring.spread(&[], 64);
        assert!(places.iter().all(|place| *place < 100), "{places:?}");
    }
}
