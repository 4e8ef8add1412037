//! Messages that a shard sends to clients on its own.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use ringfence_ring::{Replicas, SlotCount};

use super::ShardError;
use crate::{
    clock::Instant,
    ids::{ClientId, Life, Nonce, Token},
    name::LockKey,
};

/// A message to one client. It may be lost, late or repeated. Waiters ask again all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// A ticket was granted.
    Granted(QueuedGrant),
    /// Another client waits for the lock that `nonce` holds.
    Contended {
        /// The key.
        key: LockKey,
        /// The holder's acquisition.
        nonce: Nonce,
    },
}

impl Notification {
    /// The same, with the slot of the key's first rank.
    pub(crate) fn of_first_rank(mut self, slots: SlotCount) -> Self {
        let (Self::Granted(QueuedGrant { key, .. }) | Self::Contended { key, .. }) = &mut self;
        if slots.rank(key.slot()) > 0 {
            let first = slots.replicas(key.slot(), Replicas::One).next();
            *key = key.at(first.expect("one replica"));
        }
        self
    }

    /// The client that gets the message.
    pub(crate) fn client(&self) -> ClientId {
        match self {
            Self::Granted(QueuedGrant { nonce, .. }) | Self::Contended { nonce, .. } => {
                nonce.client
            }
        }
    }
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
    /// As in the latest request with the ticket.
    pub sent: Instant,
    /// Another client waits in the key's queue.
    pub contended: bool,
}

/// A connection on which a shard sends notifications.
///
/// # Contract
///
/// The notifications of one shard to one client come in order, or not at all: they are dropped, never kept
/// without bound. After an error, drop it and listen anew.
#[async_trait]
pub trait Subscription: fmt::Debug + Send {
    /// The life in which the connection was opened. Notifications of another life do not come on it.
    fn life(&self) -> &Life;

    /// The next notification.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    async fn next(&mut self) -> Result<Notification, ShardError>;
}
