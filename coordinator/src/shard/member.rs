//! Servers as members of a topology.

use std::sync::Arc;

use ringfence_ring::Slot;

use super::{
    ConnectionId, Link as _, Shard, ShardError,
    docs::{Desk, DocsShard, Inbox, WATCHERS},
    redis::{Channel, RedisLink, RedisShard},
    whole::{ChangeWhole, Needs, Whole},
};
use crate::ids::{Life, Token};

/// A server, for requests about the topology.
#[derive(Debug)]
pub(crate) enum MemberShard {
    Redis(Box<RedisShard>),
    Docs(Arc<DocsShard>),
}

/// A connection for requests about the topology.
#[derive(Debug)]
pub(crate) enum MemberLink {
    Redis(Box<RedisLink>),
    Docs(Box<Desk>),
}

/// A connection on which a home announces incarnation and version of each record that comes into force.
#[derive(Debug)]
pub(crate) enum Announcements {
    Redis(Box<Channel<()>>),
    Docs(Box<dyn Inbox>),
}

impl MemberShard {
    /// The same server as a shard, if that spares a connection.
    pub(crate) fn shard(&self) -> Option<Arc<dyn Shard>> {
        match self {
            Self::Docs(shard) if shard.has_few_connections() => Some(shard.clone()),
            Self::Docs(_) | Self::Redis(_) => None,
        }
    }

    /// Opens a connection, and ends `former` if that is one of the same life.
    pub(crate) async fn connect(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<MemberLink, ShardError> {
        Ok(match self {
            Self::Redis(shard) => MemberLink::Redis(Box::new(shard.connect_member(former).await?)),
            Self::Docs(shard) => MemberLink::Docs(Box::new(shard.desk(former).await?)),
        })
    }

    pub(crate) async fn announcements(&self) -> Result<Announcements, ShardError> {
        Ok(match self {
            Self::Redis(shard) => Announcements::Redis(Box::new(shard.announcements().await?)),
            Self::Docs(shard) => Announcements::Docs(shard.listen_for(WATCHERS).await?),
        })
    }
}

impl MemberLink {
    /// The life of the server.
    pub(crate) fn life(&self) -> &Life {
        match self {
            Self::Redis(link) => link.life(),
            Self::Docs(desk) => desk.life(),
        }
    }

    /// The id by which a later connection ends this one.
    pub(crate) fn id(&self) -> ConnectionId {
        match self {
            Self::Redis(link) => link.connection(),
            Self::Docs(desk) => desk.id(),
        }
    }

    /// A warning, if a crash of the server at `address` loses a record that was written.
    pub(crate) fn forgets(&self, address: &str) -> Option<String> {
        let (keeps, why) = match self {
            Self::Redis(link) => (
                link.is_appendonly(),
                format!(
                    "has no append-only file: after a restart it comes back without the latest record; run: redis-cli \
                     -u {address} CONFIG SET appendonly yes (and appendfsync always; a managed server has them in its \
                     parameter group)"
                ),
            ),
            Self::Docs(desk) => (
                desk.is_durable(),
                "may lose commits in a crash: after one it comes back without the latest record; use logged tables, \
                 and synchronous_commit on"
                    .into(),
            ),
        };
        (!keeps).then(|| format!("{address}, home of the topology, {why}"))
    }

    /// One of `slots` that has a counter, or the record of a segmented lock.
    pub(crate) async fn slot_with_counters(
        &mut self,
        slots: &[Slot],
    ) -> Result<Option<Slot>, ShardError> {
        match self {
            Self::Redis(link) => link.slot_with_counters(slots).await,
            Self::Docs(_) => Ok(None),
        }
    }
}

impl ChangeWhole for MemberLink {
    async fn change<T: Send>(
        &mut self,
        needs: Needs<'_>,
        rule: impl Fn(&mut Whole, u64) -> Result<T, ShardError> + Send + Sync,
    ) -> Result<T, ShardError> {
        match self {
            Self::Redis(link) => link.change(needs, rule).await,
            Self::Docs(desk) => desk.change(needs, rule).await,
        }
    }

    async fn last_token(&mut self) -> Result<Token, ShardError> {
        match self {
            Self::Redis(link) => link.last_token().await,
            Self::Docs(desk) => desk.last_token().await,
        }
    }
}

impl Announcements {
    /// Waits for the next one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<(), ShardError> {
        match self {
            Self::Redis(versions) => versions.next().await,
            Self::Docs(messages) => messages.next().await.map(drop),
        }
    }
}
