//! The storage that a counter needs.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{
    Account, Effect, HashKey, Manifest,
    segment::{Answer, Request},
};

/// The storage gave no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{source}")]
pub struct StorageError {
    /// Whether this request may have taken effect all the same, apart from earlier requests of the same id.
    pub effect: Effect,
    /// Whether the same call may succeed if it is repeated.
    pub is_retryable: bool,
    /// The cause.
    pub source: Arc<dyn Error + Send + Sync>,
}

impl StorageError {
    /// Whether the same call may succeed if it is repeated.
    pub fn is_retryable(&self) -> bool {
        self.is_retryable
    }

    /// Whether this request may have taken effect.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// Always `None`: the storage does not know.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// The same error of a request that changes nothing in the account.
    pub(crate) fn aside(self) -> Self {
        Self {
            effect: Effect::None,
            ..self
        }
    }
}

/// A segment, by its account and number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
    /// The account.
    pub account: Account,
    /// The number of the segment in its account, from 0.
    pub index: u32,
    /// Its place, by the account's manifest: a number that [`Segments::place`] has chosen.
    pub place: u32,
    /// Whether answers wait for replicas, as the account's durability requires.
    pub is_replicated: bool,
    /// The key of the hashes of ids, by the account's manifest.
    pub hash_key: HashKey,
}

/// What a new account has that no earlier one of its name had: a caller that knows an earlier one must not be taken for one
/// that knows this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewAccount {
    /// A random key for the hashes of its ids.
    pub hash_key: HashKey,
    /// A number that no generation of an earlier account reached: the time of its creation, in ms since 1970. Its
    /// generations are greater.
    pub after_generation: u64,
}

/// The storage of segments.
///
/// # Contract
///
/// * A request is applied to its segment in one atomic step, by the rules of
///   [`Segment::apply`](crate::segment::Segment::apply), and answered once it is as durable as the account requires.
///   The answer to a request to a segment that does not exist is
///   [`Refusal::Missing`](crate::segment::Refusal::Missing), except for requests that [make
///   one](crate::segment::Segment::made_by).
/// * A request that was answered is not applied again. A request without an answer may have been applied, or may be
///   applied later.
/// * A segment that came back, and may lack acknowledged changes, is [marked](crate::segment::Segment::came_back)
///   before it answers.
///
/// There are no default methods: a wrapper that forgets one must not compile.
#[async_trait]
pub trait Segments: fmt::Debug + Send + Sync + 'static {
    /// Chooses the places of `more` segments of an account that has segments at `taken`: spread over the shards that
    /// give an answer.
    async fn place(&self, account: &Account, taken: &[u32], more: u32) -> Vec<u32>;

    /// What tells a new account from earlier ones of its name.
    fn new_account(&self) -> NewAccount;

    /// This process's time, in ms since 1970: segments' clocks are compared with it before a loss is accepted.
    fn now_ms(&self) -> u64;

    /// Sends one request to one segment.
    ///
    /// # Cancel safety
    ///
    /// A request whose future was dropped may be applied, or not.
    async fn call(&self, at: &At, request: Request) -> Result<Answer, StorageError>;

    /// Sends independent requests. Returns one answer for each, in their order.
    ///
    /// # Cancel safety
    ///
    /// As for each [`call`](Self::call).
    async fn call_all(&self, requests: Vec<(At, Request)>) -> Vec<Result<Answer, StorageError>>;
}

/// A manifest as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedManifest<H = Manifest> {
    /// Rises with every change of the record. The first version is 1.
    pub version: u64,
    /// The manifest.
    pub manifest: H,
    /// The storage came back, perhaps without the last changes of the record. The next swap ends the doubt.
    pub in_doubt: bool,
}

/// The storage of the accounts' manifests, or of those of [segmented locks](crate::lock): linearizable. Names of
/// accounts and of segmented locks are independent of each other.
#[async_trait]
pub trait Manifests<H: Send + 'static = Manifest>: fmt::Debug + Send + Sync + 'static {
    /// The newest manifest of the account; `None` if the account does not exist.
    async fn read(&self, account: &Account) -> Result<Option<VersionedManifest<H>>, StorageError>;

    /// Writes `manifest` iff the version is still `expected` (0: no record). The next version of a record in doubt is
    /// above every version that the lost changes may have had. Returns whether it was written; after an attempt without
    /// an answer, this may be `false` although it was.
    ///
    /// # Cancel safety
    ///
    /// The manifest may be written, or not: read it again.
    async fn swap(
        &self,
        account: &Account,
        expected: u64,
        manifest: H,
    ) -> Result<bool, StorageError>;
}
