//! The rslock crate: Redlock, here with its quorum of one server.

use async_trait::async_trait;
use rslock::LockManager;

use super::{Contender, Failure, LEASE, Worker, one_each};

pub(crate) struct Rslock(LockManager);

impl Rslock {
    pub(crate) fn new(url: &str) -> Self {
        Self(LockManager::new(vec![url]))
    }
}

#[async_trait]
impl Contender for Rslock {
    fn name(&self) -> &'static str {
        "rslock"
    }

    fn what(&self) -> &'static str {
        "the rslock crate: manager.lock(key), manager.unlock(lock)"
    }

    async fn workers(&self, locks: usize) -> Result<Vec<Box<dyn Worker>>, Failure> {
        one_each(locks, |lock| {
            Ok(Task {
                manager: self.0.clone(),
                key: format!("rslock:{lock}").into_bytes(),
            })
        })
    }
}

struct Task {
    manager: LockManager,
    key: Vec<u8>,
}

#[async_trait]
impl Worker for Task {
    fn locks(&self) -> usize {
        1
    }

    async fn pair(&mut self) -> Result<(), Failure> {
        let lock = self.manager.lock(&self.key[..], LEASE).await?;
        // Answers nothing: whether it was still held cannot be checked.
        self.manager.unlock(&lock).await;
        Ok(())
    }
}
