//! The sub-locks of segmented locks: locks like any other, spread over the shards.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ringfence_ring::Table;
use ringfence_segment_lock::{
    Account,
    lock::{Held, LockError, Locks, SegmentedLock, Waited, key},
    spread,
};

use super::{Acquire, AcquireError, Engine, Guard, ReleaseAnswer, Wait, WaitObserver};
use crate::name::{Label, Namespace};

/// The terms for the sub-locks of a segmented lock.
#[derive(Clone, Debug, Default)]
pub struct SubLockTerms {
    /// The namespace of their keys, and of the record.
    pub namespace: Namespace,
    /// The lease; default: the topology's longest.
    pub lease: Option<Duration>,
    /// The holder's name shown to others; default: the engine's label.
    pub label: Option<Label>,
}

/// The locks of an engine, in the form that a segmented lock needs.
#[derive(Debug)]
pub struct SubLocks {
    engine: Engine,
    terms: SubLockTerms,
}

impl Engine {
    /// The segmented lock called `name`. Its existence is checked by its first use.
    pub fn segmented_lock(&self, name: Account, terms: SubLockTerms) -> SegmentedLock<SubLocks> {
        let records = self.splits(&terms.namespace);
        let engine = self.clone();
        let first = self.0.around.random.id() as u32;
        SegmentedLock::open(SubLocks { engine, terms }, records, name, first)
    }

    /// The places for `more` segments of `name`, in addition to those at `taken`: of a counter, or
    /// of a lock. None is at a shard that is `silent`, by its index in the table, unless all are.
    pub(super) fn place(
        &self,
        namespace: &Namespace,
        name: &Account,
        taken: &[u32],
        more: u32,
        silent: &[usize],
    ) -> Vec<u32> {
        let table = &self.topology().table;
        let mut shares = table.quotas();
        if silent.len() < shares.len() {
            for &shard in silent {
                shares[shard] = 0;
            }
        }
        let owner = |index, place| self.place_owner(table, namespace, name, (index, place));
        spread(&shares, taken, more, owner)
    }

    /// The shard, by its index in `table`, that has a segment of that number at that place.
    pub(super) fn place_owner(
        &self,
        table: &Table,
        namespace: &Namespace,
        name: &Account,
        (index, place): (u32, u32),
    ) -> usize {
        let key = self.key(namespace, key(name.as_str(), index, place).as_bytes());
        table.owner_index(key.expect("a name is short enough").slot())
    }
}

impl SubLocks {
    async fn ask(
        &self,
        key: &str,
        wait: Wait,
        observer: Option<&WaitObserver>,
    ) -> Result<Guard, AcquireError> {
        let ask = Acquire {
            namespace: &self.terms.namespace,
            key: key.as_bytes(),
            lease: self.terms.lease,
            hold_for: None,
            wait,
            preferred: false,
            tokens: 1,
            owner: None,
            label: self.terms.label.clone(),
            observer,
        };
        self.engine.acquire(ask).await
    }
}

impl Locks for SubLocks {
    type Guard = Guard;

    fn place(&self, name: &Account, taken: &[u32], more: u32) -> Vec<u32> {
        self.engine
            .place(&self.terms.namespace, name, taken, more, &[])
    }

    async fn try_acquire(&self, key: &str) -> Result<Option<Guard>, LockError> {
        match self.ask(key, Wait::No, None).await {
            Ok(guard) => Ok(Some(guard)),
            Err(AcquireError::Held { .. } | AcquireError::Moving { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn acquire(&self, key: &str, wait: Option<Duration>) -> Result<Waited<Guard>, LockError> {
        let had_to_wait = Arc::new(AtomicBool::new(false));
        let events = had_to_wait.clone();
        let observer = WaitObserver::new(move |_| events.store(true, Ordering::Relaxed));
        let wait = wait.map_or(Wait::Forever, Wait::For);
        let guard = self.ask(key, wait, Some(&observer)).await?;
        Ok(Waited {
            guard,
            had_to_wait: had_to_wait.load(Ordering::Relaxed),
        })
    }
}

impl Held for Guard {
    type Released = ReleaseAnswer;

    fn token(&self) -> u64 {
        self.token().get()
    }

    fn is_held(&self) -> bool {
        self.is_held()
    }

    async fn lost(&self) {
        self.lost().await;
    }

    async fn release(self) -> ReleaseAnswer {
        self.release().await
    }
}

impl From<AcquireError> for LockError {
    fn from(error: AcquireError) -> Self {
        Self {
            effect: error.effect(),
            is_retryable: error.is_retryable(),
            retry_after: error.retry_after(),
            source: Arc::new(error),
        }
    }
}
