//! Messages to one client.

use async_trait::async_trait;

use super::store::Inbox;
use crate::{
    ids::Life,
    shard::{Notification, ShardError, Subscription, rules::codec},
};

/// The connection on which a store sends the messages to one client.
#[derive(Debug)]
pub(super) struct DocsSubscription(pub(super) Box<dyn Inbox>);

#[async_trait]
impl Subscription for DocsSubscription {
    fn life(&self) -> &Life {
        self.0.life()
    }

    async fn next(&mut self) -> Result<Notification, ShardError> {
        loop {
            // Another program's message is ignored.
            if let Ok(notification) = codec::notification(&self.0.next().await?) {
                return Ok(notification);
            }
        }
    }
}
