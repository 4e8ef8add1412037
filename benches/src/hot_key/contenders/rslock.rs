//! The rslock crate as it comes: Redlock, here with its quorum of one server. It waits by trying
//! again after a random time of up to 200 ms.

use async_trait::async_trait;
use rslock::{Lock, LockManager};

use super::Worker;
use crate::{Failure, LEASE};

pub(super) struct Rslock {
    manager: LockManager,
    key: Vec<u8>,
    lock: Option<Lock>,
}

impl Rslock {
    pub(super) fn new(url: &str, key: &str) -> Self {
        Self {
            manager: LockManager::new(vec![url]),
            key: key.as_bytes().to_owned(),
            lock: None,
        }
    }
}

impl Clone for Rslock {
    /// Another task's, which holds nothing yet.
    fn clone(&self) -> Self {
        Self {
            manager: self.manager.clone(),
            key: self.key.clone(),
            lock: None,
        }
    }
}

#[async_trait]
impl Worker for Rslock {
    async fn acquire(&mut self) -> Result<Option<u64>, Failure> {
        let lock = self.manager.acquire_no_guard(&self.key[..], LEASE).await?;
        self.lock = Some(lock);
        Ok(None)
    }

    async fn release(&mut self) -> Result<(), Failure> {
        let lock = self.lock.take().ok_or("nothing is held")?;
        // Answers nothing: whether it was still held cannot be checked.
        self.manager.unlock(&lock).await;
        Ok(())
    }
}
