//! Where counters are stored: a segment, or an account's head, at the shard that has its key's slot.
//!
//! ```text
//! Counter ─► Segments::call ─► ask.rs: route, ask, ask again ─► driver ─► Link::call_counters
//! ```
//!
//! Every request of a counter may be repeated, so one that got no answer is asked again here, for a while.

mod ask;
mod error;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use ringfence_segment_lock::{
    Account, At, Head, Heads, Segments, Storage, StorageError, VersionedHead,
    segment::{Answer, Request},
    spread,
};

use super::Engine;
use crate::{
    name::{LockKey, NameError, Namespace},
    shard::{CounterOp, CounterReply},
};
pub use error::CounterFault;

impl Engine {
    /// Where the counters of `namespace` are stored.
    pub fn counters(&self, namespace: &Namespace) -> Storage {
        let stored = Stored {
            engine: self.clone(),
            namespace: namespace.clone(),
        };
        Storage::new(Arc::new(stored), self.0.around.random.id())
    }
}

/// The counters of a namespace, at the shards of an engine.
#[derive(Debug)]
struct Stored {
    engine: Engine,
    namespace: Namespace,
}

impl Stored {
    fn key(&self, name: &str) -> Result<LockKey, NameError> {
        LockKey::new(
            &self.namespace,
            name.as_bytes(),
            self.engine.0.routing.slots(),
        )
    }

    /// A segment has a key of its own, and its place in it: so it lies on a slot of its own.
    fn segment_key(&self, at: &At) -> Result<LockKey, NameError> {
        let At {
            account,
            index,
            place,
        } = at;
        self.key(&format!("{account}#{index}.{place}"))
    }

    async fn head(&self, account: &Account, op: CounterOp) -> Result<CounterReply, StorageError> {
        let key = self.key(account.as_str()).map_err(CounterFault::from)?;
        self.engine.0.ask_counter(&key, &op).await
    }
}

#[async_trait]
impl Segments for Stored {
    fn place(&self, account: &Account, taken: &[u32], more: u32) -> Vec<u32> {
        let table = &self.engine.topology().table;
        let owner = |index, place| {
            let at = At {
                account: account.clone(),
                index,
                place,
            };
            let key = self
                .segment_key(&at)
                .expect("an account's name is short enough");
            table.owner_index(key.slot())
        };
        spread(&table.quotas(), taken, more, owner)
    }

    async fn call(&self, at: &At, request: Request) -> Result<Answer, StorageError> {
        let key = self.segment_key(at).map_err(CounterFault::from)?;
        let op = CounterOp::Segment(request);
        match self.engine.0.ask_counter(&key, &op).await? {
            CounterReply::Segment(answer) => Ok(answer),
            reply => Err(CounterFault::unexpected("a segment's request", &reply).into()),
        }
    }

    async fn call_all(&self, requests: Vec<(At, Request)>) -> Vec<Result<Answer, StorageError>> {
        let calls = requests
            .into_iter()
            .map(async |(at, request)| self.call(&at, request).await);
        join_all(calls).await
    }
}

#[async_trait]
impl Heads for Stored {
    async fn read(&self, account: &Account) -> Result<Option<VersionedHead>, StorageError> {
        let Some((version, text)) = (match self.head(account, CounterOp::ReadHead).await? {
            CounterReply::Head(found) => found,
            reply => return Err(CounterFault::unexpected("a head's reading", &reply).into()),
        }) else {
            return Ok(None);
        };
        let head = Head::decode(&text).map_err(CounterFault::from)?;
        Ok(Some(VersionedHead { version, head }))
    }

    async fn swap(
        &self,
        account: &Account,
        expected: u64,
        head: Head,
    ) -> Result<bool, StorageError> {
        let op = CounterOp::SwapHead {
            expected,
            head: head.encode(),
            durability: head.terms().durability,
        };
        match self.head(account, op).await? {
            CounterReply::Swapped(swapped) => Ok(swapped),
            reply => Err(CounterFault::unexpected("a head's change", &reply).into()),
        }
    }
}
