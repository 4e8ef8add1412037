//! Rounds of slices: which contender runs when, and how many pairs it makes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use ringfence_benches::{Clocks, Failure, Timing, order};
use serde::Serialize;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::contenders::{Clients, Kind, Situation, Task};

/// A task that makes no pair for this long is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// The measurements to make.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) timing: Timing,
}

/// What one contender did in one situation: one value per round.
pub(crate) struct Row {
    pub(crate) situation: Situation,
    pub(crate) contender: Kind,
    pub(crate) pairs_per_s: Vec<f64>,
    /// Processor time of the servers and of this process, per pair.
    pub(crate) server_us: Vec<f64>,
    pub(crate) client_us: Vec<f64>,
    /// Processors busy with neither.
    pub(crate) others: Vec<f64>,
}

/// Measures every contender in every situation in every round.
pub(crate) async fn run(clients: &Clients, plan: &Plan, pids: &[u32]) -> Result<Vec<Row>, Failure> {
    let clocks = Clocks::of(pids, &[std::process::id()])?;
    let row = |situation: Situation, contender: Kind| Row {
        situation,
        contender,
        pairs_per_s: Vec::new(),
        server_us: Vec::new(),
        client_us: Vec::new(),
        others: Vec::new(),
    };
    let of = |situation: Situation| {
        let contenders = situation.contenders().iter();
        contenders.map(move |contender| row(situation, *contender))
    };
    let mut rows: Vec<Row> = Situation::ALL.into_iter().flat_map(of).collect();
    for round in 0..plan.rounds {
        eprintln!("round {} of {}", round + 1, plan.rounds);
        for group in rows.chunk_by_mut(|one, other| one.situation == other.situation) {
            for index in order(round, group.len()) {
                slice(clients, plan.timing, &clocks, &mut group[index]).await?;
            }
        }
    }
    Ok(rows)
}

/// Runs a contender for the warm-up and the measured part.
async fn slice(
    clients: &Clients,
    timing: Timing,
    clocks: &Clocks,
    row: &mut Row,
) -> Result<(), Failure> {
    let (stop, pairs) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let mut running = JoinSet::new();
    for task in row.situation.tasks(row.contender, clients) {
        running.spawn(work(task, pairs.clone(), stop.clone()));
    }
    sleep(timing.warm_up).await;
    let (from, before) = (clocks.read()?, pairs.load(Relaxed));
    sleep(timing.length).await;
    let (to, after) = (clocks.read()?, pairs.load(Relaxed));
    stop.store(true, Relaxed);
    while let Some(worked) = running.join_next().await {
        worked??;
    }
    let made = (after - before) as f64;
    let per_pair = |time: Duration| time.as_secs_f64() * 1e6 / made;
    row.pairs_per_s.push(made / (to.at - from.at).as_secs_f64());
    row.server_us.push(per_pair(to.server - from.server));
    row.client_us.push(per_pair(to.client - from.client));
    row.others.push(from.others(&to));
    Ok(())
}

/// Makes pairs until told to stop.
async fn work(task: Task, pairs: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> Result<(), Failure> {
    while !stop.load(Relaxed) {
        let made = timeout(PATIENCE, task.pair()).await;
        made.map_err(|_| "a task is stuck")??;
        pairs.fetch_add(1, Relaxed);
    }
    Ok(())
}
