//! The first table of a membership.

use crate::quota::quotas;
use crate::rendezvous::Rendezvous;
use crate::{Membership, Replicas, Table, spread};

impl Table {
    /// The first table of a membership: the same on every machine. Exact quotas, filled by weighted rendezvous.
    ///
    /// With equal weights each of `N` shards has `S / N` slots, rounded up or down, so that
    /// `max / mean <= 1 + N / S`. With any weights, each has at least one slot, and at most
    /// `max(1, w / mean w)` above its exact share `S * w / W`.
    ///
    /// Compares every slot with every shard.
    pub fn bootstrap(membership: &Membership) -> Self {
        let first = bounded_rendezvous(membership);
        let owners = match membership.replicas() {
            Replicas::One => first,
            _ => spread::bootstrap(membership, first),
        };
        Self::new(membership.clone(), owners)
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
