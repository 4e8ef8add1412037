//! What a shard says by itself.

use std::{fmt, time::Duration};

use async_trait::async_trait;

use super::ShardError;
use crate::{
    clock::Instant,
    ids::{Life, Nonce, Token},
    name::LockKey,
};

/// A message to one client. It may be lost, late or repeated: waiters ask again all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A ticket's turn has come.
    Turn(QueuedGrant),
    /// Somebody waits for what `nonce` holds.
    Wanted {
        /// The key.
        key: LockKey,
        /// The holder's acquisition.
        nonce: Nonce,
    },
}

/// A grant to a ticket: the late answer to the request whose `sent` it echoes, and to no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedGrant {
    /// The key.
    pub key: LockKey,
    /// The ticket's acquisition.
    pub nonce: Nonce,
    /// The first of its tokens.
    pub token: Token,
    /// How many there are, in a row.
    pub tokens: u32,
    /// How long the grant lasts, from when the shard made it.
    pub claim: Duration,
    /// As in the latest request that carried the ticket.
    pub sent: Instant,
    /// Somebody else waits in the key's queue.
    pub wanted: bool,
}

/// A connection on which a shard speaks by itself.
///
/// # Contract
///
/// What one shard tells one client comes in order, or not at all: messages are dropped, never kept
/// without bound. After an error, drop it and listen anew.
#[async_trait]
pub trait Wakes: fmt::Debug + Send {
    /// The life in which the connection was opened. What another life says does not come on it.
    fn life(&self) -> &Life;

    /// The next message.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    async fn next(&mut self) -> Result<Wake, ShardError>;
}
