//! Rounds: at rest, there, at rest, back.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use ringfence_client::{Client, NewShard, Pace, Reshape, Resized};
use ringfence_coordinator::{spawn::RedisServer, topology::shard_id};
use tokio::time::sleep;

use super::{
    held::Held,
    load::{Acquired, Load},
    naive::Naive,
};
use crate::{Clocks, Failure, now};

/// Servers before the resize.
pub(crate) const SHARDS: usize = 3;

/// Nothing takes so long.
const LATENCY_MAX: Duration = Duration::from_secs(60);

/// What throughput is looked at by.
const BIN: Duration = Duration::from_secs(1);

/// The measurements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) tasks: usize,
    /// Acquires a second; as fast as they can without.
    pub(crate) rate: Option<u32>,
    pub(crate) held: usize,
    pub(crate) lease: Duration,
    /// At rest, before each resize: about as long as one takes.
    pub(crate) window: Duration,
    pub(crate) pace: Pace,
}

/// What was done in some time.
pub(crate) struct Window {
    /// Acquires in slots at rest.
    pub(crate) at_rest: Histogram<u64>,
    /// Acquires in slots on their way.
    pub(crate) on_its_way: Histogram<u64>,
    /// Acquires in each whole second; at rest, of the last ones, no more than the resize that follows takes.
    pub(crate) a_second: Vec<u64>,
    pub(crate) length: Duration,
}

/// There and back.
pub(crate) struct Round {
    /// At rest, before each of the two.
    pub(crate) before: [Window; 2],
    /// While slots move: there, and back.
    pub(crate) during: [Window; 2],
    pub(crate) resized: [Resized; 2],
    /// The fewest slots that had to move, there and back.
    pub(crate) optimum: [u32; 2],
    /// Held locks that were lost.
    pub(crate) lost: usize,
    /// Processors busy with other work.
    pub(crate) others: f64,
}

/// Measures the rounds, then counts what a change of the map alone does.
pub(crate) async fn run(plan: &Plan) -> Result<(Vec<Round>, Naive), Failure> {
    let mut servers = Vec::new();
    for _ in 0..=SHARDS {
        servers.push(RedisServer::spawn().await?);
    }
    let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
    let build = || {
        let builder = Client::builder().redis(urls[..SHARDS].to_vec());
        builder.max_lease(plan.lease).servers_are_new(true).build()
    };
    let (holder, worker) = (build().await?, build().await?);
    let held = Held::start(&holder, plan.held, plan.lease).await?;
    let mut load = Load::start(&worker, plan.tasks, plan.rate);
    sleep(plan.window).await;

    let mut rounds = Vec::new();
    for round in 0..plan.rounds {
        eprintln!("round {} of {}", round + 1, plan.rounds);
        let fourth = shard_id(SHARDS);
        let there =
            Reshape::new().add_shard(NewShard::redis(urls[SHARDS].clone()).id(fourth.clone()));
        let back = Reshape::new().remove_shard(fourth.clone());
        load.take()?;
        // Of this round's: the fourth is started anew for each.
        let pids: Vec<u32> = servers.iter().filter_map(RedisServer::pid).collect();
        let clocks = Clocks::of(&pids, &[std::process::id()])?;
        let from = clocks.read()?;
        let first = resize(plan, &holder, &mut load, there).await?;
        let joined = holder.topology().table.quota(&fourth);
        let second = resize(plan, &holder, &mut load, back).await?;
        let others = from.others(&clocks.read()?);
        // A server takes part again once it was restarted.
        servers[SHARDS].restart().await?;
        rounds.push(Round {
            before: [first.0, second.0],
            during: [first.1, second.1],
            resized: [first.2, second.2],
            optimum: [joined, joined],
            lost: held.lost(),
            others,
        });
    }
    let naive = Naive::count(&servers, plan.held).await?;
    Ok((rounds, naive))
}

/// A window at rest, and one in which the ring is reshaped.
async fn resize(
    plan: &Plan,
    client: &Client,
    load: &mut Load,
    reshape: Reshape,
) -> Result<(Window, Window, Resized), Failure> {
    let before = now();
    sleep(plan.window).await;
    let during = now();
    let resize = client.ring().reshape(reshape).await?.pace(plan.pace);
    let resized = resize.run().await?;
    let after = now();
    let acquired = load.take()?;
    let mut at_rest = Window::of(&acquired, before, during);
    let moving = Window::of(&acquired, during, after);
    // The least of more seconds is less.
    let more = at_rest.a_second.len().saturating_sub(moving.a_second.len());
    at_rest.a_second.drain(..more);
    Ok((at_rest, moving, resized))
}

impl Window {
    fn of(acquired: &[Acquired], from: Instant, to: Instant) -> Self {
        let length = to - from;
        let mut window = Self {
            at_rest: histogram(),
            on_its_way: histogram(),
            a_second: vec![0; (length.as_secs_f64() / BIN.as_secs_f64()) as usize],
            length,
        };
        for done in acquired
            .iter()
            .filter(|done| from <= done.at && done.at < to)
        {
            let latencies = match done.on_its_way {
                true => &mut window.on_its_way,
                false => &mut window.at_rest,
            };
            latencies.saturating_record(done.latency.as_nanos() as u64);
            let bin = (done.at - from).as_secs_f64() / BIN.as_secs_f64();
            if let Some(count) = window.a_second.get_mut(bin as usize) {
                *count += 1;
            }
        }
        window
    }

    /// Acquires a second.
    pub(crate) fn rate(&self) -> f64 {
        (self.at_rest.len() + self.on_its_way.len()) as f64 / self.length.as_secs_f64()
    }

    /// The fewest in any second.
    pub(crate) fn least(&self) -> f64 {
        self.a_second.iter().min().copied().unwrap_or(0) as f64
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX.as_nanos() as u64, 3)
        .expect("1 is less, and 3 digits are few enough")
}
