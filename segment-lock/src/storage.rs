//! The storage that a counter needs.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{
    Account, Effect, Manifest,
    segment::{Answer, Request},
};

/// The storage gave no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{source}")]
pub struct StorageError {
    /// Whether this request may have taken effect all the same. Earlier requests of the same id are not part of it.
    pub effect: Effect,
    /// Whether the same call may succeed if made again.
    pub is_retryable: bool,
    /// What went wrong.
    pub source: Arc<dyn Error + Send + Sync>,
}

impl StorageError {
    /// Whether the same call may succeed if made again.
    pub fn is_retryable(&self) -> bool {
        self.is_retryable
    }

    /// Whether this request may have taken effect.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// The storage does not say.
    pub fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// The same, of a request that does nothing to what was asked for.
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
    /// Which of its segments, from 0.
    pub index: u32,
    /// Where it is, by the account's manifest: a number that [`Segments::place`] has chosen.
    pub place: u32,
}

/// Where segments are.
///
/// # Contract
///
/// * A request is applied to its segment in one atomic step, by the rules of
///   [`Segment::apply`](crate::segment::Segment::apply), and answered once that is as durable as the
///   account asks for. A request to a segment that does not exist is
///   [`Refusal::Missing`](crate::segment::Refusal::Missing); only
///   requests that [make one](crate::segment::Segment::made_by) are applied there.
/// * A request that was answered is not applied again; one without an answer may have been, or may
///   be later.
/// * A segment that came back, and may lack what was acknowledged, [is told so](crate::segment::Segment::came_back)
///   before it answers.
///
/// There are no default methods: a wrapper that forgets one must not compile.
#[async_trait]
pub trait Segments: fmt::Debug + Send + Sync + 'static {
    /// Where `more` segments of an account are to be, beside those at `taken`: spread, so that no shard has many
    /// more than its part.
    fn place(&self, account: &Account, taken: &[u32], more: u32) -> Vec<u32>;

    /// One request to one segment.
    ///
    /// # Cancel safety
    ///
    /// A request whose future was dropped may be applied, or not.
    async fn call(&self, at: &At, request: Request) -> Result<Answer, StorageError>;

    /// Requests that need not wait for one another, each with an answer of its own, in their order.
    ///
    /// # Cancel safety
    ///
    /// As for [`call`](Self::call), each.
    async fn call_all(&self, requests: Vec<(At, Request)>) -> Vec<Result<Answer, StorageError>>;
}

/// A manifest as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedManifest<H = Manifest> {
    /// Rises with every change of the record; the first is 1.
    pub version: u64,
    /// What it says.
    pub manifest: H,
    /// The storage came back, perhaps without the last changes of the record. The next swap ends the doubt.
    pub in_doubt: bool,
}

/// Where the accounts' manifests are, or those of [segmented locks](crate::lock): linearizable. Those of one kind have
/// nothing to do with those of the other, whatever their names.
#[async_trait]
pub trait Manifests<H: Send + 'static = Manifest>: fmt::Debug + Send + Sync + 'static {
    /// The newest manifest of the account; none if there is no such account.
    async fn read(&self, account: &Account) -> Result<Option<VersionedManifest<H>>, StorageError>;

    /// Writes `manifest` iff the version is still `expected`, 0 for none. Of a record in doubt the next version is above every
    /// one that the lost changes may have had. Whether it was; after an attempt without an
    /// answer it may be said that it was not, though it was.
    ///
    /// # Cancel safety
    ///
    /// It may be written, or not: read it again.
    async fn swap(
        &self,
        account: &Account,
        expected: u64,
        manifest: H,
    ) -> Result<bool, StorageError>;
}
