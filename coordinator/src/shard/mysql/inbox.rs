//! Messages to one client. The server has no way to push them: they are taken from a table.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use mysql_async::{Conn, prelude::Queryable as _};
use tokio::{
    sync::{Mutex, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{MysqlOptions, wire::Wire};
use crate::{
    ids::{ClientId, Life},
    limits::TICKET_KEEP,
    shard::{
        ShardError,
        docs::{Inbox, WATCHERS},
    },
};

/// How often the table is read. Messages are hints: nothing waits for them alone.
const POLL: Duration = Duration::from_millis(20);

/// The same, while the process writes nothing: a waiter asks again within [`TICKET_KEEP`]. A commit that writes ends the pause.
const POLL_HOLDING: Duration = Duration::from_secs(1);

/// The same, while it has written nothing for [`IDLE_AFTER`], so that it hardly holds a lock.
const POLL_IDLE: Duration = Duration::from_secs(5);
const IDLE_AFTER: Duration = Duration::from_secs(60);

/// The same, for news of the topology: every process reads them all the time.
const POLL_NEWS: Duration = Duration::from_secs(2);

/// The connection of a process on which messages are taken. None before its first use, and after a failure.
pub(super) type MessageWire = Arc<Mutex<Option<Wire>>>;

/// Takes the messages to one client.
pub(super) struct MysqlInbox {
    life: Life,
    taken: VecDeque<String>,
    /// The next look, as a task. It goes on if a caller that waits for it is dropped: what it takes is not lost, and other
    /// inboxes can use the connection.
    look: JoinSet<(Taker, Result<Vec<String>, ShardError>)>,
}

struct Taker {
    wire: MessageWire,
    options: MysqlOptions,
    life: Life,
    client: ClientId,
    /// The last message that was read, if several processes have to read it: commits that send such ones are one after the
    /// other. A sweep deletes them. `None` before the first look.
    read: Option<u64>,
    /// When the process last wrote something.
    wrote: watch::Receiver<Instant>,
}

impl MysqlInbox {
    pub(super) async fn open(
        options: &MysqlOptions,
        wire: &MessageWire,
        client: ClientId,
        wrote: watch::Receiver<Instant>,
    ) -> Result<Self, ShardError> {
        let life = {
            let mut shared = wire.lock().await;
            let mut wire = connected(&mut shared, options).await?;
            // After a loss, the first connection of any kind begins the life.
            let (life, ..) = wire.open(None).await?;
            *shared = Some(wire);
            life
        };
        let mut taker = Taker {
            wire: wire.clone(),
            options: options.clone(),
            life: life.clone(),
            client,
            read: None,
            wrote,
        };
        // Nobody listened to these.
        taker.take().await?;
        Ok(Self {
            life,
            taken: VecDeque::new(),
            look: JoinSet::from_iter([taker.look()]),
        })
    }
}

/// The connection, or a new one.
async fn connected(shared: &mut Option<Wire>, options: &MysqlOptions) -> Result<Wire, ShardError> {
    match shared.take() {
        Some(wire) => Ok(wire),
        None => Wire::connect(options).await,
    }
}

impl Taker {
    async fn look(mut self) -> (Self, Result<Vec<String>, ShardError>) {
        if self.client == WATCHERS {
            sleep(POLL_NEWS).await;
        } else {
            sleep(POLL).await;
            let is_recent = |last: &Instant| last.elapsed() < TICKET_KEEP;
            let pause = match self.wrote.borrow().elapsed() < IDLE_AFTER {
                true => POLL_HOLDING,
                false => POLL_IDLE,
            };
            let _ = timeout(pause, self.wrote.wait_for(is_recent)).await;
        }
        let taken = self.take().await;
        (self, taken)
    }

    async fn take(&mut self) -> Result<Vec<String>, ShardError> {
        let shared = self.wire.clone();
        let mut shared = shared.lock().await;
        let mut wire = connected(&mut shared, &self.options).await?;
        let taken = self.take_over(&mut wire).await?;
        *shared = Some(wire);
        Ok(taken)
    }

    async fn take_over(&mut self, wire: &mut Wire) -> Result<Vec<String>, ShardError> {
        let newest = self.newest(wire).await?;
        let (prefix, client) = (self.options.quoted_prefix(), self.client);
        let before = self.read.replace(newest.max(self.read.unwrap_or(0)));
        let take = match (client == WATCHERS, before) {
            // A message to one client may have a lower number than one before.
            (false, _) if newest > 0 => format!(
                "DELETE FROM `{prefix}_messages` WHERE client = '{client}' ORDER BY id RETURNING text"
            ),
            (true, Some(before)) if newest > before => format!(
                "SELECT text FROM `{prefix}_messages` WHERE client = '{client}' AND id > {before} AND id <= {newest} ORDER BY id"
            ),
            _ => return Ok(Vec::new()),
        };
        wire.ask("messages", async move |conn: &mut Conn| {
            conn.query(take).await
        })
        .await
    }

    /// The number of the newest message. Nearly all looks find no other than before, so this is all that they cost.
    async fn newest(&self, wire: &mut Wire) -> Result<u64, ShardError> {
        let (prefix, client) = (self.options.quoted_prefix(), self.client);
        // The life as of the function `server`, without the cost of a call.
        let look = format!(
            "SELECT concat(l.id, ':', @@server_id, ':', @@hostname), \
             (SELECT max(m.id) FROM `{prefix}_messages` m WHERE m.client = '{client}') \
             FROM `{prefix}_life` l"
        );
        let found: Option<(String, Option<u64>)> = wire
            .ask("messages", async move |conn: &mut Conn| {
                conn.query_first(look).await
            })
            .await?;
        match found {
            Some((present, newest)) if present == self.life.as_str() => Ok(newest.unwrap_or(0)),
            _ => Err(ShardError::NoReply {
                reason: format!("{}: another life has begun", wire.address),
            }),
        }
    }
}

#[async_trait]
impl Inbox for MysqlInbox {
    fn life(&self) -> &Life {
        &self.life
    }

    async fn next(&mut self) -> Result<String, ShardError> {
        loop {
            if let Some(message) = self.taken.pop_front() {
                return Ok(message);
            }
            let Some(Ok((taker, taken))) = self.look.join_next().await else {
                return Err(ShardError::NoReply {
                    reason: "the task that takes messages has ended".into(),
                });
            };
            self.look.spawn(taker.look());
            self.taken.extend(taken?);
        }
    }
}

impl fmt::Debug for MysqlInbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "messages in life {}", self.life)
    }
}
