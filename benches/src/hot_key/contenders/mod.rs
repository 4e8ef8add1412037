//! The contenders: all with the one key, each of its tasks with a worker of its own.

mod bare_queue;
mod listener;
mod mutex;
mod ringfence;
mod rslock;
mod try_subscribe;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::messages::Assignment;
use crate::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Who {
    Ringfence,
    /// Ringfence, under another name: what the machine does to a ratio.
    RingfenceAgain,
    /// Ringfence without local hand-off.
    HandoffOff,
    /// Ringfence, which keeps the lock for a while when nobody in the process has it.
    Linger,
    Rslock,
    TrySubscribe,
    BareQueue,
    Mutex,
}

impl Who {
    pub(crate) const ALL: [Self; 8] = [
        Self::Ringfence,
        Self::RingfenceAgain,
        Self::HandoffOff,
        Self::Linger,
        Self::Rslock,
        Self::TrySubscribe,
        Self::BareQueue,
        Self::Mutex,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ringfence => "ringfence",
            Self::RingfenceAgain => "ringfence-again",
            Self::HandoffOff => "handoff-off",
            Self::Linger => "linger",
            Self::Rslock => "rslock",
            Self::TrySubscribe => "try-subscribe",
            Self::BareQueue => "bare-queue",
            Self::Mutex => "mutex",
        }
    }

    /// What it is, for a reader of the report.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Ringfence | Self::RingfenceAgain => {
                "the client: lock(key).acquire(), guard.release()"
            }
            Self::HandoffOff => "the same with handoff(0, ..): every task asks the server",
            Self::Linger => "the same with linger(\"default\", 50 ms)",
            Self::Rslock => "the rslock crate: manager.acquire_no_guard(key), manager.unlock(lock)",
            Self::TrySubscribe => {
                "try, subscribe, wait for a message, try again: as Redisson's RLock"
            }
            Self::BareQueue => {
                "a list of processes, two script calls a turn: the least that first come, first served can be"
            }
            Self::Mutex => "tokio::sync::Mutex: no server, no lease, no other process",
        }
    }

    /// Whether it excludes tasks of other processes.
    pub(crate) fn spans_processes(self) -> bool {
        self != Self::Mutex
    }
}

/// A task's work. The boxed futures a turn costs are the same for everybody.
#[async_trait]
pub(crate) trait Worker: Send {
    /// Takes the lock, however long that takes. Answers the fencing token, where there is one.
    async fn acquire(&mut self) -> Result<Option<u64>, Failure>;
    /// Gives it back, and checks that it was held, where that can be known.
    async fn release(&mut self) -> Result<(), Failure>;
}

/// Gets the server at `url`, which is new, ready for everybody. Once, before any worker.
pub(crate) async fn prepare(url: &str) -> Result<(), Failure> {
    ringfence::found(url).await
}

/// The workers of one process, one a task, connected. Not timed.
pub(crate) async fn workers(assignment: &Assignment) -> Result<Vec<Box<dyn Worker>>, Failure> {
    let Assignment {
        who,
        setup,
        url,
        key,
    } = assignment;
    let tasks = 0..setup.tasks;
    Ok(match who {
        Who::Ringfence | Who::RingfenceAgain | Who::HandoffOff | Who::Linger => {
            let lock = ringfence::Ringfence::new(*who, url, key).await?;
            tasks.map(|_| boxed(lock.clone())).collect()
        }
        Who::Rslock => {
            let lock = rslock::Rslock::new(url, key);
            tasks.map(|_| boxed(lock.clone())).collect()
        }
        Who::TrySubscribe => {
            let lock = try_subscribe::Process::new(url, key).await?;
            tasks.map(|task| boxed(lock.task(task))).collect()
        }
        Who::BareQueue => {
            let lock = bare_queue::Process::new(url, key).await?;
            tasks.map(|_| boxed(lock.task())).collect()
        }
        Who::Mutex => {
            let lock = mutex::Mutex::default();
            tasks.map(|_| boxed(lock.clone())).collect()
        }
    })
}

fn boxed(worker: impl Worker + 'static) -> Box<dyn Worker> {
    Box::new(worker)
}
