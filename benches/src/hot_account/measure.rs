//! Rounds of slices: which contender runs when, for how long, and its results.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::{
    contenders::{Account, Contender, Taker},
    servers::Servers,
    setup::Setup,
    worker::Assignment,
};
use crate::{
    Clocks, Failure, Place, Reading, Timing, now, order,
    workers::{Window, Workers, sleep_until},
};

/// Longer ones count as this.
const LATENCY_MAX: Duration = Duration::from_secs(60);

/// One deduction in so many is timed: two looks at the clock, and a histogram that all share, would cost a tenth of what
/// the fastest contender's deduction does.
const TIMED_ONE_IN: usize = 16;

/// What a task has taken: on a cache line of its own, as it is written all the time.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Taken(AtomicU64);

/// What is to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) setups: Vec<Setup>,
    pub(crate) tasks: Vec<usize>,
    /// In how many processes; 1: in this one.
    pub(crate) processes: Vec<usize>,
    pub(crate) rounds: usize,
    pub(crate) timing: Timing,
    pub(crate) place: Place,
}

/// What one contender did with one number of tasks: one value a round.
pub(crate) struct Row {
    pub(crate) setup: Setup,
    pub(crate) tasks: usize,
    pub(crate) processes: usize,
    pub(crate) deductions_per_s: Vec<f64>,
    /// Processors that were busy with neither a server nor this process.
    pub(crate) others: Vec<f64>,
    /// Of all rounds, in nanoseconds.
    pub(crate) latencies: Histogram<u64>,
}

/// What some tasks of one process took.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    taken: u64,
    /// Those within the window, a second.
    per_s: f64,
    /// In nanoseconds, and how many took as long.
    latencies: Vec<(u64, u64)>,
}

/// Measures every contender with every number of tasks and processes in every round. Rows by tasks, then in the order of
/// `contenders`.
pub(crate) async fn run(
    contenders: &[Contender],
    plan: &Plan,
    servers: &Servers,
) -> Result<Vec<Row>, Failure> {
    let crowds = plan.processes.iter();
    let crowds =
        crowds.flat_map(|&processes| plan.tasks.iter().map(move |&tasks| (tasks, processes)));
    let crowds: Vec<_> = crowds.collect();
    let mut rows = Vec::new();
    for &crowd in &crowds {
        let row = |contender: &Contender| Row::new(contender.setup, crowd);
        rows.extend(contenders.iter().map(row));
    }
    for round in 0..plan.rounds {
        eprintln!("round {} of {}", round + 1, plan.rounds);
        for (at, (tasks, _)) in crowds.iter().enumerate() {
            for index in order(round, contenders.len()) {
                let row = &mut rows[at * contenders.len() + index];
                let contender = &contenders[index];
                let slice = row.slice(contender, plan.timing, servers).await;
                slice.map_err(|error| format!("{}, {tasks} tasks: {error}", contender.setup))?;
            }
        }
    }
    Ok(rows)
}

impl Row {
    pub(crate) fn new(setup: Setup, (tasks, processes): (usize, usize)) -> Self {
        Self {
            setup,
            tasks,
            processes,
            deductions_per_s: Vec::new(),
            others: Vec::new(),
            latencies: latencies(),
        }
    }

    /// Runs `contender` for the warm-up and the measured part.
    pub(crate) async fn slice(
        &mut self,
        contender: &Contender,
        timing: Timing,
        servers: &Servers,
    ) -> Result<(), Failure> {
        let (account, takers) = (contender.account.clone(), self.tasks);
        let mut keeping = JoinSet::new();
        keeping.spawn(async move { account.keep(takers).await });
        let (outcomes, others) = match self.processes {
            1 => {
                let clocks = Clocks::of(&servers.pids(), &[std::process::id()])?;
                let window = Window::of(timing)?;
                let account = contender.account.clone();
                let taking = take(account, 0..self.tasks, self.tasks, window);
                let (outcome, others) = tokio::try_join!(taking, others(&clocks, window))?;
                (vec![outcome], others)
            }
            processes => {
                let assignments = Assignment::shares(contender, self.tasks, processes)?;
                let mut workers: Workers<Outcome> =
                    Workers::start("hot-account", &assignments).await?;
                let clocks = Clocks::of(&servers.pids(), &workers.pids())?;
                let window = Window::of(timing)?;
                workers.begin(window).await?;
                let others = others(&clocks, window).await?;
                (workers.outcomes().await?, others)
            }
        };
        keeping.shutdown().await;
        self.others.push(others);
        self.deductions_per_s
            .push(outcomes.iter().map(|outcome| outcome.per_s).sum());
        for outcome in &outcomes {
            contender.taken.fetch_add(outcome.taken, Relaxed);
            for &(latency, count) in &outcome.latencies {
                self.latencies.record_n(latency, count)?;
            }
        }
        Ok(())
    }

    /// In milliseconds, of all rounds.
    pub(crate) fn latency_ms(&self, quantile: f64) -> f64 {
        self.latencies.value_at_quantile(quantile) as f64 / 1e6
    }
}

/// How many processors were busy with neither a server nor a client during the window.
async fn others(clocks: &Clocks, window: Window) -> Result<f64, Failure> {
    sleep_until(window.from).await?;
    let from: Reading = clocks.read()?;
    sleep_until(window.to).await?;
    Ok(from.others(&clocks.read()?))
}

/// So many tasks, of `of`, take until the window is over.
pub(crate) async fn take(
    account: Arc<dyn Account>,
    tasks: Range<usize>,
    of: usize,
    window: Window,
) -> Result<Outcome, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::new(Mutex::new(latencies()));
    let taken: Arc<[Taken]> = tasks.clone().map(|_| Taken::default()).collect();
    let sum = || taken.iter().map(|taken| taken.0.load(Relaxed)).sum::<u64>();
    let mut running = JoinSet::new();
    for (place, number) in tasks.enumerate() {
        let taker = Taker { number, of };
        let (account, taken) = (account.clone(), taken.clone());
        let (stop, seen) = (stop.clone(), seen.clone());
        running.spawn(async move {
            for turn in number.. {
                if stop.load(Relaxed) {
                    break;
                }
                let start = turn.is_multiple_of(TIMED_ONE_IN).then(now);
                account.deduct(taker).await?;
                taken[place].0.fetch_add(1, Relaxed);
                if let Some(start) = start {
                    let took = start.elapsed().as_nanos() as u64;
                    seen.lock()
                        .expect("nobody panics with it")
                        .saturating_record(took);
                }
            }
            Ok::<_, Failure>(())
        });
    }
    sleep_until(window.from).await?;
    seen.lock().expect("nobody panics with it").reset();
    let (from, before) = (now(), sum());
    sleep_until(window.to).await?;
    let (within, seconds) = (sum() - before, from.elapsed().as_secs_f64());
    stop.store(true, Relaxed);
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    let seen = seen.lock().expect("nobody panics with it");
    let steps = seen.iter_recorded();
    let latencies = steps.map(|step| (step.value_iterated_to(), step.count_at_value()));
    Ok(Outcome {
        taken: sum(),
        per_s: within as f64 / seconds,
        latencies: latencies.collect(),
    })
}

fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX.as_nanos() as u64, 3)
        .expect("1 is less, and 3 digits are few enough")
}
