//! Tasks that take and give back locks.

use std::time::{Duration, Instant};

use ringfence_client::{Client, LockKey, Namespace};
use tokio::{
    sync::mpsc,
    task::{JoinSet, yield_now},
    time::sleep_until,
};

use crate::{Failure, now};

/// Keys of a task, which nobody else wants.
const KEYS: usize = 512;

/// An acquire that was granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acquired {
    /// When it began.
    pub(crate) at: Instant,
    pub(crate) latency: Duration,
    /// Its slot was on its way when it began, as far as its client knew.
    pub(crate) on_its_way: bool,
}

/// The tasks; they end with this value.
pub(crate) struct Load {
    tasks: JoinSet<Result<(), Failure>>,
    acquired: mpsc::UnboundedReceiver<Acquired>,
}

impl Load {
    /// Starts `count` tasks, which do `rate` acquires a second, if they can; without, as many as they can.
    pub(crate) fn start(client: &Client, count: usize, rate: Option<u32>) -> Self {
        let (sender, acquired) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let every = rate.map(|rate| Duration::from_secs(count as u64) / rate);
        for task in 0..count {
            tasks.spawn(run(client.clone(), task, every, sender.clone()));
        }
        Self { tasks, acquired }
    }

    /// The acquires done since this was last asked.
    ///
    /// # Errors
    ///
    /// What made a task end.
    pub(crate) fn take(&mut self) -> Result<Vec<Acquired>, Failure> {
        match self.tasks.try_join_next() {
            Some(ended) => Err(ended?.err().unwrap_or_else(|| "a task ended".into())),
            None => Ok(std::iter::from_fn(|| self.acquired.try_recv().ok()).collect()),
        }
    }
}

async fn run(
    client: Client,
    task: usize,
    every: Option<Duration>,
    acquired: mpsc::UnboundedSender<Acquired>,
) -> Result<(), Failure> {
    let slots = client.topology().table.slots();
    let namespace = Namespace::default();
    let keys: Result<Vec<_>, Failure> = (0..KEYS)
        .map(|number| {
            let name = format!("load/{task}/{number}");
            let key = LockKey::new(&namespace, name.as_bytes(), slots)?;
            Ok((name, key.slot()))
        })
        .collect();
    let keys = keys?;
    let mut turn = now();
    for (key, slot) in keys.iter().cycle() {
        let on_its_way = client.topology().migration_of(*slot).is_some();
        let at = now();
        let guard = client.lock(key).acquire().await?;
        let latency = at.elapsed();
        guard.release().await;
        let done = Acquired {
            at,
            latency,
            on_its_way,
        };
        if acquired.send(done).is_err() {
            return Ok(());
        }
        match every {
            Some(every) => {
                turn += every;
                sleep_until(turn.into()).await;
            }
            None => yield_now().await,
        }
    }
    Ok(())
}
