//! Try, subscribe, wait, try again: the way of Redisson's `RLock`, over the plain redis crate.
//!
//! The record is a hash with the owner's count of entries and an expiry. A process that finds it taken subscribes
//! to the key's channel (one subscription a process, for as long as any of its tasks waits) and waits
//! for a message, or for the holder's lease to run out, then tries again. Unlocking deletes the record
//! and publishes; a message lets one waiter of each subscribed process try.
//!
//! Left out, in its favour: the watchdog, which with leases this long would have nothing to do, and
//! the record of each unlock for answering a repeated one.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use redis::{Script, aio::MultiplexedConnection};
use tokio::{
    sync::{Mutex, Semaphore},
    time::timeout,
};

use super::{Worker, listener::Listener};
use crate::{Failure, LEASE};

/// Answers -3 if the owner has the lock now, otherwise the milliseconds until it expires.
const LOCK: &str = "
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return redis.call('PTTL', KEYS[1])
end
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return -3";

const TAKEN: i64 = -3;

/// Answers whether the owner had the lock.
const UNLOCK: &str = "
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', KEYS[2], 0)
end
return 1";

/// What the tasks of a process share.
pub(super) struct Process {
    commands: MultiplexedConnection,
    lock: Script,
    unlock: Script,
    key: String,
    channel: String,
    waiting: Mutex<Waiting>,
    /// Has a permit for each message that no task has used yet.
    messages: Arc<Semaphore>,
}

struct Waiting {
    tasks: usize,
    listening: MultiplexedConnection,
}

impl Process {
    pub(super) async fn new(url: &str, key: &str) -> Result<Arc<Self>, Failure> {
        let Listener {
            commands,
            listening,
            messages,
        } = Listener::new(url).await?;
        Ok(Arc::new(Self {
            commands,
            lock: Script::new(LOCK),
            unlock: Script::new(UNLOCK),
            key: key.to_owned(),
            channel: format!("channel:{key}"),
            waiting: Mutex::new(Waiting {
                tasks: 0,
                listening,
            }),
            messages,
        }))
    }

    pub(super) fn task(self: &Arc<Self>, task: usize) -> Task {
        Task {
            process: self.clone(),
            owner: format!("{}:{task}", std::process::id()),
        }
    }

    /// Subscribes, unless a task that waits has.
    async fn subscribe(&self) -> Result<(), Failure> {
        let mut waiting = self.waiting.lock().await;
        if waiting.tasks == 0 {
            self.messages.forget_permits(usize::MAX);
            waiting.listening.subscribe(&self.channel).await?;
        }
        waiting.tasks += 1;
        Ok(())
    }

    /// Ends the subscription, unless another task waits.
    async fn unsubscribe(&self) -> Result<(), Failure> {
        let mut waiting = self.waiting.lock().await;
        waiting.tasks -= 1;
        if waiting.tasks == 0 {
            waiting.listening.unsubscribe(&self.channel).await?;
        }
        Ok(())
    }
}

pub(super) struct Task {
    process: Arc<Process>,
    owner: String,
}

impl Task {
    /// Answers for how long another has the lock, or none if this task has it now.
    async fn try_lock(&self) -> Result<Option<Duration>, Failure> {
        let mut lock = self.process.lock.key(&self.process.key);
        lock.arg(&self.owner).arg(LEASE.as_millis() as u64);
        let answer: i64 = lock
            .invoke_async(&mut self.process.commands.clone())
            .await?;
        Ok((answer != TAKEN).then(|| Duration::from_millis(answer.unsigned_abs())))
    }

    async fn wait(&self) -> Result<(), Failure> {
        while let Some(remaining) = self.try_lock().await? {
            let message = timeout(remaining, self.process.messages.acquire()).await;
            if let Ok(permit) = message {
                permit?.forget();
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Worker for Task {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        if self.try_lock().await?.is_some() {
            self.process.subscribe().await?;
            self.wait().await?;
            self.process.unsubscribe().await?;
        }
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let Process {
            unlock,
            key,
            channel,
            commands,
            ..
        } = &*self.process;
        let mut unlock = unlock.key(key);
        unlock
            .key(channel)
            .arg(&self.owner)
            .arg(LEASE.as_millis() as u64);
        let held: bool = unlock.invoke_async(&mut commands.clone()).await?;
        if held {
            return Ok(());
        }
        Err(format!("{key}: released, and was not held").into())
    }
}
