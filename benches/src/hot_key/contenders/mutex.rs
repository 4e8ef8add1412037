//! A mutex in memory: what a lock in one process could reach at best.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OwnedMutexGuard;

use super::Worker;
use crate::Failure;

#[derive(Default)]
pub(super) struct Mutex {
    mutex: Arc<tokio::sync::Mutex<()>>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Clone for Mutex {
    /// Another task's, which holds nothing yet.
    fn clone(&self) -> Self {
        Self {
            mutex: self.mutex.clone(),
            guard: None,
        }
    }
}

#[async_trait]
impl Worker for Mutex {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        self.guard = Some(self.mutex.clone().lock_owned().await);
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Failure> {
        self.guard.take().ok_or("nothing is held")?;
        Ok(())
    }
}
