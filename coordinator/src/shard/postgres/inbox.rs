//! Messages to one client: `LISTEN`.

use std::fmt;

use async_trait::async_trait;

use super::{PostgresOptions, calls::BEGIN_LIFE, error::classify, quoted, wire::Wire};
use crate::{
    ids::{ClientId, Life},
    shard::{ShardError, docs::Inbox},
};

/// A connection that listens to the channel of one client.
pub(super) struct PostgresInbox {
    wire: Wire,
    life: Life,
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
            wire,
        })
    }
}

#[async_trait]
impl Inbox for PostgresInbox {
    fn life(&self) -> &Life {
        &self.life
    }

    async fn next(&mut self) -> Result<String, ShardError> {
        let message = self.wire.message().await?;
        // Its place in its commit is in front.
        let parts = message.split_once(' ');
        Ok(parts.map_or_else(String::new, |(_, message)| message.to_owned()))
    }
}

impl fmt::Debug for PostgresInbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "messages from {}", self.wire.address)
    }
}
