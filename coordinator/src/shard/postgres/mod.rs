//! Shards on PostgreSQL ≥ 15. The only module that says `tokio_postgres::`.
//!
//! A [`Store`] of documents: one table, and functions that read and commit in one step each. See
//! schema.sql.

mod address;
mod calls;
mod error;
mod messages;
mod password;
mod session;
mod wire;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

pub use address::{PostgresAddress, PostgresAddressError};

use self::{error::classify, session::PostgresSession, wire::Wire};
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

/// How one server is reached.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Where it is.
    pub address: PostgresAddress,
    /// The schema of the tables. Part of the shard's identity.
    pub prefix: KeyPrefix,
    /// How long a connection may take to open and shake hands.
    pub connect_timeout: Duration,
    /// How long an answer may take. After it the connection is given up, and the server gives the statement up, if that
    /// waits for another one.
    pub response_timeout: Duration,
}

impl PostgresOptions {
    /// The server at `address`, with default timeouts (1 s each) and schema (`ringfence`).
    pub fn new(address: PostgresAddress) -> Self {
        Self {
            address,
            prefix: KeyPrefix::default(),
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
        }
    }

    /// The last function that [`create`] makes.
    fn last_function(&self) -> String {
        format!("{}.sweep_{SCHEMA_VERSION}", self.schema())
    }

    /// How long a statement waits for another one, at most, in milliseconds.
    fn patience(&self) -> String {
        self.response_timeout.as_millis().to_string()
    }

    /// The schema, quoted.
    fn schema(&self) -> String {
        quoted(self.prefix.as_str())
    }

    /// The channel of the messages to `client`, at most 63 bytes long.
    fn channel(&self, client: ClientId) -> String {
        let prefix: String = self.prefix.as_str().chars().take(30).collect();
        format!("{prefix}_{client}")
    }
}

/// What a crash of the server leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// Everything that was answered. Each commit waits for the disk, also where the server's `synchronous_commit` is off.
    Logged,
    /// Nothing: the shard begins another life, and holders put their locks back. No commit waits for the disk.
    Unlogged,
}

/// The statements that make the tables and functions in the schema `prefix`. They may be repeated, and keep what is
/// stored, and the functions of other releases.
pub fn schema(prefix: &KeyPrefix, tables: Tables) -> String {
    let unlogged = match tables {
        Tables::Logged => "",
        Tables::Unlogged => "UNLOGGED",
    };
    let forget_after_ms = FORGET_AFTER.as_millis().to_string();
    include_str!("schema.sql")
        .replace("'{schema}'", &literal(prefix.as_str()))
        .replace("{schema}", &quoted(prefix.as_str()))
        .replace("{version}", SCHEMA_VERSION)
        .replace("{unlogged}", unlogged)
        .replace("{by_key}", BY_KEY)
        .replace("{counter_max}", &COUNTER_MAX.to_string())
        .replace("{forget_after_ms}", &forget_after_ms)
}

/// The settings of the functions that find documents by their names: by the index, whatever the server believes about the
/// size of the table, and by one plan.
const BY_KEY: &str = "SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off \
                      SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan";

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Makes the tables and functions of a shard.
///
/// # Errors
///
/// The server does not answer, or the user may not make them.
///
/// # Cancel safety
///
/// Dropping the future may leave all of them, or none.
pub async fn create(options: &PostgresOptions, tables: Tables) -> Result<(), ShardError> {
    let patient = PostgresOptions {
        response_timeout: options.response_timeout.max(TABLES_WITHIN),
        ..options.clone()
    };
    let mut wire = Wire::connect(&patient, options.address.server()).await?;
    let patience = format!("SET LOCAL lock_timeout = {};\n", options.patience());
    wire.execute(&(patience + &schema(&options.prefix, tables)))
        .await
}

/// As [`create`], with logged tables, unless the functions of this release are there: then nothing is changed.
///
/// # Errors
///
/// As [`create`].
///
/// # Cancel safety
///
/// As [`create`].
pub async fn prepare(options: &PostgresOptions) -> Result<(), ShardError> {
    let mut wire = Wire::connect(options, options.address.server()).await?;
    let (look, last) = ("SELECT to_regproc($1) IS NOT NULL", options.last_function());
    let found = wire.ask(|client| async move { client.query_one(look, &[&last]).await });
    let found = found.await?;
    let found = found.map_err(|error| classify("a look for functions", &wire.address, &error))?;
    match found.get(0) {
        true => Ok(()),
        false => create(options, Tables::Logged).await,
    }
}

/// The statements that give the user `role` the rights of a client at the tables in the schema `prefix`.
pub fn grants(prefix: &KeyPrefix, role: &str) -> String {
    let (schema, role) = (quoted(prefix.as_str()), quoted(role));
    format!(
        "GRANT USAGE ON SCHEMA {schema} TO {role};\n\
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};\n\
         GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role};\n"
    )
}

/// A shard on the server that `options` name. Connects to nothing yet.
pub fn postgres_shard(options: PostgresOptions, random: Arc<Random>) -> DocsShard {
    DocsShard::new(postgres_store(options), random).in_few_connections()
}

/// The store of such a shard.
pub fn postgres_store(options: PostgresOptions) -> Arc<dyn Store> {
    let shared = SharedConnection::new(Direct(options.clone()));
    Arc::new(PostgresStore { options, shared })
}

/// A store on one server.
#[derive(Debug)]
struct PostgresStore {
    options: PostgresOptions,
    shared: SharedConnection,
}

#[async_trait]
impl Store for PostgresStore {
    async fn open(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError> {
        let Self { options, .. } = self;
        let session = PostgresSession::open(options, &options.address, former).await?;
        Ok(Box::new(session))
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

/// Connects to the server itself: a pooler passes no messages on.
#[derive(Debug)]
struct Direct(PostgresOptions);

#[async_trait]
impl Connector for Direct {
    async fn connect(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn ListeningSession>, ShardError> {
        let Self(options) = self;
        let session = PostgresSession::open(options, options.address.server(), former).await?;
        Ok(Box::new(session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_may_have_any_name() {
        let prefix = KeyPrefix::new("it's \"ours\"".replace(' ', "").as_str()).expect("printable");
        let schema = schema(&prefix, Tables::Unlogged);
        assert!(schema.contains("CREATE UNLOGGED TABLE IF NOT EXISTS \"it's\"\"ours\"\"\".life"));
        assert!(schema.contains("hashtextextended('it''s\"ours\"', 0)"));
        assert!(!schema.contains("{schema}") && !schema.contains("{counter_max}"));
    }
}
