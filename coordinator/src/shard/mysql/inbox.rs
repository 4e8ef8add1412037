//! Messages to one client. The server has no way to push them: they are taken from a table.

use std::{collections::VecDeque, fmt, time::Duration};

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt as _};
use mysql_async::{Conn, prelude::Queryable as _};
use tokio::{
    sync::watch,
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

/// The same, while the process commits nothing: a waiter asks again within [`TICKET_KEEP`].
const POLL_IDLE: Duration = Duration::from_secs(1);

/// The same, for news of the topology: every process reads them all the time.
const POLL_NEWS: Duration = Duration::from_millis(500);

/// A connection that takes the messages to one client.
pub(super) struct MysqlInbox {
    life: Life,
    taken: VecDeque<String>,
    /// The next look. It goes on if a caller that waits for it is dropped: what it takes is not lost.
    look: BoxFuture<'static, (Taker, Result<Vec<String>, ShardError>)>,
}

struct Taker {
    wire: Wire,
    life: Life,
    prefix: String,
    client: ClientId,
    /// The last message that was read, if several processes have to read it: commits that send such ones are one after the
    /// other. A sweep deletes them.
    read: Option<u64>,
    /// When the process last committed something.
    committed: watch::Receiver<Instant>,
}

impl MysqlInbox {
    pub(super) async fn open(
        options: &MysqlOptions,
        client: ClientId,
        committed: watch::Receiver<Instant>,
    ) -> Result<Self, ShardError> {
        let mut wire = Wire::connect(options).await?;
        // After a loss, the first connection of any kind begins the life.
        let (life, ..) = wire.open(None).await?;
        let mut taker = Taker {
            wire,
            life: life.clone(),
            prefix: options.quoted_prefix(),
            client,
            read: None,
            committed,
        };
        // Nobody listened to these.
        taker.take().await?;
        Ok(Self {
            life,
            taken: VecDeque::new(),
            look: taker.look().boxed(),
        })
    }
}

impl Taker {
    async fn look(mut self) -> (Self, Result<Vec<String>, ShardError>) {
        if self.client == WATCHERS {
            sleep(POLL_NEWS).await;
        } else {
            sleep(POLL).await;
            let is_recent = |last: &Instant| last.elapsed() < TICKET_KEEP;
            let _ = timeout(POLL_IDLE, self.committed.wait_for(is_recent)).await;
        }
        let taken = self.take().await;
        (self, taken)
    }

    async fn take(&mut self) -> Result<Vec<String>, ShardError> {
        let Self {
            wire,
            life,
            prefix,
            client,
            read,
            ..
        } = self;
        let take = match (*client == WATCHERS, *read) {
            (false, _) => format!(
                "DELETE FROM `{prefix}_messages` WHERE client = '{client}' ORDER BY id RETURNING id, text"
            ),
            (true, Some(last)) => format!(
                "SELECT id, text FROM `{prefix}_messages` WHERE client = '{client}' AND id > {last} ORDER BY id"
            ),
            (true, None) => format!(
                "SELECT ifnull(max(id), 0), '' FROM `{prefix}_messages` WHERE client = '{client}'"
            ),
        };
        let take = format!("SELECT concat(id, `{prefix}_server`()) FROM `{prefix}_life`; {take}");
        let taken = wire.ask("messages", async move |conn: &mut Conn| {
            let mut sets = conn.query_iter(take).await?;
            let present: Vec<Option<String>> = sets.collect().await?;
            Ok((present, sets.collect::<(u64, String)>().await?))
        });
        let (present, messages) = taken.await?;
        if present != [Some(life.as_str().to_owned())] {
            return Err(ShardError::NoReply {
                reason: format!("{}: another life has begun", wire.address),
            });
        }
        *read = messages.last().map(|(id, _)| *id).or(*read);
        Ok(messages.into_iter().map(|(_, text)| text).collect())
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
            let (taker, taken) = (&mut self.look).await;
            self.look = taker.look().boxed();
            self.taken.extend(taken?);
        }
    }
}

impl fmt::Debug for MysqlInbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "messages in life {}", self.life)
    }
}
