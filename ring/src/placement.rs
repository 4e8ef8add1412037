use crate::quota::quotas;
use crate::rendezvous::Rendezvous;
use crate::{Membership, Replicas, RingError, classic, spread};

/// How slots are given to shards, at first and at each change of the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Placement {
    /// Exact quotas, filled by weighted rendezvous; the fewest moves.
    ///
    /// With equal weights each of `N` shards has `S / N` slots, rounded up or down, so that
    /// `max / mean <= 1 + N / S`. With any weights, each has at least one slot, and at most
    /// `max(1, w / mean w)` above its exact share `S * w / W`.
    #[default]
    Quota,
    /// The classic ring, for comparison: its shares scatter by about `1 / sqrt(V)`, and a shard may
    /// get no slot. Without replicas.
    Classic {
        /// `V`, points of a shard of weight 1: 1 to 4,096, and 4,194,304 over all shards.
        points_per_shard: u32,
        /// Determines the positions of the points.
        seed: u64,
    },
}

impl Placement {
    /// The owner of each slot, as an index into the sorted shards, if no table is stored yet.
    pub(crate) fn owners(self, membership: &Membership) -> Result<Vec<u16>, RingError> {
        match (self, membership.replicas()) {
            (Self::Quota, Replicas::One) => Ok(bounded_rendezvous(membership)),
            (Self::Quota, _) => Ok(spread::bootstrap(
                membership,
                bounded_rendezvous(membership),
            )),
            (
                Self::Classic {
                    points_per_shard,
                    seed,
                },
                _,
            ) => classic::owners(membership, points_per_shard, seed),
        }
    }
}

/// Each slot in turn takes the shard that it prefers among those whose quota is not full (after
/// Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2016).
fn bounded_rendezvous(membership: &Membership) -> Vec<u16> {
    let rendezvous = Rendezvous::new(membership);
    let mut room = quotas(membership, &vec![0; membership.shards().len()]);
    let place = |slot| {
        let open = (0..room.len()).filter(|&shard| room[shard] > 0);
        let (_, shard) = rendezvous
            .first(slot, open)
            .expect("quotas add up to all slots");
        room[shard] -= 1;
        shard as u16
    };
    membership.slots().iter().map(place).collect()
}
