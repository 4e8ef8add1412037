//! Accounts in this process's memory: for tests, and for embedded shards.

use std::{collections::BTreeMap, fmt};

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::{
    Account, Manifest,
    lock::Split,
    segment::{Answer, Request, Segment},
    storage::{At, Manifests, NewAccount, Segments, StorageError, VersionedManifest},
};

type Stored<H> = Mutex<BTreeMap<Account, VersionedManifest<H>>>;

/// Returns the time, in ms since 1970.
pub type Now = Box<dyn Fn() -> u64 + Send + Sync>;

/// Segments and manifests in memory, which apply the rules and nothing else. Acknowledged changes are as durable as the
/// process.
pub struct Memory {
    now: Now,
    segments: Mutex<BTreeMap<At, Segment>>,
    manifests: Stored<Manifest>,
    splits: Stored<Split>,
}

impl Memory {
    /// No accounts yet; all segments have the clock `now`.
    pub fn new(now: Now) -> Self {
        Self {
            now,
            segments: Mutex::default(),
            manifests: Mutex::default(),
            splits: Mutex::default(),
        }
    }

    /// Passes the segments to `look`, and keeps its changes: for audits, for operators of a doubtful segment, for
    /// tests. No request is applied meanwhile.
    pub fn with_segments<T>(&self, look: impl FnOnce(&mut BTreeMap<At, Segment>) -> T) -> T {
        look(&mut self.segments.lock())
    }

    fn apply(&self, at: &At, request: &Request) -> Answer {
        let mut segments = self.segments.lock();
        let mut place = segments.remove(at);
        let answer = Segment::apply_to(&mut place, request, (self.now)());
        if let Some(segment) = place {
            segments.insert(at.clone(), segment);
        }
        answer
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

#[async_trait]
impl Segments for Memory {
    async fn place(&self, _account: &Account, _taken: &[u32], more: u32) -> Vec<u32> {
        vec![0; more as usize]
    }

    /// Ids are stored as they are, and every account has a name of its own.
    fn new_account(&self) -> NewAccount {
        NewAccount::default()
    }

    fn now_ms(&self) -> u64 {
        (self.now)()
    }

    async fn call(&self, at: &At, request: Request) -> Result<Answer, StorageError> {
        Ok(self.apply(at, &request))
    }

    async fn call_all(&self, requests: Vec<(At, Request)>) -> Vec<Result<Answer, StorageError>> {
        let answers = requests
            .iter()
            .map(|(at, request)| Ok(self.apply(at, request)));
        answers.collect()
    }
}

#[async_trait]
impl Manifests for Memory {
    async fn read(&self, account: &Account) -> Result<Option<VersionedManifest>, StorageError> {
        Ok(self.manifests.lock().get(account).cloned())
    }

    async fn swap(
        &self,
        account: &Account,
        expected: u64,
        manifest: Manifest,
    ) -> Result<bool, StorageError> {
        Ok(swap(&self.manifests, account, expected, manifest))
    }
}

#[async_trait]
impl Manifests<Split> for Memory {
    async fn read(&self, name: &Account) -> Result<Option<VersionedManifest<Split>>, StorageError> {
        Ok(self.splits.lock().get(name).cloned())
    }

    async fn swap(
        &self,
        name: &Account,
        expected: u64,
        split: Split,
    ) -> Result<bool, StorageError> {
        Ok(swap(&self.splits, name, expected, split))
    }
}

fn swap<H>(stored: &Stored<H>, name: &Account, expected: u64, manifest: H) -> bool {
    let mut stored = stored.lock();
    if stored.get(name).map_or(0, |found| found.version) != expected {
        return false;
    }
    let found = VersionedManifest {
        version: expected + 1,
        manifest,
        in_doubt: false,
    };
    stored.insert(name.clone(), found);
    true
}
