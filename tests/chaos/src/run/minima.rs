//! What a run must have seen to mean something: far less than it does on a slow machine.

use std::time::Duration;

use super::{plan, shard::Kind};
use crate::{checker::Minima, history::Fault};

/// A run of this length has a shard removed.
const LONG_ENOUGH: Duration = Duration::from_secs(20);

fn per_minute(length: Duration) -> impl Fn(usize) -> usize {
    move |count| count * length.as_secs() as usize / 60
}

/// Of a run whose clients use the shards themselves.
pub(super) fn of_shards(length: Duration, kinds: &[Kind]) -> Minima {
    let per_minute = per_minute(length);
    // What happens to few of the shards may not come to its turn.
    let to_any = |fault: &Fault| kinds.iter().all(|kind| kind.suffers(*fault));
    let to_shards = plan::TO_SHARDS.into_iter().filter(to_any);
    let to_shards = to_shards.map(|fault| (fault, per_minute(1)));
    let of_redis = kinds.iter().filter(|kind| **kind == Kind::Redis).count();
    let to_clients = plan::TO_CLIENTS.map(|fault| (fault, per_minute(6)));
    // A mover that is stopped first may be at its resize for most of a short run.
    // The first thing that is done to the ring.
    let removed = usize::from(length >= LONG_ENOUGH);
    let to_ring = [
        (Fault::KillMover, per_minute(1) / 3),
        (Fault::RemoveShard, removed),
        (Fault::ForceRelease, per_minute(6)),
    ];
    Minima {
        grants: per_minute(60),
        grants_in_faults: per_minute(30),
        grants_by_majorities: per_minute(20),
        sets: per_minute(20),
        sets_refused: per_minute(3),
        beside_sets: per_minute(10),
        leaders: per_minute(5),
        permits: per_minute(20),
        readers: per_minute(20),
        readers_joined: per_minute(1),
        writers: per_minute(10),
        // 19 to 23 in 20 minutes.
        writers_handed: per_minute(1) / 2,
        shared: per_minute(20),
        downgraded: per_minute(3),
        fixed: per_minute(5),
        writes: per_minute(60),
        rejected: 0,
        renewed: per_minute(20),
        // It takes a holder whose shard dies, and is armed again in time, and does not let go meanwhile.
        reclaimed: per_minute(1) / 3,
        held: per_minute(30),
        queued: per_minute(60),
        behind: per_minute(60),
        turns: per_minute(20),
        handed: per_minute(20),
        // Others have what they had when they are back.
        grace: per_minute(5 * of_redis / kinds.len()),
        unknown: per_minute(5),
        lost: per_minute(1),
        // On databases, and beside builds, 19 in 20 minutes.
        resizes: per_minute(1) / 2,
        // Movers that die do not say how many they saw leave: in a short run, that may be all.
        slots_moved: per_minute(1) * 1_000,
        locks_carried: per_minute(1) / 3,
        faults: to_shards.chain(to_clients).chain(to_ring).collect(),
        ..Minima::default()
    }
}

/// Of a run whose clients use coordinators.
pub(super) fn of_service(length: Duration) -> Minima {
    let per_minute = per_minute(length);
    let of_coordinators = [Fault::KillCoordinator, Fault::StopCoordinator];
    // A long run comes to the others, too.
    let of_coordinators = of_coordinators.map(|fault| (fault, per_minute(1).max(1)));
    let to_clients = plan::TO_CLIENTS.map(|fault| (fault, per_minute(6)));
    Minima {
        grants: per_minute(60),
        grants_in_faults: per_minute(30),
        grants_by_majorities: per_minute(10),
        sets: per_minute(10),
        opened: per_minute(5),
        beside_sets: per_minute(5),
        leaders: per_minute(5),
        permits: per_minute(10),
        readers: per_minute(10),
        writers: per_minute(5),
        shared: per_minute(10),
        writes: per_minute(60),
        renewed: per_minute(60),
        kept: per_minute(4),
        given_back: per_minute(1),
        held: per_minute(3),
        handed: per_minute(10),
        faults: of_coordinators.into_iter().chain(to_clients).collect(),
        ..Minima::default()
    }
}
