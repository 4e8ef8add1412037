//! Messages to one client: the texts of some znodes, one after the other.

use std::{collections::VecDeque, fmt};

use async_trait::async_trait;
use hashbrown::HashMap;
use zookeeper_client::{AddWatchMode, Client, Error, EventType, PersistentWatcher, WatchedEvent};

use super::{
    Shared,
    nodes::{INBOX_SLOTS, Op, Written, write},
    wire::Wire,
};
use crate::{
    ids::{ClientId, Life},
    shard::{
        ShardError,
        docs::{Inbox, WATCHERS},
    },
};

/// Attempts to take the place of a former inbox of the client.
const OPENINGS: u32 = 16;

/// A session of ZooKeeper with the znodes that messages change. It ends with the life, and with its connection.
pub(super) struct ZookeeperInbox {
    life: Life,
    client: Client,
    ends: PersistentWatcher,
    changes: PersistentWatcher,
    /// The znodes of messages to the client begin with this.
    prefix: String,
    /// Znodes that have changed, and were not read yet.
    changed: VecDeque<String>,
    /// The last versions that were read.
    read: HashMap<String, i32>,
    taken: VecDeque<String>,
    /// Why it has ended.
    ended: Option<ShardError>,
}

impl ZookeeperInbox {
    pub(super) async fn open(shared: &Shared, client: ClientId) -> Result<Self, ShardError> {
        let zookeeper = shared.wire.open().await?;
        let opened = Self::open_on(shared, client, zookeeper);
        let within = shared.wire.options.patience;
        let late = |_| ShardError::Unreachable {
            reason: format!("no answer within {within:?}"),
        };
        tokio::time::timeout(within, opened).await.map_err(late)?
    }

    async fn open_on(
        shared: &Shared,
        client: ClientId,
        zookeeper: Client,
    ) -> Result<Self, ShardError> {
        let (paths, wire) = (&shared.paths, &shared.wire);
        let failed = |error| wire.error(&error);
        let life = match zookeeper.get_data(&paths.at("life")).await {
            Ok((life, _)) => Life::new(String::from_utf8_lossy(&life).into_owned()),
            Err(Error::NoNode) => return Err(ShardError::Unarmed),
            Err(error) => return Err(failed(error)),
        };
        let one = AddWatchMode::Persistent;
        let life_path = paths.life(&life);
        let ends = zookeeper.watch(&life_path, one).await.map_err(failed)?;
        if zookeeper
            .check_stat(&life_path)
            .await
            .map_err(failed)?
            .is_none()
        {
            return Err(ShardError::Unarmed);
        }
        let mode = match client {
            WATCHERS => one,
            _ => AddWatchMode::PersistentRecursive,
        };
        let changes = zookeeper.watch(&paths.inbox(client), mode).await;
        let changes = changes.map_err(failed)?;
        if client != WATCHERS {
            let znodes = (0..INBOX_SLOTS).map(|number| paths.message(client, number));
            own(wire, &zookeeper, &znodes.collect::<Vec<_>>()).await?;
        }
        Ok(Self {
            life,
            client: zookeeper,
            ends,
            changes,
            prefix: paths.messages_of(client),
            changed: VecDeque::new(),
            read: HashMap::new(),
            taken: VecDeque::new(),
            ended: None,
        })
    }

    /// Reads the first znode that has changed.
    async fn read(&mut self, path: &str) -> Result<(), ShardError> {
        let ended = |error: Error| ShardError::NoReply {
            reason: error.to_string(),
        };
        let (text, stat) = match self.client.get_data(path).await {
            Err(Error::NoNode) => return Ok(()),
            found => found.map_err(ended)?,
        };
        // Of two messages in one place, only the later one is left.
        if self.read.insert(path.to_owned(), stat.version) != Some(stat.version) {
            // Another program's message is ignored.
            let texts: Vec<String> = serde_json::from_slice(&text).unwrap_or_default();
            self.taken.extend(texts);
        }
        Ok(())
    }

    fn take_event(&mut self, event: WatchedEvent) {
        match event.event_type {
            EventType::NodeDataChanged if event.path.starts_with(&self.prefix) => {
                self.changed.push_back(event.path);
            }
            // Watches lose what changes while there is no connection.
            EventType::Session => {
                self.ended = Some(ShardError::NoReply {
                    reason: format!("the connection ended: {}", event.session_state),
                });
            }
            _ => {}
        }
    }
}

/// Makes ephemeral znodes in the place of those that an earlier session of the client may have left.
async fn own(wire: &Wire, zookeeper: &Client, znodes: &[String]) -> Result<(), ShardError> {
    let mut there = vec![false; znodes.len()];
    for _ in 0..OPENINGS {
        let (mut ops, mut of) = (Vec::new(), Vec::new());
        for (at, znode) in znodes.iter().enumerate() {
            if there[at] {
                ops.push(Op::Delete(znode.clone(), None));
                of.push(at);
            }
            ops.push(Op::CreateEphemeral(znode.clone()));
            of.push(at);
        }
        let made = write(zookeeper, wire.acls(), &ops).await;
        match made.map_err(|error| wire.error(&error))? {
            Written::Done(_) => return Ok(()),
            // It is there, or it is there no more.
            Written::Failed(at) => match of.get(at) {
                Some(znode) => there[*znode] ^= true,
                None => break,
            },
        }
    }
    Err(ShardError::Unreachable {
        reason: "an earlier connection's znodes come and go".into(),
    })
}

#[async_trait]
impl Inbox for ZookeeperInbox {
    fn life(&self) -> &Life {
        &self.life
    }

    async fn next(&mut self) -> Result<String, ShardError> {
        loop {
            if let Some(message) = self.taken.pop_front() {
                return Ok(message);
            }
            if let Some(ended) = &self.ended {
                return Err(ended.clone());
            }
            if let Some(path) = self.changed.front().cloned() {
                self.read(&path).await?;
                self.changed.pop_front();
                continue;
            }
            tokio::select! {
                change = self.changes.changed() => self.take_event(change),
                _ = self.ends.changed() => {
                    self.ended = Some(ShardError::NoReply {
                        reason: "the life, or the connection, ended".into(),
                    });
                }
            }
        }
    }
}

impl fmt::Debug for ZookeeperInbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "messages in life {}", self.life)
    }
}
