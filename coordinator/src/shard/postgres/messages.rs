//! Messages: `LISTEN`.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use super::{quoted, session::PostgresSession};
use crate::{
    ids::ClientId,
    shard::{ShardError, docs::sql::ListeningSession},
};

/// Without a message for so long, the server is asked whether it is there: a vanished one sends nothing either.
const PING_EVERY: Duration = Duration::from_secs(3);

#[async_trait]
impl ListeningSession for PostgresSession {
    async fn listen(&mut self, client: ClientId) -> Result<(), ShardError> {
        let channel = self.options.channel(client);
        let listen = format!("LISTEN {}", quoted(&channel));
        self.wire.execute(&listen).await?;
        self.channels.insert(channel, client);
        Ok(())
    }

    async fn messages_due(&mut self) {
        let _ = timeout(PING_EVERY, self.wire.has_message()).await;
    }

    async fn take_messages(&mut self) -> Result<Vec<(ClientId, String)>, ShardError> {
        let arrived = self.wire.messages();
        if arrived.is_empty() {
            self.wire.execute("").await?;
        }
        let message = |(channel, message): (String, String)| {
            // Its place in its commit is in front.
            let (_, text) = message.split_once(' ')?;
            Some((*self.channels.get(&channel)?, text.to_owned()))
        };
        Ok(arrived.into_iter().filter_map(message).collect())
    }
}
