//! Messages to one client: `LISTEN`.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::time::timeout;

use super::{PostgresOptions, calls::BEGIN_LIFE, error::classify, quoted, wire::Wire};
use crate::{
    ids::{ClientId, Life},
    shard::{ShardError, docs::Inbox},
};

/// Without a message for so long, the server is asked whether it is there: a vanished one sends nothing either.
const PING_EVERY: Duration = Duration::from_secs(3);

/// A connection that listens to the channel of one client.
pub(super) struct PostgresInbox {
    life: Life,
    address: String,
    /// The next message. It goes on if a caller that waits for it is dropped: otherwise one with a short wait would never see
    /// that an answer is late.
    next: BoxFuture<'static, (Wire, Result<String, ShardError>)>,
}

impl PostgresInbox {
    pub(super) async fn open(
        options: &PostgresOptions,
        client: ClientId,
    ) -> Result<Self, ShardError> {
        let mut wire = Wire::connect(options, options.address.server()).await?;
        let channel = quoted(&options.channel(client));
        wire.execute(&format!("LISTEN {channel}")).await?;
        // After a crash, the first connection of any kind begins the life.
        let begin = BEGIN_LIFE.whole(&options.schema());
        let (address, patience) = (wire.address.clone(), options.patience());
        let found = wire.ask(|client| async { begin.row(client, &[&patience]).await });
        let row = found
            .await?
            .map_err(|error| classify("a subscription", &address, &error))?;
        Ok(Self {
            life: Life::new(row.get::<_, String>(0)),
            address,
            next: message(wire).boxed(),
        })
    }
}

/// Waits for a message.
async fn message(mut wire: Wire) -> (Wire, Result<String, ShardError>) {
    loop {
        if let Ok(message) = timeout(PING_EVERY, wire.message()).await {
            return (wire, message);
        }
        if let Err(error) = wire.execute("").await {
            return (wire, Err(error));
        }
    }
}

#[async_trait]
impl Inbox for PostgresInbox {
    fn life(&self) -> &Life {
        &self.life
    }

    async fn next(&mut self) -> Result<String, ShardError> {
        let (wire, next) = (&mut self.next).await;
        self.next = message(wire).boxed();
        // Its place in its commit is in front.
        let next = next?;
        let parts = next.split_once(' ');
        Ok(parts.map_or_else(String::new, |(_, message)| message.to_owned()))
    }
}

impl fmt::Debug for PostgresInbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "messages from {}", self.address)
    }
}
