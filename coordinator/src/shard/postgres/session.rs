//! A connection for reads and commits.

use std::{collections::HashMap, fmt};

use async_trait::async_trait;
use tokio_postgres::{Error, Row, types::ToSql};

use super::{
    PostgresAddress, PostgresOptions,
    calls::{COMMIT, Call, Function, OPEN, PAGE, READ, SWEEP},
    error::{classify, is_conflict},
    wire::Wire,
};
use crate::{
    clock::Moment,
    ids::{ClientId, Life, Token},
    name::LockKey,
    shard::{
        ConnectionId, ShardError,
        docs::{
            Commit, Committed, Document, Draw, Expected, Found, Glance, Name, Page, Session,
            TokenChange,
            sql::{LastRefusal, SWEEP_AFTER, SeenClock, committed, in_order, made, version},
        },
    },
};

/// A connection for reads and commits.
pub(super) struct PostgresSession {
    pub(super) wire: Wire,
    life: Life,
    id: ConnectionId,
    pub(super) options: PostgresOptions,
    /// On which it listens.
    pub(super) channels: HashMap<String, ClientId>,
    calls: Calls,
    /// How long a request waits for another one, at most, in milliseconds.
    patience: String,
    is_durable: bool,
    /// Documents that this connection made since its last sweep.
    made: usize,
    /// Where that sweep stopped.
    swept: Vec<u8>,
    clock: SeenClock,
    refusal: LastRefusal,
}

struct Calls {
    read: Call,
    page: Call,
    commit: Call,
    sweep: Call,
}

impl PostgresSession {
    /// Connects to `address`, ends `former`, and begins the life if there is none.
    pub(super) async fn open(
        options: &PostgresOptions,
        address: &PostgresAddress,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Self, ShardError> {
        let mut wire = Wire::connect(options, address).await?;
        let schema = options.schema();
        let is_pooled = address.is_pooled();
        let patience = options.patience();
        let (former_life, former) = match former {
            Some((life, id)) => (Some(life.as_str().to_owned()), Some(id.0 as i64)),
            None => (None, None),
        };
        let address = wire.address.clone();
        let opened = wire.ask(async |client| {
            let arguments: [&(dyn ToSql + Sync); 3] = [&former_life, &former, &patience];
            let row = OPEN.whole(&schema).row(client, &arguments).await?;
            let call = async |function: Function| match is_pooled {
                true => Ok(function.whole(&schema)),
                false => function.whole(&schema).prepared(client).await,
            };
            let calls = Calls {
                read: call(READ).await?,
                page: call(PAGE).await?,
                commit: call(COMMIT).await?,
                sweep: call(SWEEP).await?,
            };
            Ok((row, calls))
        });
        let (row, calls) = opened
            .await?
            .map_err(|error| classify("a connection", &address, &error))?;
        Ok(Self {
            wire,
            life: Life::new(row.get::<_, String>(0)),
            id: ConnectionId(row.get::<_, i64>(1) as u64),
            options: options.clone(),
            channels: HashMap::new(),
            calls,
            patience,
            is_durable: row.get(2),
            made: 0,
            swept: Vec::new(),
            clock: SeenClock::default(),
            refusal: LastRefusal::default(),
        })
    }

    fn failed(&self, what: &'static str, error: &Error) -> ShardError {
        classify(what, &self.wire.address, error)
    }

    /// Reads the answer to `commit`.
    fn committed(&mut self, commit: &Commit, row: &Row) -> Result<Committed, ShardError> {
        let stale: Option<Vec<Vec<u8>>> = row.get(1);
        let stale = stale.unwrap_or_default();
        let at_ms = row.get::<_, Option<i64>>(2).map(|at_ms| at_ms as u64);
        let is_stale = |name: &Name| stale.contains(&name.to_bytes());
        let committed = committed(row.get(0), at_ms, commit, is_stale)?;
        self.made += made(&committed, commit);
        Ok(committed)
    }

    async fn sweep(&mut self) -> Result<(), ShardError> {
        let Self {
            wire, calls, swept, ..
        } = self;
        let swept_to = wire.ask(|client| async { calls.sweep.row(client, &[swept]).await });
        let row = swept_to
            .await?
            .map_err(|error| self.failed("a sweep", &error))?;
        self.swept = row.get::<_, Option<Vec<u8>>>(0).unwrap_or_default();
        self.made = 0;
        Ok(())
    }
}

#[async_trait]
impl Session for PostgresSession {
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
        usize::MAX
    }

    async fn ended(&mut self) {
        self.wire.ended().await;
    }

    fn moment(&self) -> Option<Moment> {
        None
    }

    async fn read(&mut self, names: &[Name], draw: Option<Draw>) -> Result<Found, ShardError> {
        let named: Vec<Vec<u8>> = names.iter().map(Name::to_bytes).collect();
        let head = draw.and_then(|draw| version(draw.head));
        let tokens = draw.map_or(0, |draw| draw.tokens as i64);
        let (life, patience, read) = (self.life.as_str(), &self.patience, &self.calls.read);
        let sent = SeenClock::sent();
        let found = self.wire.ask(|client| async move {
            let arguments: [&(dyn ToSql + Sync); 5] = [&life, &named, &head, &tokens, patience];
            read.row(client, &arguments).await
        });
        let row = found
            .await?
            .map_err(|error| self.failed("a read", &error))?;
        alive(&row)?;
        let versions: Option<Vec<Option<i64>>> = row.get(5);
        let contents: Option<Vec<Option<String>>> = row.get(6);
        let versions = versions.into_iter().flatten();
        let documents = versions.zip(contents.into_iter().flatten());
        let now_ms = row.get::<_, i64>(1) as u64;
        self.clock.see(sent, now_ms);
        Ok(Found {
            now_ms,
            slack_ms: 0,
            last: Token::from_number(row.get::<_, i64>(2) as u64),
            drawn: row.get::<_, i64>(3) as u64,
            head_is_stale: row.get(4),
            documents: documents
                .map(|(version, content)| {
                    let (version, content) = (version? as u64, content?);
                    Some(Document { version, content })
                })
                .collect(),
        })
    }

    fn glance(&self) -> Option<Glance> {
        self.clock.glance()
    }

    async fn page(&mut self, after: Option<&LockKey>, limit: usize) -> Result<Page, ShardError> {
        let after = match after {
            Some(key) => Name::Lock(key.clone()).to_bytes(),
            None => Name::LOCK.to_vec(),
        };
        let (life, page) = (self.life.as_str(), &self.calls.page);
        let at_most = limit as i64 + 1;
        let found = self
            .wire
            .ask(|client| async move { page.row(client, &[&life, &after, &at_most]).await });
        let row = found
            .await?
            .map_err(|error| self.failed("a page", &error))?;
        alive(&row)?;
        let names: Vec<Vec<u8>> = row.get::<_, Option<_>>(2).unwrap_or_default();
        let versions: Vec<i64> = row.get::<_, Option<_>>(3).unwrap_or_default();
        let contents: Vec<String> = row.get::<_, Option<_>>(4).unwrap_or_default();
        let more = names.len() > limit;
        let documents = names.iter().zip(versions).zip(contents).take(limit);
        Ok(Page {
            now_ms: row.get::<_, i64>(1) as u64,
            documents: documents
                .filter_map(|((name, version), content)| {
                    let version = version as u64;
                    Some((Name::lock(name)?, Document { version, content }))
                })
                .collect(),
            more,
        })
    }

    async fn commit(&mut self, commit: &Commit) -> Result<Committed, ShardError> {
        if self.made >= SWEEP_AFTER {
            self.sweep().await?;
        }
        let Columns {
            checked,
            checked_versions,
            written,
            any,
            versions,
            contents,
            ends,
        } = Columns::of(commit);
        let (at_least, exactly) = match commit.tokens {
            TokenChange::None => (None, None),
            TokenChange::AtLeast(last) => (Some(last.as_i64()), None),
            TokenChange::Exactly(last) => (None, Some(last.as_i64())),
            // Reads draw here.
            TokenChange::Next { .. } => {
                let stale = Vec::new();
                return Ok(Committed::Refused { stale });
            }
        };
        let not_before_ms = commit.not_before_ms as i64;
        let not_after_ms = i64::try_from(commit.not_after_ms).unwrap_or(i64::MAX);
        let messages = commit.messages.iter();
        let (channels, messages): (Vec<_>, Vec<_>) = messages
            .map(|(client, message)| (self.options.channel(*client), &**message))
            .unzip();
        let (life, gate) = (self.life.as_str(), self.id.0 as i64);
        let new_version = commit.version as i64;
        let (patience, call) = (&self.patience, &self.calls.commit);
        let is_careful = self.refusal.is_recent();
        let sent = SeenClock::sent();
        let done = self.wire.ask(|client| async move {
            let arguments: [&(dyn ToSql + Sync); 18] = [
                &life,
                &gate,
                patience,
                &is_careful,
                &not_before_ms,
                &not_after_ms,
                &new_version,
                &at_least,
                &exactly,
                &checked,
                &checked_versions,
                &written,
                &any,
                &versions,
                &contents,
                &ends,
                &channels,
                &messages,
            ];
            call.row(client, &arguments).await
        });
        let committed = match done.await? {
            Ok(row) => self.committed(commit, &row)?,
            Err(error) if is_conflict(&error) => {
                let stale = Vec::new();
                Committed::Refused { stale }
            }
            Err(error) => return Err(self.failed("a commit", &error)),
        };
        self.clock.see_commit(sent, &committed);
        self.refusal.see(&committed);
        Ok(committed)
    }
}

/// A commit's documents, column by column.
struct Columns<'a> {
    checked: Vec<Vec<u8>>,
    checked_versions: Vec<Option<i64>>,
    written: Vec<Vec<u8>>,
    any: Vec<bool>,
    versions: Vec<Option<i64>>,
    contents: Vec<&'a str>,
    ends: Vec<Option<i64>>,
}

impl<'a> Columns<'a> {
    fn of(commit: &'a Commit) -> Self {
        let (checks, writes) = (commit.checks.iter(), in_order(commit).into_iter());
        let end = |ends_ms| ends_ms as i64;
        let is_any = |expected| expected == Expected::Any;
        Self {
            checked: checks.clone().map(|(name, _)| name.to_bytes()).collect(),
            checked_versions: checks.map(|(_, expected)| version(*expected)).collect(),
            written: writes.clone().map(|write| write.name.to_bytes()).collect(),
            any: writes.clone().map(|write| is_any(write.expected)).collect(),
            versions: writes
                .clone()
                .map(|write| version(write.expected))
                .collect(),
            contents: writes.clone().map(|write| &*write.content).collect(),
            ends: writes.map(|write| write.ends_ms.map(end)).collect(),
        }
    }
}

fn alive(row: &Row) -> Result<(), ShardError> {
    match row.get(0) {
        true => Ok(()),
        false => Err(ShardError::Unarmed),
    }
}

impl fmt::Debug for PostgresSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "session {} at {}", self.id.0, self.wire.address)
    }
}
