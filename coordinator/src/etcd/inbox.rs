//! Messages to one client: the values of a key, one after the other.

use std::{collections::VecDeque, fmt};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use tonic::{Request, Response, Status, Streaming, transport::Channel};

use super::{
    api::{
        TxnRequest, WatchCreateRequest, WatchRequest, WatchResponse, watch_client::WatchClient,
        watch_request::RequestUnion,
    },
    txn::{found, life_of, range},
    wire::Wire,
};
use crate::{
    ids::{ClientId, Life},
    shard::{ShardError, docs::Inbox},
};

/// A stream of changes: of the life, which ends it, and of the key with the messages.
pub(super) struct EtcdInbox {
    life: Life,
    life_key: Vec<u8>,
    changes: Streaming<WatchResponse>,
    taken: VecDeque<String>,
}

impl EtcdInbox {
    pub(super) async fn open(wire: &Wire, client: ClientId) -> Result<Self, ShardError> {
        let life_key = wire.key("life");
        let read = wire.txn(TxnRequest {
            success: vec![range(life_key.clone(), 0)],
            ..TxnRequest::default()
        });
        let read = read.await?.value;
        let after = read.header.unwrap_or_default().revision + 1;
        let life = life_of(&found(read).next().flatten())?;
        let keys = [life_key.clone(), wire.inbox(client)];
        let keys = keys.map(|key| watch_from(key, after));
        let changes = wire.ask(keys, watch).await?.value;
        Ok(Self {
            life,
            life_key,
            changes,
            taken: VecDeque::new(),
        })
    }
}

/// Watches keys at one node.
async fn watch(
    channel: Channel,
    request: Request<[WatchRequest; 2]>,
) -> Result<Response<Streaming<WatchResponse>>, Status> {
    // The stream stays open: the watches end with it.
    let request = request.map(|keys| stream::iter(keys).chain(stream::pending()));
    let watching = WatchClient::new(channel).watch(request).await?;
    let mut changes = watching.into_inner();
    match changes.message().await? {
        Some(first) if first.created && !first.canceled => Ok(Response::new(changes)),
        first => Err(Status::unavailable(canceled(first))),
    }
}

fn watch_from(key: Vec<u8>, start_revision: i64) -> WatchRequest {
    let create = WatchCreateRequest {
        key,
        start_revision,
    };
    WatchRequest {
        request_union: Some(RequestUnion::CreateRequest(create)),
    }
}

fn canceled(last: Option<WatchResponse>) -> String {
    let reason = last.map(|last| last.cancel_reason).unwrap_or_default();
    format!("the node watches no more: {reason}")
}

#[async_trait]
impl Inbox for EtcdInbox {
    fn life(&self) -> &Life {
        &self.life
    }

    async fn next(&mut self) -> Result<String, ShardError> {
        let ended = |reason| ShardError::NoReply { reason };
        loop {
            if let Some(message) = self.taken.pop_front() {
                return Ok(message);
            }
            let changed = self.changes.message().await;
            let changed = match changed.map_err(|status| ended(status.to_string()))? {
                Some(changed) if !changed.canceled => changed,
                last => return Err(ended(canceled(last))),
            };
            for change in changed.events.into_iter().filter_map(|event| event.kv) {
                if change.key == self.life_key {
                    return Err(ended("another life has begun".into()));
                }
                // Another program's message is ignored.
                let texts: Vec<String> = serde_json::from_slice(&change.value).unwrap_or_default();
                self.taken.extend(texts);
            }
        }
    }
}

impl fmt::Debug for EtcdInbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "messages in life {}", self.life)
    }
}
