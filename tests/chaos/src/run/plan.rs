//! What is done to whom, and when: all of it from the seed.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use ringfence_coordinator::mover::Phase;

use super::shard::Kind;
use crate::history::Fault;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How long nothing is done before.
    pub after: Duration,
    /// What to do.
    pub fault: Fault,
    /// How long it lasts.
    pub lasts: Duration,
    /// For what else there is to choose.
    pub dice: u64,
}

/// Everything to do: to each shard, and to clients, side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// To each shard, one thing after another. One of them is the topology's home.
    pub(super) shards: Vec<Vec<Step>>,
    /// To all shards at once, one after another.
    pub(super) all_shards: Vec<Step>,
    /// To each group of clients.
    pub(super) clients: Vec<Vec<Step>>,
    /// To locks, one after another.
    pub(super) locks: Vec<Step>,
    /// To resizes, one after another.
    pub(super) ring: Vec<Upset>,
    /// To coordinators, one after another: one of them always serves.
    pub(super) coordinators: Vec<Step>,
}

/// One resize, or two, and what becomes of their movers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upset {
    /// How long the ring rests before.
    pub(super) after: Duration,
    pub(super) trial: Trial,
    /// How long a shard is away that is restarted.
    pub(super) lasts: Duration,
    /// For the resize, and for what else there is to choose.
    pub(super) dice: u64,
}

/// What becomes of a resize's movers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trial {
    /// They die, each in its phase, and another goes on.
    Kill([Phase; 3]),
    /// One stops in that phase, and wakes when all is over, and another resize too.
    Stop(Phase),
    /// There are two.
    TwoAtOnce,
    /// It is turned back in that phase.
    TurnBack(Phase),
    /// There is none: a shard fails for good, and is removed by force.
    RemoveByForce,
    /// It is held up in that phase while a shard is restarted.
    Restart(Side, Phase),
}

/// A side of slots that move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The shard they leave.
    Sealed,
    /// The shard they come to.
    Importing,
}

impl Side {
    /// As the report says it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Sealed => "sealed",
            Self::Importing => "importing",
        }
    }
}

/// What can happen to a shard.
pub(super) const TO_SHARDS: [Fault; 15] = [
    Fault::RestartEmpty,
    Fault::RestartAof,
    Fault::RestartAofCut,
    Fault::Failover,
    Fault::Switchover,
    Fault::ThereAndBack,
    Fault::StopServer,
    Fault::Cut,
    Fault::CutNotifications,
    Fault::Delay,
    Fault::BlackHole,
    Fault::FunctionFlush,
    Fault::FlushAll,
    Fault::Retarget,
    Fault::StepClock,
];

/// The shard whose server keeps the record of the topology. Its address never returns to a primary that was not demoted:
/// nothing tells that the record there is an older one (docs/protocol.md).
pub(crate) const HOME: usize = 0;

/// What can happen to a client.
pub(super) const TO_CLIENTS: [Fault; 3] = [Fault::KillClient, Fault::StopClient, Fault::EndClient];

/// What can happen to a coordinator. A short run comes to the first two.
pub(super) const TO_COORDINATORS: [Fault; 7] = [
    Fault::KillCoordinator,
    Fault::StopCoordinator,
    Fault::KillCoordinator,
    Fault::EndCoordinator,
    Fault::BlackHole,
    Fault::Cut,
    Fault::Delay,
];

impl Plan {
    /// What to do to `shards` and as many `groups` of clients for `length`, with leases of
    /// `lease`.
    pub(super) fn new(
        seed: u64,
        shards: &[Kind],
        groups: usize,
        length: Duration,
        lease: Duration,
    ) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut order = TO_SHARDS;
        order.shuffle(&mut random);
        // Each shard goes through all of them, beginning elsewhere: so that a run of a minute has
        // met each, and shards are in different trouble at the same time. In between there is time for
        // slots to move: they wait for every shard that is in grace.
        let of_shard = |shard: usize| {
            let begin = shard * order.len() / shards.len();
            let turn = order.into_iter().cycle().skip(begin);
            let turn = turn.filter(|fault| shard != HOME || *fault != Fault::Retarget);
            let turn = turn.filter(|fault| shards[shard].suffers(*fault));
            steps(&mut random, length, lease * 2..lease * 4, lease, turn)
        };
        let shards = (0..shards.len()).map(of_shard).collect();
        let clients = to_clients(&mut random, groups, length, lease);
        let ring = ring(&mut random, length, lease);
        let force = std::iter::repeat(Fault::ForceRelease);
        let locks = steps(&mut random, length, lease / 4..lease, lease, force);
        let together = std::iter::repeat(Fault::BlackHoles);
        let all_shards = steps(&mut random, length, lease * 5..lease * 10, lease, together);
        Self {
            shards,
            all_shards,
            clients,
            locks,
            ring,
            coordinators: Vec::new(),
        }
    }

    /// What to do to coordinators, and to as many `groups` of their clients, for `length`: nothing happens to shards, so
    /// that every lock that is lost is lost by the service.
    pub(super) fn of_service(seed: u64, groups: usize, length: Duration, lease: Duration) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        // In between, sessions resume their locks at the other coordinator, and renew them there.
        let gap = lease / 2..lease * 3 / 4;
        let turn = TO_COORDINATORS.into_iter().cycle();
        Self {
            coordinators: steps(&mut random, length, gap, lease, turn),
            clients: to_clients(&mut random, groups, length, lease),
            shards: Vec::new(),
            all_shards: Vec::new(),
            locks: Vec::new(),
            ring: Vec::new(),
        }
    }
}

fn to_clients(
    random: &mut StdRng,
    groups: usize,
    length: Duration,
    lease: Duration,
) -> Vec<Vec<Step>> {
    let of_group = |group: usize| {
        let turn = TO_CLIENTS.into_iter().cycle();
        let turn = turn.skip(group % TO_CLIENTS.len());
        steps(random, length, lease / 4..lease, lease, turn)
    };
    (0..groups).map(of_group).collect()
}

/// Those that a mover comes to where there are no counters.
const OF_LOCKS: [Phase; 10] = [
    Phase::Planned,
    Phase::Sealed,
    Phase::Imported,
    Phase::Admitted,
    Phase::Scanned,
    Phase::Delivered,
    Phase::Listed,
    Phase::Opened,
    Phase::Shut,
    Phase::Finished,
];

/// More than there is time for: how long a resize takes is not planned.
fn ring(random: &mut StdRng, length: Duration, lease: Duration) -> Vec<Upset> {
    let mut phases = OF_LOCKS;
    let upset = |random: &mut StdRng, trial| Upset {
        after: random.random_range(Duration::ZERO..lease / 4),
        trial,
        lasts: random.random_range(lease / 20..lease / 4),
        dice: random.random(),
    };
    // First, and once: so that the shortest run has it, and all that follows is met by a ring that lacks a shard.
    let mut upsets = vec![upset(random, Trial::RemoveByForce)];
    while upsets.len() < length.as_secs() as usize {
        phases.shuffle(random);
        // In which something is sealed, and taken in.
        let amid = [
            Phase::Imported,
            Phase::Delivered,
            Phase::Listed,
            Phase::Opened,
        ];
        let mut amid = || amid[random.random_range(0..amid.len())];
        let [p, q, r, s, t, u, v, w, x, y] = phases;
        let mut trials = [
            Trial::Kill([p, q, r]),
            Trial::Kill([s, t, u]),
            Trial::Kill([v, w, x]),
            Trial::Stop(y),
            Trial::TwoAtOnce,
            Trial::TurnBack(q),
            Trial::Restart(Side::Sealed, amid()),
            Trial::Restart(Side::Importing, amid()),
        ];
        trials.shuffle(random);
        upsets.extend(trials.map(|trial| upset(random, trial)));
    }
    upsets
}

fn steps(
    random: &mut StdRng,
    length: Duration,
    gap: std::ops::Range<Duration>,
    lease: Duration,
    turn: impl Iterator<Item = Fault>,
) -> Vec<Step> {
    let (mut steps, mut at) = (Vec::new(), Duration::ZERO);
    for fault in turn {
        if at >= length {
            break;
        }
        let lasts = match fault {
            Fault::StopServer | Fault::StopClient => lease * 3 / 2..lease * 3,
            Fault::Cut
            | Fault::CutNotifications
            | Fault::Delay
            | Fault::BlackHole
            | Fault::BlackHoles => lease / 2..lease * 3 / 2,
            Fault::StopCoordinator => lease..lease * 3 / 2,
            // The other primary grants once its recovery period is over.
            Fault::Retarget => lease * 3 / 2..lease * 5 / 2,
            // Not so long that nobody is left who puts a record back.
            _ => lease / 20..lease / 4,
        };
        let step = Step {
            after: random.random_range(gap.clone()),
            fault,
            lasts: random.random_range(lasts),
            dice: random.random(),
        };
        at += step.after + step.lasts;
        steps.push(step);
    }
    steps
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const LEASE: Duration = Duration::from_secs(2);
    const MINUTE: Duration = Duration::from_secs(60);

    fn plan(seed: u64) -> Plan {
        Plan::new(seed, &[Kind::Redis; 4], 3, MINUTE, LEASE)
    }

    #[test]
    fn a_seed_says_all() {
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
    }

    #[test]
    fn a_short_run_of_the_service_kills_and_stops_coordinators() {
        for seed in 0..100 {
            let plan = Plan::of_service(seed, 3, MINUTE / 3, 2 * LEASE);
            let met: Vec<Fault> = plan.coordinators.iter().map(|step| step.fault).collect();
            assert!(met.len() >= 3, "seed {seed}: {met:?}");
        }
    }

    #[test]
    fn a_minute_meets_everything() {
        for seed in 0..100 {
            let Plan {
                shards,
                clients,
                ring,
                ..
            } = plan(seed);
            let met: HashSet<Fault> = shards.iter().flatten().map(|step| step.fault).collect();
            assert_eq!(met.len(), TO_SHARDS.len(), "seed {seed}");
            assert!(clients.iter().all(|steps| steps.len() > 10), "seed {seed}");
            let died = ring.iter().take(9).filter_map(|upset| match upset.trial {
                Trial::Kill(phases) => Some(phases),
                _ => None,
            });
            let died: HashSet<Phase> = died.flatten().collect();
            // One is stopped in, not killed.
            assert_eq!(died.len(), OF_LOCKS.len() - 1, "seed {seed}");
        }
    }
}
