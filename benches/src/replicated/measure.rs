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

use crate::contenders::{CLIENTS, Contender, Task};

/// A task that makes no pair for this long is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// The measurements to make.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) distinct: Timing,
    pub(crate) one_key: Timing,
}

/// What the tasks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Situation {
    /// As many tasks, each with a key of its own, at one client.
    Distinct(usize),
    /// 64 tasks want one key, at as many clients.
    OneKey(usize),
}

impl Situation {
    pub(crate) const ALL: [Self; 5] = [
        Self::Distinct(1),
        Self::Distinct(64),
        Self::Distinct(256),
        Self::OneKey(1),
        Self::OneKey(CLIENTS),
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Distinct(tasks) => format!("{tasks} keys"),
            Self::OneKey(clients) => format!("1 key, {clients} clients"),
        }
    }

    fn tasks(self, contender: &Contender) -> Vec<Task> {
        match self {
            Self::Distinct(tasks) => (0..tasks)
                .map(|number| contender.task(number, 1, &number.to_string()))
                .collect(),
            Self::OneKey(clients) => (0..64)
                .map(|number| contender.task(number, clients, "wanted"))
                .collect(),
        }
    }
}

/// What one contender did in one situation: one value per round.
pub(crate) struct Row {
    pub(crate) contender: &'static str,
    pub(crate) what: &'static str,
    pub(crate) servers: u32,
    pub(crate) situation: Situation,
    pub(crate) pairs_per_s: Vec<f64>,
    /// Processor time of all servers and of this process, per pair.
    pub(crate) server_us: Vec<f64>,
    pub(crate) client_us: Vec<f64>,
    /// The share of pairs that needed a second round trip. Empty if not known.
    pub(crate) confirms: Vec<f64>,
    /// Jain's index of the tasks' pairs.
    pub(crate) fairness: Vec<f64>,
    /// Processors busy with neither.
    pub(crate) others: Vec<f64>,
}

/// Measures every contender in every situation in every round.
pub(crate) async fn run(
    contenders: &[Contender],
    servers: u32,
    situations: &[Situation],
    plan: &Plan,
    pids: &[u32],
) -> Result<Vec<Row>, Failure> {
    let clocks = Clocks::of(pids, &[std::process::id()])?;
    let row = |situation: &Situation, contender: &Contender| Row {
        contender: contender.name,
        what: contender.what,
        servers,
        situation: *situation,
        pairs_per_s: Vec::new(),
        server_us: Vec::new(),
        client_us: Vec::new(),
        confirms: Vec::new(),
        fairness: Vec::new(),
        others: Vec::new(),
    };
    let mut rows: Vec<Row> = situations
        .iter()
        .flat_map(|situation| contenders.iter().map(|contender| row(situation, contender)))
        .collect();
    for round in 0..plan.rounds {
        eprintln!("{servers} servers, round {} of {}", round + 1, plan.rounds);
        for at in 0..situations.len() {
            for index in order(round, contenders.len()) {
                let row = &mut rows[at * contenders.len() + index];
                slice(&contenders[index], plan, &clocks, row).await?;
            }
        }
    }
    Ok(rows)
}

/// Runs `contender` for the warm-up and the measured part.
async fn slice(
    contender: &Contender,
    plan: &Plan,
    clocks: &Clocks,
    row: &mut Row,
) -> Result<(), Failure> {
    let timing = match row.situation {
        Situation::Distinct(_) => plan.distinct,
        Situation::OneKey(_) => plan.one_key,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let mut running = JoinSet::new();
    let mut made = Vec::new();
    for task in row.situation.tasks(contender) {
        let pairs = Arc::new(AtomicU64::new(0));
        made.push(pairs.clone());
        running.spawn(work(task, pairs, stop.clone()));
    }
    let pairs = || -> Vec<u64> { made.iter().map(|pairs| pairs.load(Relaxed)).collect() };
    sleep(timing.warm_up).await;
    let (from, before, second_before) = (clocks.read()?, pairs(), contender.second_rounds());
    sleep(timing.length).await;
    let (to, after, second_after) = (clocks.read()?, pairs(), contender.second_rounds());
    stop.store(true, Relaxed);
    while let Some(worked) = running.join_next().await {
        worked??;
    }
    let made: Vec<f64> = after
        .iter()
        .zip(before)
        .map(|(after, before)| (after - before) as f64)
        .collect();
    let pairs: f64 = made.iter().sum();
    let squares: f64 = made.iter().map(|made| made * made).sum();
    let per_pair = |time: Duration| time.as_secs_f64() * 1e6 / pairs;
    row.pairs_per_s
        .push(pairs / (to.at - from.at).as_secs_f64());
    row.server_us.push(per_pair(to.server - from.server));
    row.client_us.push(per_pair(to.client - from.client));
    row.fairness
        .push(pairs * pairs / (made.len() as f64 * squares));
    row.others.push(from.others(&to));
    let second = second_after.zip(second_before);
    row.confirms
        .extend(second.map(|(after, before)| (after - before) as f64 / pairs));
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
