//! The caller's side of a counter.
//!
//! Safety does not depend on callers: a caller may crash, or be dropped, at any await, and every request may be
//! repeated. An unfinished call leaves money in flight between segments, which counts, and which the next call lands; a
//! transfer that is sent, which any process can finish; or a plan for a layout, which any process can finish too.

mod balance;
mod balance_reads;
mod borrow;
mod change;
mod close;
mod delete;
mod doubt;
mod error;
mod find;
mod freeze;
mod history;
mod insufficient;
mod labels;
mod legs;
mod lost;
mod patience;
mod recover;
mod resegment;
mod reserve;
mod restore;
mod sweep;
mod transfer;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

pub use balance::{Balance, BalanceAfter, Changed};
pub use error::{CounterError, Remainder, ServiceError};
pub use find::Found;
pub use history::{AccountEffect, AccountHistory, HistoryCursor, HistoryCursorError};
pub use lost::{Details, Inspection, LostSegment, LostSegments};
pub use reserve::{Ended, Reserved};
pub use sweep::Swept;

use patience::Patience;

use crate::{
    Account, Caller, Durability, Manifest, Manifests, RequestId, Segments,
    segment::{Refusal, Reply, Request},
    storage::At,
};

/// The storage of accounts, and the identity of this process there. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Storage {
    segments: Arc<dyn Segments>,
    manifests: Arc<dyn Manifests>,
    process: u128,
    calls: Arc<AtomicU64>,
}

impl Storage {
    /// Manifests and segments in one storage. `process`: a random number that no other process has.
    pub fn new(place: Arc<impl Segments + Manifests>, process: u128) -> Self {
        Self::of(Arc::clone(&place) as Arc<dyn Segments>, place, process)
    }

    /// Manifests in another storage than segments.
    pub fn of(segments: Arc<dyn Segments>, manifests: Arc<dyn Manifests>, process: u128) -> Self {
        Self {
            segments,
            manifests,
            process,
            calls: Arc::default(),
        }
    }

    /// The caller of one call, different from all others.
    fn caller(&self) -> Caller {
        Caller {
            process: self.process,
            call: self.calls.fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// One account.
///
/// # Cancel safety
///
/// A call whose future is dropped may have taken effect, or be half done. Nothing is lost: repeat it under the same id
/// to finish it.
pub struct Counter {
    storage: Storage,
    account: Account,
    /// The newest manifest read.
    manifest: Mutex<Option<Arc<Manifest>>>,
}

impl Counter {
    /// An account. The first request checks that it exists.
    pub fn open(storage: Storage, account: Account) -> Self {
        Self {
            storage,
            account,
            manifest: Mutex::new(None),
        }
    }

    /// Its name.
    pub fn account(&self) -> &Account {
        &self.account
    }

    fn at(&self, manifest: &Manifest, index: u32) -> At {
        At {
            account: self.account.clone(),
            index,
            place: manifest.place_of(index),
            is_replicated: matches!(manifest.terms().durability, Durability::Replicas(_)),
            hash_key: manifest.hash_key(),
        }
    }

    async fn ask(
        &self,
        manifest: &Manifest,
        index: u32,
        request: Request,
    ) -> Result<Reply, CounterError> {
        let at = self.at(manifest, index);
        match self.storage.segments.call(&at, request).await? {
            Err(Refusal::Missing) => Err(self.lost(manifest, &[index])),
            answer => Ok(answer?),
        }
    }

    /// Sends one request to each of some segments. Returns the first error, or the lost segments, or all replies in
    /// order.
    async fn ask_all(
        &self,
        manifest: &Manifest,
        requests: impl IntoIterator<Item = (u32, Request)>,
    ) -> Result<Vec<Reply>, CounterError> {
        let (indices, requests): (Vec<u32>, Vec<_>) = requests
            .into_iter()
            .map(|(index, request)| (index, (self.at(manifest, index), request)))
            .unzip();
        let answers = self.storage.segments.call_all(requests).await;
        let (mut replies, mut lost) = (Vec::new(), Vec::new());
        for (index, answer) in indices.into_iter().zip(answers) {
            match answer? {
                Err(Refusal::Missing) => lost.push(index),
                answer => replies.push(answer?),
            }
        }
        match lost.is_empty() {
            true => Ok(replies),
            false => Err(self.lost(manifest, &lost)),
        }
    }

    /// The newest manifest known here. A segment refuses a request by an older one and says so.
    async fn manifest(&self) -> Result<Arc<Manifest>, CounterError> {
        let known = self.manifest.lock().clone();
        match known {
            Some(manifest) => Ok(manifest),
            None => Box::pin(self.newest_manifest()).await,
        }
    }

    /// Sends a request to the home of `id`, by the newest layout.
    async fn ask_home(
        &self,
        id: &RequestId,
        request: impl Fn(&Manifest) -> Request,
    ) -> Result<Reply, CounterError> {
        let mut patience = Patience::default();
        loop {
            patience.round()?;
            let manifest = self.manifest().await.map_err(CounterError::aside)?;
            let home = self.home_of(id, &manifest)?;
            match self.ask(&manifest, home, request(&manifest)).await {
                Ok(reply) => return Ok(reply),
                Err(error) => self.pass(error, &mut patience).await?,
            }
        }
    }

    fn home_of(&self, id: &RequestId, manifest: &Manifest) -> Result<u32, CounterError> {
        manifest.home_of(id).ok_or_else(|| self.absent())
    }

    fn absent(&self) -> CounterError {
        CounterError::NoAccount {
            account: self.account.clone(),
        }
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}
