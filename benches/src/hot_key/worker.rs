//! A worker process: its tasks take turns at the key, and it says on stdout what they did.

use std::{sync::Arc, time::Duration};

use hdrhistogram::Histogram;
use tokio::{runtime::Runtime, task::JoinSet};

use super::{
    contenders::{self, Worker},
    exclusion::{Exclusion, HOLD_MIN},
    hold::Hold,
    messages::{Assignment, Outcome},
};
use crate::{
    Failure,
    workers::{Window, monotonic, serve},
};

/// Does what it is assigned to, in this process.
pub(crate) fn main(assignment: &Assignment) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let workers = runtime.block_on(contenders::workers(assignment))?;
    serve(|window| run(&runtime, workers, assignment.setup.hold(), window))
}

fn run(
    runtime: &Runtime,
    workers: Vec<Box<dyn Worker>>,
    hold: Duration,
    window: Window,
) -> Result<Outcome, Failure> {
    let exclusion = Arc::new(Exclusion::default());
    let logs: Result<Vec<Log>, Failure> = runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for worker in workers {
            tasks.spawn(work(worker, hold, exclusion.clone(), window));
        }
        let mut logs = Vec::new();
        while let Some(worked) = tasks.join_next().await {
            logs.push(worked??);
        }
        Ok(logs)
    });
    let logs = logs?;
    let mut waits = new_waits();
    for log in &logs {
        waits.add(&log.waits)?;
    }
    let exclusion = Arc::into_inner(exclusion).ok_or("a task is left over")?;
    Ok(Outcome {
        grants: logs.iter().map(|log| log.grants).collect(),
        waits: waits
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
            .collect(),
        held: logs.iter().map(|log| log.held).sum(),
        tenures: exclusion.tenures(),
    })
}

/// Takes turns until the window is over. A task that still waits then takes the lock once and gives
/// it back, so that nothing is left behind.
async fn work(
    mut worker: Box<dyn Worker>,
    hold: Duration,
    exclusion: Arc<Exclusion>,
    window: Window,
) -> Result<Log, Failure> {
    let mut log = Log::default();
    let timer = Hold::new()?;
    let mut asked = monotonic()?;
    while asked < window.to {
        let token = worker.acquire().await?;
        let granted = exclusion.enter()?;
        let checked = granted < window.checked;
        timer
            .pass(if checked { hold.max(HOLD_MIN) } else { hold })
            .await?;
        let left = exclusion.leave(granted, token)?;
        worker.release().await?;
        log.add(window, asked, granted, left);
        asked = monotonic()?;
    }
    Ok(log)
}

/// What one task was granted within the window.
struct Log {
    grants: u64,
    /// For how long, all together, in nanoseconds.
    held: u64,
    waits: Histogram<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            grants: 0,
            held: 0,
            waits: new_waits(),
        }
    }
}

impl Log {
    fn add(&mut self, window: Window, asked: u64, granted: u64, left: u64) {
        if window.has(granted) {
            self.grants += 1;
            self.held += left - granted;
        }
        // Leaving out a wait that the end cut would leave out the longest.
        if granted >= window.from {
            let until = granted.min(window.to);
            self.waits.saturating_record(until.saturating_sub(asked));
        }
    }
}

/// Waits in nanoseconds, to 1 %.
pub(crate) fn new_waits() -> Histogram<u64> {
    const LONGEST: u64 = 120_000_000_000;
    Histogram::new_with_bounds(1, LONGEST, 2).expect("1 is less, and 2 digits are few enough")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_the_end_cuts_counts_until_then_and_is_no_grant() {
        let window = Window {
            checked: 0,
            from: 100,
            to: 200,
        };
        let mut log = Log::default();
        log.add(window, 10, 60, 70);
        assert_eq!((log.grants, log.waits.len()), (0, 0), "before the window");
        log.add(window, 60, 110, 117);
        assert_eq!((log.grants, log.waits.max()), (1, 50), "into the window");
        log.add(window, 120, 900, 950);
        assert_eq!((log.grants, log.waits.max()), (1, 80), "out of the window");
        assert_eq!(log.held, 7, "of the one grant");
    }
}
