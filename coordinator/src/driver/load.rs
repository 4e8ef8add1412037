//! The contents of batches: requests about locks, and requests about counters.

use std::fmt;

use async_trait::async_trait;

use crate::{
    ids::MapVersion,
    name::LockKey,
    shard::{
        CounterLink, CounterReply, CounterRequest, Link, LockLink, Op, Reply, Request, ShardError,
        ShardTime,
    },
};

/// A request that a lane carries.
#[async_trait]
pub(crate) trait Load: fmt::Debug + Sized + Send + Sync + 'static {
    /// The type of its answer.
    type Reply: fmt::Debug + Send + 'static;

    /// The connection that carries it.
    type Link: Link + ?Sized;

    fn key(&self) -> &LockKey;

    fn map(&self) -> MapVersion;

    /// Whether it begins something: such a request is refused if too many wait, and not sent once
    /// its caller has left.
    fn is_new(&self) -> bool;

    /// Has `link` apply `batch`.
    async fn send(link: &mut Self::Link, batch: &[Self]) -> Result<Sent<Self::Reply>, ShardError>;
}

/// The answers to a batch.
#[derive(Debug)]
pub(crate) struct Sent<R> {
    /// Whether the shard looked at its slots, although the map may be at rest.
    pub(super) looked: bool,
    /// The token counter, if tokens could be used up.
    pub(super) counter: u64,
    /// The time when the shard applied it, by its own clock, if it says so.
    pub(super) now: Option<ShardTime>,
    pub(super) replies: Vec<R>,
}

#[async_trait]
impl Load for Request {
    type Reply = Reply;
    type Link = dyn LockLink;

    fn key(&self) -> &LockKey {
        &self.key
    }

    fn map(&self) -> MapVersion {
        self.map
    }

    fn is_new(&self) -> bool {
        matches!(self.op, Op::Acquire { .. })
    }

    async fn send(link: &mut Self::Link, batch: &[Self]) -> Result<Sent<Reply>, ShardError> {
        let answers = link.call(batch).await?;
        Ok(Sent {
            looked: !answers.quiet,
            counter: answers.counter,
            now: answers.now,
            replies: answers.replies,
        })
    }
}

#[async_trait]
impl Load for CounterRequest {
    type Reply = CounterReply;
    type Link = dyn CounterLink;

    fn key(&self) -> &LockKey {
        &self.key
    }

    fn map(&self) -> MapVersion {
        self.map
    }

    fn is_new(&self) -> bool {
        true
    }

    async fn send(link: &mut Self::Link, batch: &[Self]) -> Result<Sent<CounterReply>, ShardError> {
        let answers = link.call(batch).await?;
        Ok(Sent {
            looked: !answers.quiet,
            counter: 0,
            now: None,
            replies: answers.replies,
        })
    }
}
