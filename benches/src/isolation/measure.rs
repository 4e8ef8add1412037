//! Rounds of two windows, with a stop between them or without.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use ringfence_client::{Client, Namespace};
use ringfence_coordinator::spawn::RedisServer;
use tokio::time::sleep;

use super::{
    load::{Load, Pair},
    renewals::{Held, Renewal},
};
use crate::{Clocks, Failure, now};

/// Shards.
pub(crate) const SHARDS: usize = 3;

/// A held lock's lease, in windows: each is renewed in every window, and outlives a stop.
const LEASE_WINDOWS: u32 = 3;

/// A lock with a shorter lease may be lost on a machine that is busy with other work.
const LEASE_MIN: Duration = Duration::from_secs(4);

/// How long a pair may wait for its lock, at most. Nobody else wants it.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Longer ones count as this.
const LATENCY_MAX: Duration = Duration::from_secs(60);

/// The measurements to make.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Of each kind.
    pub(crate) rounds: usize,
    pub(crate) window: Duration,
    /// A shard.
    pub(crate) tasks: usize,
    /// A shard.
    pub(crate) held: usize,
}

impl Plan {
    pub(crate) fn lease(&self) -> Duration {
        (self.window * LEASE_WINDOWS).max(LEASE_MIN)
    }

    fn wait(&self) -> Duration {
        self.window.min(WAIT_MAX)
    }
}

/// Two windows, one after the other, of all shards but one.
#[derive(Debug)]
pub(crate) struct Round {
    /// Whether that one was stopped in the second.
    pub(crate) stopped: bool,
    pub(crate) windows: [Window; 2],
    /// Processors that were busy with neither the servers nor this process, over both.
    pub(crate) others: f64,
}

/// What the shards that are looked at did in one window.
#[derive(Debug)]
pub(crate) struct Window {
    /// Nanoseconds.
    pub(crate) pairs: Histogram<u64>,
    pub(crate) pairs_failed: usize,
    /// Nanoseconds from when they were sent, or due, to the answer.
    pub(crate) renewals: Histogram<u64>,
    /// Nanoseconds from a renewal to the answer of the next, at most.
    pub(crate) renewed_after_max: u64,
}

/// Measures as many rounds with a stop as without, in turns; each shard is stopped in its turn.
pub(crate) async fn run(plan: &Plan) -> Result<Vec<Round>, Failure> {
    let mut servers = Vec::new();
    for _ in 0..SHARDS {
        servers.push(RedisServer::spawn().await?);
    }
    let pids: Vec<u32> = servers.iter().filter_map(RedisServer::pid).collect();
    let clocks = Clocks::of(&pids, &[std::process::id()])?;
    let urls = servers.iter().map(RedisServer::url);
    let client = Client::builder().redis(urls).servers_are_new(true);
    let client = client.build().await?;
    let held = keys(&client, &servers, "held", plan.held)?;
    let mut held = Held::start(&client, &held, plan.lease()).await?;
    let keys = keys(&client, &servers, "task", plan.tasks)?;
    let mut load = Load::start(&client, &keys, plan.wait());
    load.on_schedule().await;

    let mut rounds = Vec::new();
    for round in 0..2 * plan.rounds {
        eprintln!("round {} of {}", round + 1, 2 * plan.rounds);
        // In which order the two kinds come changes from one pair of rounds to the next.
        let stopped = (round % 2 == 1) == (round / 2 % 2 == 0);
        let server = round / 2 % SHARDS;
        let stop = stopped.then_some(&servers[server]);
        let from = clocks.read()?;
        sleep(plan.window).await;
        let middle = now();
        stop.inspect(|server| server.stop());
        sleep(plan.window).await;
        let to = clocks.read()?;
        stop.inspect(|server| server.cont());
        load.on_schedule().await;
        if !held.all() {
            return Err("a held lock was lost".into());
        }
        let (pairs, renewals) = (load.take(), held.take());
        let window = |from, to| Window::of(&pairs, &renewals, server, (from, to));
        rounds.push(Round {
            stopped,
            windows: [window(from.at, middle), window(middle, to.at)],
            others: from.others(&to),
        });
    }
    Ok(rounds)
}

impl Window {
    /// What all shards but `without` did between two moments.
    fn of(
        pairs: &[Pair],
        renewals: &[Renewal],
        without: usize,
        (from, to): (Instant, Instant),
    ) -> Self {
        let within = |at: Instant| from <= at && at < to;
        let mut window = Self {
            pairs: histogram(),
            pairs_failed: 0,
            renewals: histogram(),
            renewed_after_max: 0,
        };
        for pair in pairs {
            if pair.shard != without && within(pair.due) {
                window.pairs.saturating_record(nanos(pair.latency));
                window.pairs_failed += usize::from(!pair.ok);
            }
        }
        for renewal in renewals {
            if renewal.shard != without && within(renewal.due) {
                window.renewals.saturating_record(nanos(renewal.latency));
                window.renewed_after_max = window.renewed_after_max.max(nanos(renewal.age));
            }
        }
        window
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, nanos(LATENCY_MAX), 3)
        .expect("1 is less, and 3 digits are few enough")
}

fn nanos(length: Duration) -> u64 {
    length.as_nanos() as u64
}

/// `count` keys on the shard of each server, in the servers' order.
fn keys(
    client: &Client,
    servers: &[RedisServer],
    name: &str,
    count: usize,
) -> Result<Vec<Vec<String>>, Failure> {
    let topology = client.topology();
    let mut keys = vec![Vec::new(); servers.len()];
    for number in 0.. {
        if keys.iter().all(|keys| keys.len() == count) {
            break;
        }
        let key = format!("{name}/{number}");
        let shard = client.shard_of(&Namespace::default(), &key)?;
        let address = &topology
            .shard(&shard)
            .ok_or("a shard of the table")?
            .address;
        let is_at = |server: &RedisServer| address.contains(&format!(":{}", server.port()));
        let index = servers.iter().position(is_at).ok_or("one of ours")?;
        if keys[index].len() < count {
            keys[index].push(key);
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_counts_where_it_was_due_and_the_stopped_shard_does_not() {
        let zero = now();
        let at = |millis| zero + Duration::from_millis(millis);
        let pair = |shard, due, millis| Pair {
            shard,
            due: at(due),
            latency: Duration::from_millis(millis),
            ok: millis < 1000,
        };
        let pairs = [
            pair(0, 5, 3),
            pair(0, 9, 2000),
            pair(1, 9, 2000),
            pair(0, 10, 4),
        ];
        let first = Window::of(&pairs, &[], 1, (zero, at(10)));
        assert_eq!(first.pairs.len(), 2);
        assert_eq!(first.pairs_failed, 1);
        assert!(first.pairs.max() >= nanos(Duration::from_millis(2000)));
        let second = Window::of(&pairs, &[], 1, (at(10), at(20)));
        assert_eq!((second.pairs.len(), second.pairs_failed), (1, 0));
    }
}
