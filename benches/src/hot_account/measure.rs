//! Rounds of slices: which contender runs when, for how long, and its results.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hdrhistogram::Histogram;
use tokio::{task::JoinSet, time::sleep};

use super::{
    contenders::{Contender, Taker},
    servers::Servers,
    setup::Setup,
};
use crate::{Clocks, Failure, Place, Timing, now, order};

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
    pub(crate) rounds: usize,
    pub(crate) timing: Timing,
    pub(crate) place: Place,
}

/// What one contender did with one number of tasks: one value a round.
pub(crate) struct Row {
    pub(crate) setup: Setup,
    pub(crate) tasks: usize,
    pub(crate) deductions_per_s: Vec<f64>,
    /// Processors that were busy with neither a server nor this process.
    pub(crate) others: Vec<f64>,
    /// Of all rounds, in nanoseconds.
    pub(crate) latencies: Histogram<u64>,
}

/// Measures every contender with every number of tasks in every round. Rows by tasks, then in the order of
/// `contenders`.
pub(crate) async fn run(
    contenders: &[Contender],
    plan: &Plan,
    servers: &Servers,
) -> Result<Vec<Row>, Failure> {
    let clocks = Clocks::of(&servers.pids(), &[std::process::id()])?;
    let mut rows = Vec::new();
    for &tasks in &plan.tasks {
        rows.extend(
            contenders
                .iter()
                .map(|contender| Row::new(contender.setup, tasks)),
        );
    }
    for round in 0..plan.rounds {
        eprintln!("round {} of {}", round + 1, plan.rounds);
        for (at, &tasks) in plan.tasks.iter().enumerate() {
            for index in order(round, contenders.len()) {
                let row = &mut rows[at * contenders.len() + index];
                let contender = &contenders[index];
                let slice = row.slice(contender, plan.timing, &clocks).await;
                slice.map_err(|error| format!("{}, {tasks} tasks: {error}", contender.setup))?;
            }
        }
    }
    Ok(rows)
}

impl Row {
    pub(crate) fn new(setup: Setup, tasks: usize) -> Self {
        Self {
            setup,
            tasks,
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
        clocks: &Clocks,
    ) -> Result<(), Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new(latencies()));
        let taken: Arc<[Taken]> = (0..self.tasks).map(|_| Taken::default()).collect();
        let sum = || taken.iter().map(|taken| taken.0.load(Relaxed)).sum::<u64>();
        let mut running = JoinSet::new();
        for number in 0..self.tasks {
            let taker = Taker {
                number,
                of: self.tasks,
            };
            let (account, taken) = (contender.account.clone(), taken.clone());
            let (stop, seen) = (stop.clone(), seen.clone());
            running.spawn(async move {
                for turn in number.. {
                    if stop.load(Relaxed) {
                        break;
                    }
                    let start = turn.is_multiple_of(TIMED_ONE_IN).then(now);
                    account.deduct(taker).await?;
                    taken[number].0.fetch_add(1, Relaxed);
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
        let account = contender.account.clone();
        let mut keeping = JoinSet::new();
        let takers = self.tasks;
        keeping.spawn(async move { account.keep(takers).await });
        sleep(timing.warm_up).await;
        seen.lock().expect("nobody panics with it").reset();
        let (from, before) = (clocks.read()?, sum());
        sleep(timing.length).await;
        let (to, after) = (clocks.read()?, sum());
        stop.store(true, Relaxed);
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        contender.taken.fetch_add(sum(), Relaxed);
        keeping.shutdown().await;
        let seconds = (to.at - from.at).as_secs_f64();
        self.deductions_per_s
            .push((after - before) as f64 / seconds);
        self.others.push(from.others(&to));
        let seen = seen.lock().expect("nobody panics with it");
        Ok(self.latencies.add(&*seen)?)
    }

    /// In milliseconds, of all rounds.
    pub(crate) fn latency_ms(&self, quantile: f64) -> f64 {
        self.latencies.value_at_quantile(quantile) as f64 / 1e6
    }
}

fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX.as_nanos() as u64, 3)
        .expect("1 is less, and 3 digits are few enough")
}
