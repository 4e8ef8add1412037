//! What is done to whom, and when: all of it from the seed.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};

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
    /// To each group of clients.
    pub(super) clients: Vec<Vec<Step>>,
}

/// What can happen to a shard.
pub(super) const TO_SHARDS: [Fault; 12] = [
    Fault::RestartEmpty,
    Fault::RestartAof,
    Fault::RestartAofCut,
    Fault::Failover,
    Fault::Switchover,
    Fault::ThereAndBack,
    Fault::StopServer,
    Fault::Cut,
    Fault::CutWakes,
    Fault::Delay,
    Fault::BlackHole,
    Fault::ScriptFlush,
];

impl Plan {
    /// What to do to `shards` shards and as many `groups` of clients for `length`, with leases of
    /// `lease`.
    pub(super) fn new(
        seed: u64,
        shards: usize,
        groups: usize,
        length: Duration,
        lease: Duration,
    ) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut order = TO_SHARDS;
        order.shuffle(&mut random);
        // Each shard goes through all of them, beginning elsewhere: so that a run of a minute has
        // met each, and shards are in different trouble at the same time.
        let of_shard = |shard: usize| {
            let begin = shard * order.len() / shards;
            let turn = order.into_iter().cycle().skip(begin);
            steps(&mut random, length, lease..lease * 2, lease, turn)
        };
        let shards = (0..shards).map(of_shard).collect();
        let to_clients = [Fault::KillClient, Fault::StopClient];
        let of_group = |group: usize| {
            let turn = to_clients.into_iter().cycle().skip(group % 2);
            steps(&mut random, length, lease / 4..lease, lease, turn)
        };
        let clients = (0..groups).map(of_group).collect();
        Self { shards, clients }
    }
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
            Fault::Cut | Fault::CutWakes | Fault::Delay | Fault::BlackHole => {
                lease / 2..lease * 3 / 2
            }
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
        Plan::new(seed, 3, 3, MINUTE, LEASE)
    }

    #[test]
    fn a_seed_says_all() {
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
    }

    #[test]
    fn a_minute_meets_everything() {
        for seed in 0..100 {
            let Plan { shards, clients } = plan(seed);
            let met: HashSet<Fault> = shards.iter().flatten().map(|step| step.fault).collect();
            assert_eq!(met.len(), TO_SHARDS.len(), "seed {seed}");
            assert!(clients.iter().all(|steps| steps.len() > 10), "seed {seed}");
        }
    }
}
