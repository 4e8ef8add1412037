//! One connection of a process for rare requests: of control links, and about the topology.

use std::{future::pending, sync::Arc};

use async_trait::async_trait;
use tokio::sync::{Mutex, MutexGuard};

use super::store::{Commit, Committed, Draw, Found, Glance, Name, Page, Session, Store};
use crate::{
    clock::Moment,
    ids::Life,
    name::LockKey,
    shard::{ConnectionId, ShardError},
};

/// Sessions over one connection, for requests that come seldom. One at a time is under way.
#[derive(Debug)]
pub(super) struct Rare {
    store: Arc<dyn Store>,
    connection: Arc<Mutex<Connection>>,
}

#[derive(Debug, Default)]
struct Connection {
    /// None while a request is under way: one that was dropped takes the connection along.
    session: Option<Box<dyn Session>>,
    /// The last one that was opened: the next one ends it.
    last: Option<(Life, ConnectionId)>,
}

/// A session over a connection that it shares. It ends with that: also if another session's request was dropped.
#[derive(Debug)]
struct RareSession {
    life: Life,
    id: ConnectionId,
    commit_max: usize,
    is_durable: bool,
    connection: Arc<Mutex<Connection>>,
}

/// The connection, during a request.
struct Taken<'a> {
    connection: MutexGuard<'a, Connection>,
    session: Box<dyn Session>,
}

impl Rare {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        let connection = Arc::default();
        Self { store, connection }
    }

    /// As [`Store::open`]. If the connection is `former`, all its sessions end.
    pub(super) async fn open(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        let mut connection = self.connection.lock().await;
        let kept = connection.session.take();
        let kept = kept.filter(|session| former != Some((session.life().clone(), session.id())));
        let session = match alive(kept).await {
            Some(session) => session,
            None => self.store.open(connection.last.clone().or(former)).await?,
        };
        let (life, id) = (session.life().clone(), session.id());
        connection.last = Some((life.clone(), id));
        let opened = RareSession {
            life,
            id,
            commit_max: session.commit_max(),
            is_durable: session.is_durable(),
            connection: self.connection.clone(),
        };
        connection.session = Some(session);
        Ok(Box::new(opened))
    }
}

/// The session, if its life goes on.
async fn alive(session: Option<Box<dyn Session>>) -> Option<Box<dyn Session>> {
    let mut session = session?;
    session.read(&[], None).await.ok().map(|_| session)
}

impl RareSession {
    async fn take(&self) -> Result<Taken<'_>, ShardError> {
        let mut connection = self.connection.lock().await;
        let is_own = |session: &mut Box<dyn Session>| {
            session.id() == self.id && *session.life() == self.life
        };
        match connection.session.take_if(is_own) {
            Some(session) => Ok(Taken {
                connection,
                session,
            }),
            None => Err(ShardError::NoReply {
                reason: "the connection has ended with another request".into(),
            }),
        }
    }
}

impl Taken<'_> {
    /// Keeps the connection for the next request, unless it has ended.
    fn back<T>(mut self, answer: Result<T, ShardError>) -> Result<T, ShardError> {
        if !answer.as_ref().is_err_and(ShardError::ends_link) {
            self.connection.session = Some(self.session);
        }
        answer
    }
}

#[async_trait]
impl Session for RareSession {
    fn life(&self) -> &Life {
        &self.life
    }

    fn id(&self) -> ConnectionId {
        self.id
    }

    fn is_durable(&self) -> bool {
        self.is_durable
    }

    fn commit_max(&self) -> usize {
        self.commit_max
    }

    fn moment(&self) -> Option<Moment> {
        None
    }

    /// Only a request shows it.
    async fn ended(&mut self) {
        pending().await
    }

    async fn read(&mut self, names: &[Name], draw: Option<Draw>) -> Result<Found, ShardError> {
        let mut taken = self.take().await?;
        let found = taken.session.read(names, draw).await;
        taken.back(found)
    }

    async fn glance(&mut self, _tokens: bool) -> Option<Glance> {
        None
    }

    async fn page(&mut self, after: Option<&LockKey>, limit: usize) -> Result<Page, ShardError> {
        let mut taken = self.take().await?;
        let page = taken.session.page(after, limit).await;
        taken.back(page)
    }

    async fn commit(&mut self, commit: &Commit) -> Result<Committed, ShardError> {
        let mut taken = self.take().await?;
        let committed = taken.session.commit(commit).await;
        taken.back(committed)
    }
}
