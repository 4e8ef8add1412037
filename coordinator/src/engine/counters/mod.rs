//! The storage of counters: a segment, or an account's manifest, at the shard that has its key's slot.
//!
//! ```text
//! Counter ─► Segments::call ─► ask.rs: route, ask, ask again ─► driver ─► Link::call_counters
//! ```
//!
//! Every request of a counter may be repeated, so this module repeats a request without an answer,
//! for a while.

mod ask;
mod error;
mod list;
mod manifests;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use hashbrown::HashMap;
use ringfence_segment_lock::{
    Account, At, HashKey, Manifests, NewAccount, Segments, Storage, StorageError,
    limits::PLACES_MAX,
    lock::{self, Split},
    segment::{Answer, ReadCopy, Request},
};

use super::Engine;
use crate::{
    driver::CounterLane,
    limits::SEGMENT_KEYS_MAX,
    name::{LockKey, NameError, Namespace},
    shard::{CounterOp, CounterReply, rules::millis},
    sync::Mutex,
};
pub use error::CounterFault;
pub use list::{AccountNames, AccountNamesPage};

impl Engine {
    /// The storage of the counters of `namespace`.
    pub fn counters(&self, namespace: &Namespace) -> Storage {
        Storage::new(self.stored(namespace), self.0.around.random.id())
    }

    /// The storage of the records of the segmented locks of `namespace`, next to the counters'
    /// manifests.
    pub(super) fn splits(&self, namespace: &Namespace) -> Arc<dyn Manifests<Split>> {
        self.stored(namespace)
    }

    fn stored(&self, namespace: &Namespace) -> Arc<Stored> {
        Arc::new(Stored {
            engine: self.clone(),
            namespace: namespace.clone(),
            keys: Mutex::default(),
        })
    }
}

/// The counters of a namespace, and the records of its segmented locks, at the shards of an engine.
#[derive(Debug)]
struct Stored {
    engine: Engine,
    namespace: Namespace,
    /// Keys of segments that were asked: creating a key takes longer than finding it.
    keys: Mutex<HashMap<At, LockKey>>,
}

impl Stored {
    fn key(&self, name: &str) -> Result<LockKey, NameError> {
        LockKey::new(
            &self.namespace,
            name.as_bytes(),
            self.engine.0.routing.slots(),
        )
    }

    /// The shards that do not answer a read of segment `index`, by their index in the table.
    async fn silent_shards(&self, account: &Account, index: u32) -> Vec<usize> {
        let table = &self.engine.topology().table;
        let shards = table.quotas().iter().filter(|quota| **quota > 0).count();
        let mut places = HashMap::new();
        for place in 0..PLACES_MAX {
            let at = (index, place);
            let shard = self.engine.place_owner(table, &self.namespace, account, at);
            places.entry(shard).or_insert(place);
            if places.len() == shards {
                break;
            }
        }
        let asked = places.into_iter().map(async |(shard, place)| {
            let at = unknown_segment(account, index, place);
            let answer = self.call(&at, ReadCopy.into()).await;
            answer.is_err().then_some(shard)
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// The shards where no copy of the account's manifest should be, if there are others: the `silent` ones, and that of the
    /// manifest. If that has most slots, the others would have most segments; so a copy may be there.
    fn not_for_copies(&self, account: &Account, silent: &[usize]) -> Vec<usize> {
        let quotas = self.engine.topology().table.quotas();
        let slots: u32 = quotas.iter().sum();
        let of_manifest = self.owner(account.as_str()).ok();
        let of_manifest =
            of_manifest.filter(|&shard| !silent.contains(&shard) && quotas[shard] * 5 <= slots * 3);
        let mut apart = silent.to_vec();
        apart.extend(of_manifest);
        let is_left = (0..quotas.len()).any(|shard| quotas[shard] > 0 && !apart.contains(&shard));
        match is_left {
            true => apart,
            false => silent.to_vec(),
        }
    }

    async fn ask(&self, at: &At, request: Request, are_many: bool) -> Result<Answer, StorageError> {
        let key = self.segment_key(at).map_err(CounterFault::from)?;
        let op = CounterOp::Segment(request);
        let of = (at.hash_key, lane_of(at, &op, are_many));
        match self.engine.0.ask_counter(&key, &op, of).await? {
            CounterReply::Segment(answer) => Ok(answer),
            reply => Err(CounterFault::unexpected("a segment's request", &reply).into()),
        }
    }

    /// A segment's key is its own and contains its place, so the segment has its own slot.
    fn segment_key(&self, at: &At) -> Result<LockKey, NameError> {
        if let Some(key) = self.keys.lock().get(at) {
            return Ok(key.clone());
        }
        let At {
            account,
            index,
            place,
            ..
        } = at;
        let key = self.key(&lock::key(account.as_str(), *index, *place))?;
        let mut keys = self.keys.lock();
        if keys.len() >= SEGMENT_KEYS_MAX {
            keys.clear();
        }
        keys.insert(at.clone(), key.clone());
        Ok(key)
    }
}

#[async_trait]
impl Segments for Stored {
    async fn place(&self, account: &Account, taken: &[u32], more: u32) -> Vec<u32> {
        let silent = match more {
            0 => Vec::new(),
            _ => self.silent_shards(account, taken.len() as u32).await,
        };
        // The segment of an account that has one has the copy of the manifest.
        let not_there = match (taken, more) {
            ([], 1) => self.not_for_copies(account, &silent),
            _ => silent,
        };
        self.engine
            .place(&self.namespace, account, taken, more, &not_there)
    }

    fn new_account(&self) -> NewAccount {
        NewAccount {
            hash_key: HashKey(self.engine.0.around.random.id()),
            after_generation: self.now_ms(),
        }
    }

    fn now_ms(&self) -> u64 {
        millis(self.engine.0.around.clock.unix())
    }

    async fn call(&self, at: &At, request: Request) -> Result<Answer, StorageError> {
        self.ask(at, request, false).await
    }

    async fn call_all(&self, requests: Vec<(At, Request)>) -> Vec<Result<Answer, StorageError>> {
        let are_many = requests.len() > 1;
        let calls = requests
            .into_iter()
            .map(async |(at, request)| self.ask(&at, request, are_many).await);
        join_all(calls).await
    }
}

/// A segment that may be there, of an account whose manifest is not known.
fn unknown_segment(account: &Account, index: u32, place: u32) -> At {
    At {
        account: account.clone(),
        index,
        place,
        is_replicated: false,
        hash_key: HashKey::default(),
    }
}

/// Reads of several segments are one call to each shard.
fn lane_of(at: &At, op: &CounterOp, are_many: bool) -> CounterLane {
    match op {
        // No caller waits for it.
        op if op.forgets() => CounterLane::Whole,
        _ if at.is_replicated => CounterLane::Replicated,
        op if are_many && op.only_reads() => CounterLane::Whole,
        _ => CounterLane::Single,
    }
}
