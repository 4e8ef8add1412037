//! Shards on MariaDB ≥ 10.11. The only module that says `mysql_async::`.
//!
//! A [`Store`] of documents: tables, and procedures that read and commit in one step each. See schema.sql.

mod address;
mod error;
mod messages;
mod session;
mod wire;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use mysql_async::{Conn, prelude::Queryable as _};
use tokio::{sync::watch, time::Instant};

pub use address::{MysqlAddress, MysqlAddressError};

use self::{session::MysqlSession, wire::Wire};
use super::docs::{
    DocsShard, FORGET_AFTER, Inbox, Session, Store,
    sql::{Connector, ListeningSession, SCHEMA_VERSION, SharedConnection},
};
use crate::{
    ids::{ClientId, Life},
    limits::{COUNTER_MAX, TABLES_WITHIN},
    name::KeyPrefix,
    random::Random,
    shard::{ConnectionId, ShardError},
};

/// The end of a statement in schema.sql.
const END: &str = "\n//\n";

/// How one server is reached.
#[derive(Clone, Debug)]
pub struct MysqlOptions {
    /// Where it is, and the database of the tables.
    pub address: MysqlAddress,
    /// What the names of the tables begin with. Part of the shard's identity.
    pub prefix: KeyPrefix,
    /// How long a connection may take to open and shake hands.
    pub connect_timeout: Duration,
    /// How long an answer may take. After it the connection is given up, and the server gives the statement up.
    pub response_timeout: Duration,
}

impl MysqlOptions {
    /// The server at `address`, with default timeouts (1 s each) and prefix (`ringfence`).
    pub fn new(address: MysqlAddress) -> Self {
        Self {
            address,
            prefix: KeyPrefix::default(),
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
        }
    }

    /// The prefix, as a part of a quoted name.
    fn quoted_prefix(&self) -> String {
        quoted(&self.prefix)
    }
}

fn quoted(prefix: &KeyPrefix) -> String {
    prefix.as_str().replace('`', "``")
}

/// The statements that make the tables and procedures, for the server's own client: it reads `DELIMITER`. They may be
/// repeated, and keep what is stored, and the procedures of other releases.
pub fn schema(prefix: &KeyPrefix) -> String {
    let statements = statements(prefix);
    format!("DELIMITER //\n{}{END}DELIMITER ;\n", statements.join(END))
}

fn statements(prefix: &KeyPrefix) -> Vec<String> {
    let schema = include_str!("schema.sql")
        .replace("{p}", &quoted(prefix))
        .replace("{version}", SCHEMA_VERSION)
        .replace("{counter_max}", &COUNTER_MAX.to_string())
        .replace("{forget_after_ms}", &FORGET_AFTER.as_millis().to_string());
    schema.split_terminator(END).map(str::to_owned).collect()
}

/// Makes the tables and procedures of a shard.
///
/// # Errors
///
/// The server does not answer, or the user may not make them.
///
/// # Cancel safety
///
/// Dropping the future may leave some of them: repeat it.
pub async fn create(options: &MysqlOptions) -> Result<(), ShardError> {
    let patient = MysqlOptions {
        response_timeout: options.response_timeout.max(TABLES_WITHIN),
        ..options.clone()
    };
    let mut wire = Wire::connect(&patient).await?;
    for statement in statements(&options.prefix) {
        let make = wire.ask("a table", async move |conn: &mut Conn| {
            conn.query_drop(statement).await
        });
        make.await?;
    }
    Ok(())
}

/// As [`create`], unless the procedures of this release are there: then nothing is changed.
///
/// # Errors
///
/// As [`create`].
///
/// # Cancel safety
///
/// As [`create`].
pub async fn prepare(options: &MysqlOptions) -> Result<(), ShardError> {
    let mut wire = Wire::connect(options).await?;
    // The last one that is made.
    let last = format!("{}_sweep_{SCHEMA_VERSION}", options.prefix);
    let there = wire.ask("a look for tables", async move |conn: &mut Conn| {
        let there = "SELECT count(*) FROM information_schema.routines
                     WHERE routine_schema = database() AND routine_name = ?";
        let there: Option<u64> = conn.exec_first(there, (last,)).await?;
        Ok(there)
    });
    match there.await? {
        Some(1..) => Ok(()),
        _ => create(options).await,
    }
}

/// A shard on the server that `options` name. Connects to nothing yet.
pub fn mysql_shard(options: MysqlOptions, random: Arc<Random>) -> DocsShard {
    DocsShard::new(mysql_store(options), random).in_few_connections()
}

/// The store of such a shard.
pub fn mysql_store(options: MysqlOptions) -> Arc<dyn Store> {
    let (wrote, _) = watch::channel(Instant::now());
    let server = MysqlServer { options, wrote };
    let shared = SharedConnection::new(server.clone());
    Arc::new(MysqlStore { server, shared })
}

/// One server.
#[derive(Clone, Debug)]
struct MysqlServer {
    options: MysqlOptions,
    /// When a session last wrote something.
    wrote: watch::Sender<Instant>,
}

impl MysqlServer {
    async fn open(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<MysqlSession>, ShardError> {
        let session = MysqlSession::open(&self.options, former, &self.wrote).await?;
        Ok(Box::new(session))
    }
}

#[async_trait]
impl Connector for MysqlServer {
    async fn connect(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn ListeningSession>, ShardError> {
        Ok(self.open(former).await?)
    }
}

/// A store on one server.
#[derive(Debug)]
struct MysqlStore {
    server: MysqlServer,
    shared: SharedConnection,
}

#[async_trait]
impl Store for MysqlStore {
    async fn open(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        Ok(self.server.open(former).await?)
    }

    async fn open_rare(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        self.shared.open(former).await
    }

    async fn listen(&self, client: ClientId) -> Result<Box<dyn Inbox>, ShardError> {
        self.shared.listen(client).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_may_have_any_name() {
        let prefix = KeyPrefix::new("it's`ours`").expect("printable");
        let schema = schema(&prefix);
        assert!(schema.contains("CREATE TABLE IF NOT EXISTS `it's``ours``_life`"));
        assert!(!schema.contains("{p}") && !schema.contains("{counter_max}"));
        assert!(schema.starts_with("DELIMITER //\n") && schema.ends_with("\n//\nDELIMITER ;\n"));
    }
}
