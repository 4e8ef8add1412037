use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{Failure, Timing};

/// A task that makes no pair for this long is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// A task of a contender.
pub(crate) trait Task: Send + Sync + 'static {
    /// Acquires and releases once.
    fn pair(&self) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// What the tasks did in the measured part of a slice.
pub(crate) struct Slice<Read> {
    /// What was read at its beginning.
    pub(crate) from: Read,
    /// What was read at its end.
    pub(crate) to: Read,
    /// The pairs of each task.
    pub(crate) made: Vec<f64>,
}

impl<Read> Slice<Read> {
    /// Runs `tasks` for the warm-up and the measured part. `read` takes clocks and counters at its beginning and its end.
    ///
    /// # Errors
    ///
    /// A task fails, or is stuck; `read` fails.
    pub(crate) async fn run<T: Task>(
        tasks: impl IntoIterator<Item = T>,
        timing: Timing,
        read: impl Fn() -> Result<Read, Failure>,
    ) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut running, mut counts) = (JoinSet::new(), Vec::new());
        for task in tasks {
            let pairs = Arc::new(AtomicU64::new(0));
            counts.push(pairs.clone());
            running.spawn(work(task, pairs, stop.clone()));
        }
        let pairs = || -> Vec<u64> { counts.iter().map(|count| count.load(Relaxed)).collect() };
        sleep(timing.warm_up).await;
        let (from, before) = (read()?, pairs());
        sleep(timing.length).await;
        let (to, after) = (read()?, pairs());
        stop.store(true, Relaxed);
        while let Some(worked) = running.join_next().await {
            worked??;
        }
        let made = after.iter().zip(before);
        let made = made
            .map(|(after, before)| (after - before) as f64)
            .collect();
        Ok(Self { from, to, made })
    }

    /// The pairs of all tasks.
    pub(crate) fn pairs(&self) -> f64 {
        self.made.iter().sum()
    }

    /// Jain's index of the tasks' pairs: 1 if all made as many.
    pub(crate) fn fairness(&self) -> f64 {
        let squares: f64 = self.made.iter().map(|made| made * made).sum();
        self.pairs().powi(2) / (self.made.len() as f64 * squares)
    }
}

/// Makes pairs until told to stop.
async fn work(
    task: impl Task,
    pairs: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> Result<(), Failure> {
    while !stop.load(Relaxed) {
        let made = timeout(PATIENCE, task.pair()).await;
        made.map_err(|_| "a task is stuck")??;
        pairs.fetch_add(1, Relaxed);
    }
    Ok(())
}
