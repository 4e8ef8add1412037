//! Rounds of slices: which contender runs when, and how many pairs it makes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use ringfence_benches::{Failure, Timing, now, order};
use serde::Serialize;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::contenders::{Engine, Kind, Server, Situation, Task};

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
    pub(crate) engine: Engine,
    pub(crate) situation: Situation,
    pub(crate) contender: Kind,
    pub(crate) pairs_per_s: Vec<f64>,
}

/// Measures every contender in every situation in every round.
pub(crate) async fn run(server: &Server, plan: &Plan) -> Result<Vec<Row>, Failure> {
    let of = |situation| {
        Kind::ALL.map(|contender| Row {
            engine: server.engine,
            situation,
            contender,
            pairs_per_s: Vec::new(),
        })
    };
    let mut rows: Vec<Row> = Situation::ALL.into_iter().flat_map(of).collect();
    for round in 0..plan.rounds {
        let name = server.engine.name();
        eprintln!("{name}: round {} of {}", round + 1, plan.rounds);
        for group in rows.chunks_mut(Kind::ALL.len()) {
            for index in order(round, group.len()) {
                slice(server, plan.timing, &mut group[index]).await?;
            }
        }
    }
    Ok(rows)
}

/// Runs a contender for the warm-up and the measured part.
async fn slice(server: &Server, timing: Timing, row: &mut Row) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let pairs = Arc::new(AtomicU64::new(0));
    let mut running = JoinSet::new();
    for task in server.tasks(row.situation, row.contender) {
        running.spawn(work(task, pairs.clone(), stop.clone()));
    }
    sleep(timing.warm_up).await;
    let (from, before) = (now(), pairs.load(Relaxed));
    sleep(timing.length).await;
    let (to, after) = (now(), pairs.load(Relaxed));
    stop.store(true, Relaxed);
    while let Some(worked) = running.join_next().await {
        worked??;
    }
    let made = (after - before) as f64;
    row.pairs_per_s.push(made / (to - from).as_secs_f64());
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
