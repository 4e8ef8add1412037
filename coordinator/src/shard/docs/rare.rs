//! One connection of a process for rare requests: of control links, and about the topology.

use std::{future::pending, sync::Arc};

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::{sync::Mutex, task::JoinSet};

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
        let (store, shared) = (self.store.clone(), self.connection.clone());
        let opened = task(async move {
            let mut connection = shared.lock().await;
            let kept = connection.session.take();
            let kept =
                kept.filter(|session| former != Some((session.life().clone(), session.id())));
            let session = match alive(kept).await {
                Some(session) => session,
                None => store.open(connection.last.clone().or(former)).await?,
            };
            let (life, id) = (session.life().clone(), session.id());
            connection.last = Some((life.clone(), id));
            let opened = RareSession {
                life,
                id,
                commit_max: session.commit_max(),
                is_durable: session.is_durable(),
                connection: shared.clone(),
            };
            connection.session = Some(session);
            Ok(opened)
        });
        Ok(Box::new(opened.await?))
    }
}

/// The session, if its life goes on.
async fn alive(session: Option<Box<dyn Session>>) -> Option<Box<dyn Session>> {
    let mut session = session?;
    session.read(&[], None).await.ok().map(|_| session)
}

/// Does this as a task, which ends with the caller's wait. It goes on while the caller does other work, which may need the
/// same connection.
async fn task<T: Send + 'static>(
    work: impl Future<Output = Result<T, ShardError>> + Send + 'static,
) -> Result<T, ShardError> {
    let mut task = JoinSet::new();
    task.spawn(work);
    match task.join_next().await {
        Some(Ok(answer)) => answer,
        Some(Err(_)) | None => Err(ShardError::NoReply {
            reason: "its task has ended".into(),
        }),
    }
}

impl RareSession {
    async fn ask<T: Send + 'static>(
        &self,
        request: impl for<'a> FnOnce(&'a mut dyn Session) -> BoxFuture<'a, Result<T, ShardError>>
        + Send
        + 'static,
    ) -> Result<T, ShardError> {
        let (shared, life, id) = (self.connection.clone(), self.life.clone(), self.id);
        task(async move {
            let mut connection = shared.lock().await;
            let is_own =
                |session: &mut Box<dyn Session>| session.id() == id && *session.life() == life;
            let Some(mut session) = connection.session.take_if(is_own) else {
                return Err(ShardError::NoReply {
                    reason: "the connection has ended with another request".into(),
                });
            };
            let answer = request(&mut *session).await;
            if !answer.as_ref().is_err_and(ShardError::ends_link) {
                connection.session = Some(session);
            }
            answer
        })
        .await
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
        let names = names.to_vec();
        self.ask(move |session| async move { session.read(&names, draw).await }.boxed())
            .await
    }

    fn glance(&self) -> Option<Glance> {
        None
    }

    async fn page(&mut self, after: Option<&LockKey>, limit: usize) -> Result<Page, ShardError> {
        let after = after.cloned();
        self.ask(move |session| async move { session.page(after.as_ref(), limit).await }.boxed())
            .await
    }

    async fn commit(&mut self, commit: &Commit) -> Result<Committed, ShardError> {
        let commit = commit.clone();
        self.ask(move |session| async move { session.commit(&commit).await }.boxed())
            .await
    }
}
