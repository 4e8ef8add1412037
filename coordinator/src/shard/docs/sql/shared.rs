//! One connection of a process for rare requests, of control links and about the topology, and for messages.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};

use crate::{
    clock::Moment,
    ids::{ClientId, Life},
    name::LockKey,
    shard::{
        ConnectionId, ShardError,
        docs::{Commit, Committed, Draw, Found, Glance, Inbox, Name, Page, Session},
    },
};

/// Requests that wait for the connection, at most.
const WAITING_MAX: usize = 64;

/// Messages kept for a receiver that does not read them, at most.
pub(crate) const UNREAD_MAX: usize = 4096;

/// A session on which messages arrive, too.
#[async_trait]
pub(crate) trait ListeningSession: Session {
    /// Receives the messages to `client` from now on.
    async fn listen(&mut self, client: ClientId) -> Result<(), ShardError>;

    /// Waits until it is time for [`take_messages`](Self::take_messages).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    async fn messages_due(&mut self);

    /// The messages that have arrived, for the clients to which the session listens. Checks that the server is there.
    async fn take_messages(&mut self) -> Result<Vec<(ClientId, String)>, ShardError>;
}

/// Opens such sessions.
#[async_trait]
pub(crate) trait Connector: fmt::Debug + Send + Sync + 'static {
    /// As [`Store::open`](crate::shard::docs::Store::open).
    async fn connect(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn ListeningSession>, ShardError>;
}

/// Sessions and inboxes over one connection. One request at a time is under way.
#[derive(Clone, Debug)]
pub(crate) struct SharedConnection {
    connector: Arc<dyn Connector>,
    present: Arc<Mutex<Present>>,
}

#[derive(Debug, Default)]
struct Present {
    connection: Option<Arc<Connection>>,
    /// The last one that was opened: the next one ends it.
    last: Option<(Life, ConnectionId)>,
    /// When the last attempt to open one began, if that failed.
    failed: Option<(Instant, ShardError)>,
}

/// The connection, as its users see it. A task of its own has it: a request of which the caller does other work, or is
/// gone, keeps no other one waiting.
#[derive(Debug)]
struct Connection {
    life: Life,
    id: ConnectionId,
    commit_max: usize,
    is_durable: bool,
    requests: mpsc::Sender<Request>,
    task: Mutex<JoinSet<()>>,
}

/// Returns whether the connection goes on.
type Request = Box<dyn for<'a> FnOnce(&'a mut Serving) -> BoxFuture<'a, bool> + Send>;

struct Serving {
    session: Box<dyn ListeningSession>,
    inboxes: Vec<(ClientId, mpsc::Sender<String>)>,
}

impl SharedConnection {
    pub(crate) fn new(connector: impl Connector) -> Self {
        let connector = Arc::new(connector);
        let present = Arc::default();
        Self { connector, present }
    }

    /// As [`Store::open`](crate::shard::docs::Store::open). If the connection is `former`, all its sessions and inboxes end.
    pub(crate) async fn open(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        Ok(Box::new(SharedSession(self.connection(former).await?)))
    }

    /// As [`Store::listen`](crate::shard::docs::Store::listen).
    pub(crate) async fn listen(&self, client: ClientId) -> Result<Box<dyn Inbox>, ShardError> {
        let connection = self.connection(None).await?;
        let (sender, messages) = mpsc::channel(UNREAD_MAX);
        let listening = connection.ask(move |serving| {
            async move {
                serving.session.listen(client).await?;
                serving.inboxes.push((client, sender));
                Ok(())
            }
            .boxed()
        });
        listening.await?;
        Ok(Box::new(SharedInbox {
            connection,
            messages,
        }))
    }

    /// The present connection, if its life goes on, or a new one.
    async fn connection(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Arc<Connection>, ShardError> {
        let Self { connector, present } = self.clone();
        let asked = Instant::now();
        // Another caller may wait for this one while it does other work.
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut present = present.lock().await;
            if let Some(connection) = present.connection.take() {
                if former == Some((connection.life.clone(), connection.id)) {
                    connection.task.lock().await.shutdown().await;
                } else if connection.is_alive().await {
                    present.connection = Some(connection.clone());
                    return Ok(connection);
                }
            }
            // Callers do not wait for one attempt each.
            if let Some((began, error)) = &present.failed
                && *began >= asked
            {
                return Err(error.clone());
            }
            let began = Instant::now();
            let connected = connector.connect(present.last.clone().or(former)).await;
            let session =
                connected.inspect_err(|error| present.failed = Some((began, error.clone())))?;
            present.last = Some((session.life().clone(), session.id()));
            let connection = Arc::new(Connection::of(session));
            present.connection = Some(connection.clone());
            Ok(connection)
        });
        task.join_next()
            .await
            .and_then(Result::ok)
            .unwrap_or_else(|| Err(ended()))
    }
}

impl Connection {
    fn of(session: Box<dyn ListeningSession>) -> Self {
        let (requests, incoming) = mpsc::channel(WAITING_MAX);
        let (life, id) = (session.life().clone(), session.id());
        let (commit_max, is_durable) = (session.commit_max(), session.is_durable());
        let inboxes = Vec::new();
        let serving = Serving { session, inboxes };
        Self {
            life,
            id,
            commit_max,
            is_durable,
            requests,
            task: Mutex::new(JoinSet::from_iter([serving.run(incoming)])),
        }
    }

    async fn is_alive(&self) -> bool {
        self.ask(|serving| serving.session.read(&[], None).boxed())
            .await
            .is_ok()
    }

    async fn ask<T: Send + 'static>(
        &self,
        request: impl for<'a> FnOnce(&'a mut Serving) -> BoxFuture<'a, Result<T, ShardError>>
        + Send
        + 'static,
    ) -> Result<T, ShardError> {
        let (reply, replied) = oneshot::channel();
        let request: Request = Box::new(move |serving| {
            async move {
                if reply.is_closed() {
                    return true;
                }
                let answer = request(serving).await;
                let goes_on = !answer.as_ref().is_err_and(ShardError::ends_link);
                let _ = reply.send(answer);
                goes_on
            }
            .boxed()
        });
        self.requests
            .try_send(request)
            .map_err(|refused| match refused {
                mpsc::error::TrySendError::Full(_) => ShardError::Overloaded {
                    waiting: WAITING_MAX,
                    max: WAITING_MAX,
                },
                mpsc::error::TrySendError::Closed(_) => ended(),
            })?;
        replied.await.unwrap_or_else(|_| Err(ended()))
    }
}

impl Serving {
    /// Until a request fails, or nobody uses the connection.
    async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        loop {
            let request = tokio::select! {
                request = requests.recv() => Some(request),
                () = self.session.messages_due() => None,
            };
            let goes_on = match request {
                Some(Some(request)) => request(&mut self).await,
                Some(None) => false,
                None => self.deliver().await.is_ok(),
            };
            if !goes_on {
                return;
            }
        }
    }

    async fn deliver(&mut self) -> Result<(), ShardError> {
        let messages = self.session.take_messages().await?;
        self.inboxes.retain(|(_, inbox)| !inbox.is_closed());
        for (to, message) in messages {
            let its = self.inboxes.iter().filter(|(client, _)| *client == to);
            // One that is full loses it.
            its.for_each(|(_, inbox)| _ = inbox.try_send(message.clone()));
        }
        Ok(())
    }
}

fn ended() -> ShardError {
    ShardError::NoReply {
        reason: "the connection for rare requests and messages has ended".into(),
    }
}

/// A session over the connection. It ends with that: if another one's request fails, too.
#[derive(Debug)]
struct SharedSession(Arc<Connection>);

#[async_trait]
impl Session for SharedSession {
    fn life(&self) -> &Life {
        &self.0.life
    }

    fn id(&self) -> ConnectionId {
        self.0.id
    }

    fn is_durable(&self) -> bool {
        self.0.is_durable
    }

    fn commit_max(&self) -> usize {
        self.0.commit_max
    }

    fn moment(&self) -> Option<Moment> {
        None
    }

    async fn ended(&mut self) {
        self.0.requests.closed().await;
    }

    async fn read(&mut self, names: &[Name], draw: Option<Draw>) -> Result<Found, ShardError> {
        let names = names.to_vec();
        self.0
            .ask(move |serving| async move { serving.session.read(&names, draw).await }.boxed())
            .await
    }

    fn glance(&self) -> Option<Glance> {
        None
    }

    async fn page(&mut self, after: Option<&LockKey>, limit: usize) -> Result<Page, ShardError> {
        let after = after.cloned();
        self.0
            .ask(move |serving| {
                async move { serving.session.page(after.as_ref(), limit).await }.boxed()
            })
            .await
    }

    async fn commit(&mut self, commit: &Commit) -> Result<Committed, ShardError> {
        let commit = commit.clone();
        self.0
            .ask(move |serving| async move { serving.session.commit(&commit).await }.boxed())
            .await
    }
}

/// The messages to one client.
#[derive(Debug)]
struct SharedInbox {
    connection: Arc<Connection>,
    messages: mpsc::Receiver<String>,
}

#[async_trait]
impl Inbox for SharedInbox {
    fn life(&self) -> &Life {
        &self.connection.life
    }

    async fn next(&mut self) -> Result<String, ShardError> {
        self.messages.recv().await.ok_or_else(ended)
    }
}
