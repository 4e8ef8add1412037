//! The clients that listen, and the notifications to them.

use hashbrown::HashMap;
use tokio::{sync::mpsc, time::Instant};

use crate::{ids::ClientId, shard::Notification};

/// Most unread messages of a connection. Further ones are dropped.
const UNREAD_MAX: usize = 1024;

/// A message on its way.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) notification: Notification,
    /// When it arrives, if it is delayed.
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
    /// Opens a connection for `client`. Returns its number, and the messages on it.
    pub(super) fn open(&mut self, client: ClientId) -> (u64, mpsc::Receiver<Message>) {
        let (sender, inbox) = mpsc::channel(UNREAD_MAX);
        self.last += 1;
        let connections = self.by_client.entry(client).or_default();
        connections.push((self.last, sender));
        (self.last, inbox)
    }

    /// Sends `notification` to its client, on each connection that has room.
    pub(super) fn tell(&mut self, notification: Notification, due: Option<Instant>) {
        if self.lossy {
            return;
        }
        let connections = self.by_client.get(&notification.client());
        for (_, sender) in connections.into_iter().flatten() {
            let notification = notification.clone();
            // Full or closed: a message may be lost.
            let _ = sender.try_send(Message { notification, due });
        }
    }

    /// Ends every connection.
    pub(super) fn hang_up(&mut self) {
        self.by_client.clear();
    }

    /// Ends connection `number` of `client`.
    pub(super) fn close(&mut self, client: ClientId, number: u64) {
        let Some(connections) = self.by_client.get_mut(&client) else {
            return;
        };
        connections.retain(|(its, _)| *its != number);
        if connections.is_empty() {
            self.by_client.remove(&client);
        }
    }
}
