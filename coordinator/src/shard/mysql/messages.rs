//! Messages. The server has no way to push them: they are taken from a table.

use std::{future::pending, time::Duration};

use async_trait::async_trait;
use mysql_async::{Conn, Row, prelude::Queryable as _};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::session::MysqlSession;
use crate::{
    ids::ClientId,
    limits::TICKET_KEEP,
    shard::{
        ShardError,
        docs::{WATCHERS, sql::ListeningSession},
    },
};

/// How often the table is read. Messages are hints: nothing waits for them alone.
const POLL: Duration = Duration::from_millis(20);

/// The same, while the process writes nothing: a waiter asks again within [`TICKET_KEEP`]. A commit that writes ends the pause.
const POLL_HOLDING: Duration = Duration::from_secs(1);

/// The same, while it has written nothing for [`IDLE_AFTER`], so that it hardly holds a lock.
const POLL_IDLE: Duration = Duration::from_secs(5);
const IDLE_AFTER: Duration = Duration::from_secs(60);

/// The same, if it listens for news of the topology.
const POLL_NEWS: Duration = Duration::from_secs(2);

/// To whom a session listens.
#[derive(Debug)]
pub(super) struct Listening {
    /// Each client, and the number of the last message that was read, if several processes have to read it: commits that send
    /// such ones are one after the other. A sweep deletes them.
    clients: Vec<(ClientId, u64)>,
    looked: Instant,
}

impl Default for Listening {
    fn default() -> Self {
        Self {
            clients: Vec::new(),
            looked: Instant::now(),
        }
    }
}

#[async_trait]
impl ListeningSession for MysqlSession {
    async fn listen(&mut self, client: ClientId) -> Result<(), ShardError> {
        let mut clients = self.listening.clients.iter();
        let is_first = clients.all(|(its, _)| *its != client);
        // Nobody listened to those that are there; but all that listen for news have one number.
        if is_first || client != WATCHERS {
            let newest = self.newest_messages(&[client]).await?[0];
            self.read_messages(client, newest, newest).await?;
            if is_first {
                self.listening.clients.push((client, newest));
            }
        }
        Ok(())
    }

    async fn messages_due(&mut self) {
        let Listening { clients, looked } = &self.listening;
        if clients.is_empty() {
            pending().await
        }
        sleep_until(*looked + POLL).await;
        let is_recent = |last: &Instant| last.elapsed() < TICKET_KEEP;
        let hears_news = clients.iter().any(|(client, _)| *client == WATCHERS);
        let pause = match self.wrote.borrow().elapsed() < IDLE_AFTER {
            true => POLL_HOLDING,
            false if hears_news => POLL_NEWS,
            false => POLL_IDLE,
        };
        let _ = timeout_at(*looked + pause, self.wrote.subscribe().wait_for(is_recent)).await;
    }

    async fn take_messages(&mut self) -> Result<Vec<(ClientId, String)>, ShardError> {
        let clients: Vec<_> = self
            .listening
            .clients
            .iter()
            .map(|(client, _)| *client)
            .collect();
        let newest = self.newest_messages(&clients).await?;
        self.listening.looked = Instant::now();
        let mut messages = Vec::new();
        for (at, (client, newest)) in clients.into_iter().zip(newest).enumerate() {
            let read = std::mem::replace(&mut self.listening.clients[at].1, newest);
            let texts = self.read_messages(client, read, newest).await?;
            messages.extend(texts.into_iter().map(|text| (client, text)));
        }
        Ok(messages)
    }
}

impl MysqlSession {
    /// The number of the newest message to each of `clients`; 0: there is none. Nearly all looks find no others than before, so
    /// this is all that they cost.
    async fn newest_messages(&mut self, clients: &[ClientId]) -> Result<Vec<u64>, ShardError> {
        let prefix = &self.prefix;
        let newest = clients.iter().map(|client| {
            format!(", (SELECT max(m.id) FROM `{prefix}_messages` m WHERE m.client = '{client}')")
        });
        // The life as of the function `server`, without the cost of a call.
        let look = format!(
            "SELECT concat(l.id, ':', @@server_id, ':', @@hostname){} FROM `{prefix}_life` l",
            newest.collect::<String>()
        );
        let found = self.wire.ask("messages", async move |conn: &mut Conn| {
            conn.query_first::<Row, _>(look).await
        });
        let row = found.await?;
        let life = row.as_ref().and_then(|row| row.get::<String, _>(0));
        let (Some(row), true) = (row, life.as_deref() == Some(self.life.as_str())) else {
            return Err(ShardError::Unarmed);
        };
        let newest = (1..=clients.len()).map(|column| row.get::<Option<u64>, _>(column));
        Ok(newest.map(|newest| newest.flatten().unwrap_or(0)).collect())
    }

    /// The messages to `client`, of which the last that was read has the number `read`.
    async fn read_messages(
        &mut self,
        client: ClientId,
        read: u64,
        newest: u64,
    ) -> Result<Vec<String>, ShardError> {
        let prefix = &self.prefix;
        let take = match client == WATCHERS {
            // A message to one client may have a lower number than one before.
            false if newest > 0 => format!(
                "DELETE FROM `{prefix}_messages` WHERE client = '{client}' ORDER BY id RETURNING text"
            ),
            true if newest > read => format!(
                "SELECT text FROM `{prefix}_messages` WHERE client = '{client}' AND id > {read} AND id <= {newest} ORDER BY id"
            ),
            _ => return Ok(Vec::new()),
        };
        self.wire
            .ask("messages", async move |conn: &mut Conn| {
                conn.query(take).await
            })
            .await
    }
}
