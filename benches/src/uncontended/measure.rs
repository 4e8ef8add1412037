//! Rounds of slices: which contender runs when, for how long, and at which cost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use tokio::{task::JoinSet, time::sleep};

use super::contenders::{Contender, Worker};
use crate::{Clocks, Failure, Place, Reading, Timing, now, order};

/// Longer ones count as this.
const LATENCY_MAX: Duration = Duration::from_secs(10);

/// The measurements to make.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) tasks: Vec<usize>,
    pub(crate) rounds: usize,
    pub(crate) timing: Timing,
    pub(crate) place: Place,
}

/// What one contender did at one number of tasks: one value a round.
pub(crate) struct Row {
    pub(crate) contender: &'static str,
    pub(crate) what: &'static str,
    pub(crate) tasks: usize,
    pub(crate) pairs_per_s: Vec<f64>,
    /// Of processor time, a pair.
    pub(crate) server_us: Vec<f64>,
    /// Of processor time, a pair; all of this process.
    pub(crate) client_us: Vec<f64>,
    /// Processors that were busy with neither the server nor this process.
    pub(crate) others: Vec<f64>,
    /// Of all rounds, in nanoseconds.
    pub(crate) latencies: Histogram<u64>,
}

/// Measures every contender at every number of tasks in every round. Rows by tasks, then in the
/// order of `contenders`.
pub(crate) async fn run(
    contenders: &[Box<dyn Contender>],
    plan: &Plan,
    server: u32,
) -> Result<Vec<Row>, Failure> {
    let clocks = Clocks::of(&[server], &[std::process::id()])?;
    let mut rows = Vec::new();
    for &tasks in &plan.tasks {
        rows.extend(
            contenders
                .iter()
                .map(|contender| Row::new(contender.as_ref(), tasks)),
        );
    }
    for round in 0..plan.rounds {
        eprintln!("round {} of {}", round + 1, plan.rounds);
        for (at, &tasks) in plan.tasks.iter().enumerate() {
            for index in order(round, contenders.len()) {
                let slice = slice(contenders[index].as_ref(), tasks, plan.timing, &clocks).await?;
                rows[at * contenders.len() + index].add(&slice);
            }
        }
    }
    Ok(rows)
}

impl Row {
    fn new(contender: &dyn Contender, tasks: usize) -> Self {
        Self {
            contender: contender.name(),
            what: contender.what(),
            tasks,
            pairs_per_s: Vec::new(),
            server_us: Vec::new(),
            client_us: Vec::new(),
            others: Vec::new(),
            latencies: Histogram::new_with_bounds(1, LATENCY_MAX.as_nanos() as u64, 3)
                .expect("1 is less, and 3 digits are few enough"),
        }
    }

    fn add(&mut self, slice: &Slice) {
        let Slice { from, to, turns } = slice;
        let mut pairs = 0.0;
        for turn in turns {
            pairs += turn.locks as f64 * turn.part_within(from.at, to.at);
            if from.at < turn.end && turn.end <= to.at {
                let nanos = (turn.end - turn.start).as_nanos() as u64;
                self.latencies.saturating_record_n(nanos, turn.locks as u64);
            }
        }
        let seconds = (to.at - from.at).as_secs_f64();
        let (server, client) = (to.server - from.server, to.client - from.client);
        self.pairs_per_s.push(pairs / seconds);
        self.server_us.push(server.as_secs_f64() * 1e6 / pairs);
        self.client_us.push(client.as_secs_f64() * 1e6 / pairs);
        self.others.push(from.others(to));
    }
}

/// What happened while one contender ran.
struct Slice {
    from: Reading,
    to: Reading,
    turns: Vec<Turn>,
}

/// One turn of a worker.
struct Turn {
    start: Instant,
    end: Instant,
    locks: usize,
}

impl Turn {
    /// The part of the turn, 0 to 1, between `from` and `to`: turns that an edge cuts count in part.
    fn part_within(&self, from: Instant, to: Instant) -> f64 {
        let within = self
            .end
            .min(to)
            .saturating_duration_since(self.start.max(from));
        within.as_secs_f64() / (self.end - self.start).as_secs_f64()
    }
}

/// Runs `contender` for the warm-up and the measured part.
async fn slice(
    contender: &dyn Contender,
    tasks: usize,
    timing: Timing,
    clocks: &Clocks,
) -> Result<Slice, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut running = JoinSet::new();
    for worker in contender.workers(tasks).await? {
        running.spawn(work(worker, stop.clone()));
    }
    sleep(timing.warm_up).await;
    let from = clocks.read()?;
    sleep(timing.length).await;
    let to = clocks.read()?;
    stop.store(true, Relaxed);
    let mut turns = Vec::new();
    while let Some(worked) = running.join_next().await {
        turns.append(&mut worked??);
    }
    Ok(Slice { from, to, turns })
}

/// Takes turns until told to stop. Nothing is between two turns, so each starts as the one before
/// ends.
async fn work(mut worker: Box<dyn Worker>, stop: Arc<AtomicBool>) -> Result<Vec<Turn>, Failure> {
    let mut turns = Vec::with_capacity(64);
    let locks = worker.locks();
    let mut start = now();
    while !stop.load(Relaxed) {
        worker.pair().await?;
        let end = now();
        turns.push(Turn { start, end, locks });
        start = end;
    }
    Ok(turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_cut_by_an_edge_counts_in_part() {
        let zero = now();
        let at = |millis| zero + Duration::from_millis(millis);
        let turn = Turn {
            start: at(10),
            end: at(20),
            locks: 1,
        };
        assert!((turn.part_within(at(15), at(40)) - 0.5).abs() < 1e-9);
        assert!((turn.part_within(at(0), at(40)) - 1.0).abs() < 1e-9);
        assert_eq!(turn.part_within(at(30), at(40)), 0.0);
    }
}
