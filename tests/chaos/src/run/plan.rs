//! What is done to whom, and when: all of it from the seed.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};

use crate::history::Fault;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// How long nothing is done before.
    pub(super) after: Duration,
    /// What to do.
    pub(super) fault: Fault,
    /// How long it lasts.
    pub(super) lasts: Duration,
    /// For what else there is to choose.
    pub(super) dice: u64,
}

/// Everything to do: to each shard, and to clients, side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// To each shard, one thing after another. The first is the topology's home.
    pub(super) shards: Vec<Vec<Step>>,
    /// To clients.
    pub(super) clients: Vec<Step>,
}

/// What can happen to a shard.
const TO_SHARDS: [Fault; 11] = [
    Fault::RestartEmpty,
    Fault::RestartAof,
    Fault::RestartAofCut,
    Fault::Failover,
    Fault::Switchover,
    Fault::ThereAndBack,
    Fault::StopServer,
    Fault::Cut,
    Fault::Delay,
    Fault::BlackHole,
    Fault::ScriptFlush,
];

/// Whether the topology's home may lose its memory. It takes a recovery that mends that by itself.
const HOME_MAY_DIE: bool = false;

impl Plan {
    /// What to do to `shards` shards and some clients for `length`, with leases of `lease`.
    pub(super) fn new(seed: u64, shards: usize, length: Duration, lease: Duration) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut order = TO_SHARDS;
        order.shuffle(&mut random);
        // Each shard goes through all of them, beginning elsewhere: so that a run of a minute has
        // met each, and shards are in different trouble at the same time.
        let of_shard = |shard: usize| {
            let begin = shard * order.len() / shards;
            let mut turn = order.into_iter().cycle().skip(begin);
            let kept = |fault: &Fault| HOME_MAY_DIE || shard > 0 || !fault.ends_a_life();
            let gap = lease..lease * 2;
            steps(&mut random, length, gap, lease, || {
                turn.find(kept).expect("the turn has no end")
            })
        };
        let of_shards = (0..shards).map(of_shard).collect();
        let mut kill = false;
        let clients = steps(&mut random, length, lease / 4..lease, lease, || {
            kill = !kill;
            if kill {
                Fault::KillClient
            } else {
                Fault::StopClient
            }
        });
        Self {
            shards: of_shards,
            clients,
        }
    }
}

fn steps(
    random: &mut StdRng,
    length: Duration,
    gap: std::ops::Range<Duration>,
    lease: Duration,
    mut next: impl FnMut() -> Fault,
) -> Vec<Step> {
    let (mut steps, mut at) = (Vec::new(), Duration::ZERO);
    while at < length {
        let fault = next();
        let lasts = match fault {
            Fault::StopServer | Fault::StopClient => lease * 3 / 2..lease * 3,
            Fault::Cut | Fault::Delay | Fault::BlackHole => lease / 2..lease * 3 / 2,
            _ => lease / 20..lease / 2,
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

    #[test]
    fn a_seed_says_all() {
        assert_eq!(
            Plan::new(7, 3, MINUTE, LEASE),
            Plan::new(7, 3, MINUTE, LEASE)
        );
        assert_ne!(
            Plan::new(7, 3, MINUTE, LEASE),
            Plan::new(8, 3, MINUTE, LEASE)
        );
    }

    #[test]
    fn a_minute_meets_everything() {
        for seed in 0..100 {
            let plan = Plan::new(seed, 3, MINUTE, LEASE);
            let of_shards = plan.shards.iter().flatten().map(|step| step.fault);
            let met: HashSet<Fault> = of_shards.collect();
            assert_eq!(met.len(), TO_SHARDS.len(), "seed {seed}");
            assert!(plan.clients.len() > 10);
        }
    }
}
