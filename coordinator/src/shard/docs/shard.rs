//! A shard on a store of documents.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{
    attempt::Desk,
    link::DocsLink,
    store::{Inbox, Store},
    subscription::DocsSubscription,
};
use crate::{
    ids::{ClientId, Life},
    random::Random,
    shard::{
        ConnectionId, ControlLink, CounterLink, LockLane, LockLink, Shard, ShardError,
        Subscription,
        whole::{ChangeWhole as _, Needs, Whole},
    },
};

/// A shard whose documents are kept by a [`Store`].
pub struct DocsShard {
    store: Arc<dyn Store>,
    has_few_connections: bool,
    random: Arc<Random>,
}

impl DocsShard {
    /// The shard on `store`. Connects to nothing yet.
    ///
    /// `random` gives the versions of documents: two processes with the same seed must not share a server.
    pub fn new(store: Arc<dyn Store>, random: Arc<Random>) -> Self {
        Self {
            store,
            has_few_connections: false,
            random,
        }
    }

    /// The same, where the topology's requests share a connection with those of control links: the store does it, and its
    /// server's clock runs by itself.
    pub fn in_few_connections(self) -> Self {
        Self {
            has_few_connections: true,
            ..self
        }
    }

    pub(crate) fn has_few_connections(&self) -> bool {
        self.has_few_connections
    }

    /// Makes the shard a member of the topology `id`, whose record `home` keeps, unless it belongs to another one: only
    /// the topology that it belongs to may arm it. For programs with a topology store of their own.
    ///
    /// # Errors
    ///
    /// [`ShardError::Refused`]: it belongs to another topology.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave it joined or not.
    pub async fn join(&self, id: &str, home: &str) -> Result<(), ShardError> {
        let mut desk = self.desk(None).await?;
        let rule = |whole: &mut Whole, _| {
            let pointer = &mut whole.affiliation.pointer;
            pointer.get_or_insert_with(|| format!("{id} {home}"));
            Ok(whole.affiliation.id().map(str::to_owned))
        };
        match desk.change(Needs::Topology(&[]), rule).await? {
            Some(there) if there == id => Ok(()),
            there => Err(ShardError::Refused {
                what: "a new member",
                reason: format!("it belongs to topology {}", there.unwrap_or_default()),
            }),
        }
    }

    async fn connect(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<DocsLink>, ShardError> {
        let session = self.store.open(former).await?;
        Ok(Box::new(DocsLink(Desk::new(session, self.random.clone()))))
    }

    /// A connection for rare requests.
    pub(crate) async fn desk(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Desk, ShardError> {
        let session = self.store.open_rare(former).await?;
        Ok(Desk::new(session, self.random.clone()))
    }

    pub(crate) async fn listen_for(&self, client: ClientId) -> Result<Box<dyn Inbox>, ShardError> {
        self.store.listen(client).await
    }
}

#[async_trait]
impl Shard for DocsShard {
    /// A server syncs one commit after the other, so two connections would wait for each other's, with batches half as large.
    fn work_lanes(&self) -> usize {
        1
    }

    async fn connect_locks(
        &self,
        _lane: LockLane,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn LockLink>, ShardError> {
        Ok(self.connect(former).await?)
    }

    async fn connect_counters(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn CounterLink>, ShardError> {
        Ok(self.connect(former).await?)
    }

    async fn connect_control(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn ControlLink>, ShardError> {
        Ok(Box::new(DocsLink(self.desk(former).await?)))
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Subscription>, ShardError> {
        let inbox = self.listen_for(client).await?;
        Ok(Box::new(DocsSubscription(inbox)))
    }
}

impl fmt::Debug for DocsShard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(formatter)
    }
}
