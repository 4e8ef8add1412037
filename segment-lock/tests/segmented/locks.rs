//! Locks in memory, first come, first served. Tests can take them from their holders.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use parking_lot::Mutex;
use ringfence_segment_lock::{
    Account, Effect,
    lock::{Held, LockError, Locks, Waited, key},
};
use tokio::{
    sync::{Notify, Semaphore},
    task::yield_now,
    time::timeout,
};

#[derive(Clone, Debug, Default)]
pub(crate) struct TestLocks(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    keys: Mutex<BTreeMap<String, Arc<Key>>>,
    tokens: AtomicU64,
    /// Keys with a shard in trouble.
    in_trouble: Mutex<BTreeSet<String>>,
    requests: AtomicUsize,
}

#[derive(Debug)]
struct Key {
    free: Semaphore,
    holder: Mutex<Option<Arc<Grant>>>,
}

/// A grant, and whether it is still held.
#[derive(Debug)]
pub(crate) struct Grant {
    token: u64,
    is_held: AtomicBool,
    lost: Notify,
}

impl Grant {
    pub(crate) fn is_held(&self) -> bool {
        self.is_held.load(SeqCst)
    }
}

#[derive(Debug)]
pub(crate) struct TestGuard {
    pub(crate) grant: Arc<Grant>,
    key: Arc<Key>,
}

impl TestLocks {
    /// The holder of sub-lock `index` loses it: it is free.
    pub(crate) fn expire(&self, index: u32) {
        let name = key("stock/7", index, 0);
        let held = self.key(&name).holder.lock().clone();
        if let Some(grant) = held {
            self.key(&name).end(&grant);
        }
    }

    /// The shard of sub-lock `index` is in trouble, or is not any more.
    pub(crate) fn trouble(&self, index: u32, is_in_trouble: bool) {
        let name = key("stock/7", index, 0);
        let mut in_trouble = self.0.in_trouble.lock();
        match is_in_trouble {
            true => in_trouble.insert(name),
            false => in_trouble.remove(&name),
        };
    }

    /// How many locks are held.
    pub(crate) fn held(&self) -> usize {
        let keys = self.0.keys.lock();
        let is_held = |key: &&Arc<Key>| key.holder.lock().is_some();
        keys.values().filter(is_held).count()
    }

    /// How many requests there were.
    pub(crate) fn requests(&self) -> usize {
        self.0.requests.load(SeqCst)
    }

    fn key(&self, name: &str) -> Arc<Key> {
        let mut keys = self.0.keys.lock();
        let key = keys.entry(name.into()).or_insert_with(|| {
            Arc::new(Key {
                free: Semaphore::new(1),
                holder: Mutex::new(None),
            })
        });
        key.clone()
    }

    fn grant(&self, key: Arc<Key>) -> TestGuard {
        let grant = Arc::new(Grant {
            token: self.0.tokens.fetch_add(1, SeqCst) + 1,
            is_held: AtomicBool::new(true),
            lost: Notify::new(),
        });
        *key.holder.lock() = Some(grant.clone());
        TestGuard { grant, key }
    }

    /// A request takes a turn of the scheduler on its way.
    async fn ask(&self, name: &str) -> Result<Arc<Key>, LockError> {
        self.0.requests.fetch_add(1, SeqCst);
        yield_now().await;
        match self.0.in_trouble.lock().contains(name) {
            true => Err(failed("in trouble")),
            false => Ok(self.key(name)),
        }
    }
}

impl Key {
    /// Ends `grant`, if it has not ended yet.
    fn end(&self, grant: &Arc<Grant>) {
        let mut holder = self.holder.lock();
        if holder.as_ref().is_some_and(|its| Arc::ptr_eq(its, grant)) {
            *holder = None;
            grant.is_held.store(false, SeqCst);
            grant.lost.notify_waiters();
            self.free.add_permits(1);
        }
    }
}

impl Locks for TestLocks {
    type Guard = TestGuard;

    fn place(&self, _name: &Account, _taken: &[u32], more: u32) -> Vec<u32> {
        vec![0; more as usize]
    }

    async fn try_acquire(&self, name: &str) -> Result<Option<TestGuard>, LockError> {
        let key = self.ask(name).await?;
        match key.clone().free.try_acquire() {
            Ok(permit) => {
                permit.forget();
                Ok(Some(self.grant(key)))
            }
            Err(_) => Ok(None),
        }
    }

    async fn acquire(
        &self,
        name: &str,
        wait: Option<Duration>,
    ) -> Result<Waited<TestGuard>, LockError> {
        let key = self.ask(name).await?;
        let had_to_wait = key.free.available_permits() == 0;
        let wait = wait.unwrap_or(Duration::MAX);
        let permit = timeout(wait, key.free.acquire()).await;
        permit.map_err(|_| failed("not in time"))?.unwrap().forget();
        let guard = self.grant(key.clone());
        Ok(Waited { guard, had_to_wait })
    }
}

impl Held for TestGuard {
    type Released = bool;

    fn token(&self) -> u64 {
        self.grant.token
    }

    fn is_held(&self) -> bool {
        self.grant.is_held()
    }

    async fn lost(&self) {
        let lost = self.grant.lost.notified();
        if self.is_held() {
            lost.await;
        }
    }

    async fn release(self) -> bool {
        let was_held = self.is_held();
        yield_now().await;
        was_held
    }
}

impl Drop for TestGuard {
    fn drop(&mut self) {
        self.key.end(&self.grant);
    }
}

fn failed(why: &'static str) -> LockError {
    LockError {
        retry_after: None,
        effect: Effect::None,
        is_retryable: true,
        source: Arc::new(io::Error::other(why)),
    }
}
