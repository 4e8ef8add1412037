//! The least that first come, first served can be, over the plain redis crate: a list of processes.
//!
//! A process asks once for all of its tasks, which stand in line for a mutex. Whoever gives the lock back passes it on, tells
//! the next process on a channel of its own, and queues its own again in the same call. Nothing else: no token, no
//! life, no slots, no ticket that ends; a process that dies is waited for, and a message that is lost, for ever.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use async_trait::async_trait;
use redis::Script;
use ringfence_benches::{Failure, LEASE};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Worker, listener::Listener};

/// Answers 1 if the process has the lock now; otherwise it is told when.
const LOCK: &str = "
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
redis.call('RPUSH', KEYS[2], ARGV[1])
return 0";

/// Passes the lock on, and queues its process again if that wants it, which the third argument says.
const UNLOCK: &str = "
if ARGV[3] == '1' then redis.call('RPUSH', KEYS[2], ARGV[1]) end
local next = redis.call('LPOP', KEYS[2])
if next then
  redis.call('SET', KEYS[1], next, 'PX', ARGV[2])
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
    /// Whose turn it is here; and whether the process is queued for it.
    line: Arc<Mutex<bool>>,
    in_line: AtomicUsize,
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
            in_line: AtomicUsize::new(0),
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
    held: Option<OwnedMutexGuard<bool>>,
}

#[async_trait]
impl Worker for Task {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        let process = &self.process;
        process.in_line.fetch_add(1, Relaxed);
        let queued = process.line.clone().lock_owned().await;
        process.in_line.fetch_sub(1, Relaxed);
        let mut granted = false;
        if !*queued {
            let mut lock = process.lock.prepare_invoke();
            lock.key(&process.keys)
                .arg(&process.me)
                .arg(LEASE.as_millis() as u64);
            granted = lock
                .invoke_async(&mut process.listener.commands.clone())
                .await?;
        }
        if !granted {
            process.listener.messages.acquire().await?.forget();
        }
        self.held = Some(queued);
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let process = &self.process;
        let mut queued = self.held.take().ok_or("nothing is held")?;
        *queued = process.in_line.load(Relaxed) > 0;
        let mut unlock = process.unlock.prepare_invoke();
        unlock
            .key(&process.keys)
            .arg(&process.me)
            .arg(LEASE.as_millis() as u64)
            .arg(u8::from(*queued));
        let () = unlock
            .invoke_async(&mut process.listener.commands.clone())
            .await?;
        Ok(())
    }
}
