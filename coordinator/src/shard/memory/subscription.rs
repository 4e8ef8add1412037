//! A connection on which one client listens.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::{listeners::Message, shared::Shared};
use crate::{
    ids::{ClientId, Life},
    shard::{Notification, ShardError, Subscription},
};

/// A connection on which one client listens.
pub(super) struct MemorySubscription {
    shared: Arc<Shared>,
    client: ClientId,
    life: Life,
    /// The number of the connection.
    number: u64,
    inbox: mpsc::Receiver<Message>,
    /// The message that is on its way. It is kept here, so that a receiver that stops waiting does not lose it.
    arriving: Option<Message>,
}

impl MemorySubscription {
    /// Listens as `client`, unless the shard cannot be reached.
    pub(super) fn open(shared: &Arc<Shared>, client: ClientId) -> Result<Self, ShardError> {
        let mut state = shared.state();
        state.check_reachable()?;
        let (number, inbox) = state.listeners.open(client);
        Ok(Self {
            shared: Arc::clone(shared),
            client,
            life: state.memory.life().clone(),
            number,
            inbox,
            arriving: None,
        })
    }
}

#[async_trait]
impl Subscription for MemorySubscription {
    fn life(&self) -> &Life {
        &self.life
    }

    async fn next(&mut self) -> Result<Notification, ShardError> {
        if self.arriving.is_none() {
            self.arriving = self.inbox.recv().await;
        }
        if let Some(Message { due, .. }) = self.arriving {
            self.shared.arrive(due).await;
        }
        let message = self.arriving.take();
        message
            .map(|message| message.notification)
            .ok_or_else(|| ShardError::NoReply {
                reason: "the connection has ended".into(),
            })
    }
}

impl fmt::Debug for MemorySubscription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MemorySubscription({})", self.client)
    }
}

impl Drop for MemorySubscription {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.listeners.close(self.client, self.number);
    }
}
