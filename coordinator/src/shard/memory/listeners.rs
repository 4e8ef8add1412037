//! The clients that listen, and the notifications to them.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use hashbrown::HashMap;
use tokio::{sync::mpsc, time::Instant};

use super::shared::Shared;
use crate::{
    ids::{ClientId, Life},
    shard::{Notification, ShardError, Subscription},
};

/// Messages kept for a connection that does not read them; later ones are dropped.
const UNREAD_MAX: usize = 1024;

/// A message on its way.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) notification: Notification,
    /// When it arrives, if it takes time.
    pub(super) due: Option<Instant>,
}

/// The connections on which clients listen.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    by_client: HashMap<ClientId, Vec<(u64, mpsc::Sender<Message>)>>,
    last: u64,
    /// Messages are dropped.
    pub(super) lossy: bool,
}

impl Listeners {
    /// Opens a connection for `client`.
    pub(super) fn open(
        &mut self,
        client: ClientId,
        life: Life,
        shared: Arc<Shared>,
    ) -> MemorySubscription {
        let (sender, inbox) = mpsc::channel(UNREAD_MAX);
        self.last += 1;
        let connections = self.by_client.entry(client).or_default();
        connections.push((self.last, sender));
        MemorySubscription {
            shared,
            client,
            life,
            number: self.last,
            inbox,
            arriving: None,
        }
    }

    /// Sends `notification` to `client`, on each of its connections that has room.
    pub(super) fn tell(
        &mut self,
        client: ClientId,
        notification: &Notification,
        due: Option<Instant>,
    ) {
        if self.lossy {
            return;
        }
        for (_, sender) in self.by_client.get(&client).into_iter().flatten() {
            let notification = notification.clone();
            // Full or closed: a message may be lost.
            let _ = sender.try_send(Message { notification, due });
        }
    }

    /// Ends every connection.
    pub(super) fn hang_up(&mut self) {
        self.by_client.clear();
    }

    fn close(&mut self, client: ClientId, number: u64) {
        let Some(connections) = self.by_client.get_mut(&client) else {
            return;
        };
        connections.retain(|(its, _)| *its != number);
        if connections.is_empty() {
            self.by_client.remove(&client);
        }
    }
}

/// A connection on which one client listens.
pub(super) struct MemorySubscription {
    shared: Arc<Shared>,
    client: ClientId,
    life: Life,
    number: u64,
    inbox: mpsc::Receiver<Message>,
    /// Kept here while it is on its way, so that a receiver that stops waiting does not lose it.
    arriving: Option<Message>,
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
