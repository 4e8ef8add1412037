//! The least that first come, first served can be, over the plain redis crate: a list of processes.
//!
//! A process asks once for all of its tasks, which stand in line for a mutex. The releasing process passes the lock on and
//! tells the next process on a channel of its own; the next task in the line then asks again, in a call of its own, as
//! in Ringfence. Nothing else: no token, no life, no slots, no ticket that ends; a process that dies is waited for, and a
//! message that is lost, for ever.

use std::sync::Arc;

use async_trait::async_trait;
use redis::Script;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Worker, listener::Listener};
use crate::{Failure, LEASE};

/// Answers 1 if the process has the lock now; otherwise it is told when.
const LOCK: &str = "
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
redis.call('RPUSH', KEYS[2], ARGV[1])
return 0";

/// Passes the lock on.
const UNLOCK: &str = "
local next = redis.call('LPOP', KEYS[2])
if next then
  redis.call('SET', KEYS[1], next, 'PX', ARGV[1])
  redis.call('PUBLISH', 'turn:' .. next, 0)
else
  redis.call('DEL', KEYS[1])
end";

/// What the tasks of a process share.
pub(super) struct Process {
    /// Hears of the process's turns.
    listener: Listener,
    lock: Script,
    unlock: Script,
    keys: [String; 2],
    me: String,
    /// The task that has its turn.
    line: Arc<Mutex<()>>,
}

impl Process {
    pub(super) async fn new(url: &str, key: &str) -> Result<Arc<Self>, Failure> {
        let mut listener = Listener::new(url).await?;
        let me = std::process::id().to_string();
        listener.listening.subscribe(format!("turn:{me}")).await?;
        Ok(Arc::new(Self {
            listener,
            lock: Script::new(LOCK),
            unlock: Script::new(UNLOCK),
            keys: [key.to_owned(), format!("queue:{key}")],
            me,
            line: Arc::default(),
        }))
    }

    pub(super) fn task(self: &Arc<Self>) -> Task {
        Task {
            process: self.clone(),
            held: None,
        }
    }
}

pub(super) struct Task {
    process: Arc<Process>,
    held: Option<OwnedMutexGuard<()>>,
}

#[async_trait]
impl Worker for Task {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        let process = &self.process;
        let turn = process.line.clone().lock_owned().await;
        let mut lock = process.lock.prepare_invoke();
        lock.key(&process.keys)
            .arg(&process.me)
            .arg(LEASE.as_millis() as u64);
        let granted: bool = lock
            .invoke_async(&mut process.listener.commands.clone())
            .await?;
        if !granted {
            process.listener.messages.acquire().await?.forget();
        }
        self.held = Some(turn);
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let process = &self.process;
        let _turn = self.held.take().ok_or("nothing is held")?;
        let mut unlock = process.unlock.prepare_invoke();
        unlock.key(&process.keys).arg(LEASE.as_millis() as u64);
        let () = unlock
            .invoke_async(&mut process.listener.commands.clone())
            .await?;
        Ok(())
    }
}
