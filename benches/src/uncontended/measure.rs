//! Rounds of slices: who runs when, for how long, and what that cost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use nix::{
    time::{ClockId, clock_getcpuclockid},
    unistd::Pid,
};
use ringfence_benches::{busy_time, now};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    contenders::{Contender, Failure, Worker},
    place::Place,
};

/// Longer ones count as this.
const LATENCY_MAX: Duration = Duration::from_secs(10);

/// What is to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) tasks: Vec<usize>,
    pub(crate) rounds: usize,
    pub(crate) timing: Timing,
    pub(crate) place: Place,
}

/// How long a contender runs at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Before the measured part.
    pub(crate) warm_up: Duration,
    pub(crate) length: Duration,
}

impl Timing {
    pub(crate) fn of_ms(warm_up: u64, length: u64) -> Self {
        Self {
            warm_up: Duration::from_millis(warm_up),
            length: Duration::from_millis(length),
        }
    }
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
    let server = clock_getcpuclockid(Pid::from_raw(server as i32))?;
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
                let slice = slice(contenders[index].as_ref(), tasks, plan.timing, server).await?;
                rows[at * contenders.len() + index].add(&slice);
            }
        }
    }
    Ok(rows)
}

/// The order of turns in a round: another one is first each time, and every second round goes
/// backwards, so that nobody always runs after the same one.
fn order(round: usize, count: usize) -> Vec<usize> {
    let first = round % count.max(1);
    let nth = |step| {
        if round.is_multiple_of(2) {
            first + step
        } else {
            first + count - step
        }
    };
    (0..count).map(|step| nth(step) % count).collect()
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
        let others = (to.machine - from.machine).saturating_sub(server + client);
        self.pairs_per_s.push(pairs / seconds);
        self.server_us.push(server.as_secs_f64() * 1e6 / pairs);
        self.client_us.push(client.as_secs_f64() * 1e6 / pairs);
        self.others.push(others.as_secs_f64() / seconds);
    }
}

/// What happened while one contender ran.
struct Slice {
    from: Reading,
    to: Reading,
    turns: Vec<Turn>,
}

/// The clocks, read together.
struct Reading {
    at: Instant,
    server: Duration,
    client: Duration,
    machine: Duration,
}

impl Reading {
    fn take(server: ClockId) -> Result<Self, Failure> {
        let client = ClockId::CLOCK_PROCESS_CPUTIME_ID;
        Ok(Self {
            at: now(),
            server: server.now()?.into(),
            client: client.now()?.into(),
            machine: busy_time(),
        })
    }
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
    server: ClockId,
) -> Result<Slice, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut running = JoinSet::new();
    for worker in contender.workers(tasks).await? {
        running.spawn(work(worker, stop.clone()));
    }
    sleep(timing.warm_up).await;
    let from = Reading::take(server)?;
    sleep(timing.length).await;
    let to = Reading::take(server)?;
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
    fn in_every_round_another_is_first_and_nobody_is_left_out() {
        assert_eq!(order(0, 3), [0, 1, 2]);
        assert_eq!(order(1, 3), [1, 0, 2]);
        assert_eq!(order(2, 3), [2, 0, 1]);
        assert_eq!(order(3, 3), [0, 2, 1]);
    }

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
