//! Tasks that take and give back locks on a schedule.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use ringfence_client::{Client, ReleaseAnswer};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{sleep, sleep_until},
};

use crate::now;

/// Between the pairs of one task.
const PERIOD: Duration = Duration::from_millis(10);

/// A timer is up to a millisecond late by itself. A greater delay counts as the pair's.
const TIMER_LATE: Duration = Duration::from_millis(2);

/// A pair of acquire and release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) shard: usize,
    /// When it was to begin.
    pub(crate) due: Instant,
    /// From then to its end.
    pub(crate) latency: Duration,
    /// Whether the lock was granted, and held to the end.
    pub(crate) ok: bool,
}

/// The tasks; they end with this value.
pub(crate) struct Load {
    _tasks: JoinSet<()>,
    pairs: mpsc::UnboundedReceiver<Pair>,
    /// By how much each task is behind its schedule, in nanoseconds.
    behind: Vec<Arc<AtomicU64>>,
    /// How long a pair may wait for its lock.
    wait: Duration,
}

impl Load {
    /// Starts a task for each key; `keys` are by shard. A pair waits for its lock as long as `wait`.
    pub(crate) fn start(client: &Client, keys: &[Vec<String>], wait: Duration) -> Self {
        let (sender, pairs) = mpsc::unbounded_channel();
        let (mut tasks, mut behind) = (JoinSet::new(), Vec::new());
        let count = keys.iter().map(Vec::len).sum::<usize>() as u32;
        let start = now();
        for (shard, keys) in keys.iter().enumerate() {
            for key in keys {
                let late = Arc::new(AtomicU64::new(0));
                let task = Task {
                    client: client.clone(),
                    key: key.clone(),
                    shard,
                    pairs: sender.clone(),
                    behind: late.clone(),
                    wait,
                };
                // Spread over the period, so that tasks do not all fall due together.
                let first = start + PERIOD * behind.len() as u32 / count;
                behind.push(late);
                tasks.spawn(task.run(first));
            }
        }
        Self {
            _tasks: tasks,
            pairs,
            behind,
            wait,
        }
    }

    /// Waits until every task is back on its schedule, so that all pairs due before are done.
    pub(crate) async fn on_schedule(&self) {
        let late = |behind: &Arc<AtomicU64>| behind.load(Relaxed) > PERIOD.as_nanos() as u64;
        // First let those that are stuck in a pair notice.
        sleep(2 * self.wait).await;
        while self.behind.iter().any(late) {
            sleep(PERIOD).await;
        }
    }

    /// The pairs done since this was last asked.
    pub(crate) fn take(&mut self) -> Vec<Pair> {
        std::iter::from_fn(|| self.pairs.try_recv().ok()).collect()
    }
}

struct Task {
    client: Client,
    key: String,
    shard: usize,
    pairs: mpsc::UnboundedSender<Pair>,
    behind: Arc<AtomicU64>,
    wait: Duration,
}

impl Task {
    async fn run(self, first: Instant) {
        let mut due = first;
        loop {
            let begun = begin(due).await;
            let ok = self.pair().await;
            let pair = Pair {
                shard: self.shard,
                due,
                latency: begun.elapsed(),
                ok,
            };
            if self.pairs.send(pair).is_err() {
                return;
            }
            due += PERIOD;
            let late = now().saturating_duration_since(due);
            self.behind.store(late.as_nanos() as u64, Relaxed);
        }
    }

    async fn pair(&self) -> bool {
        let lock = self.client.lock(&self.key).wait(self.wait);
        match lock.acquire().await {
            Ok(guard) => guard.release().await == ReleaseAnswer::Held,
            Err(_) => false,
        }
    }
}

/// Waits until `due`; since when a pair due then counts. One that is begun late, because the one before
/// it was, counts from when it was due.
async fn begin(due: Instant) -> Instant {
    if now() >= due {
        return due;
    }
    sleep_until(due.into()).await;
    let woken = now();
    if woken - due > TIMER_LATE { due } else { woken }
}
