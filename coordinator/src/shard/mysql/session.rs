//! A connection for reads and commits.

use std::future::pending;

use async_trait::async_trait;
use mysql_async::{Row, Value};
use serde::Serialize;
use tokio::{sync::watch, time::Instant};

use super::{MysqlOptions, messages::Listening, wire::Wire};
use crate::{
    clock::Moment,
    ids::{Life, Token},
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

/// Why a server has no locks: after a crash it would grant one again, with the same token.
const LOSES_COMMITS: &str = "it may lose commits in a crash, and the locks that were granted by them; run: SET GLOBAL \
    innodb_flush_log_at_trx_commit = 1, sync_binlog = 1 (a managed server has them in its parameter group)";

/// A connection for reads and commits.
#[derive(Debug)]
pub(super) struct MysqlSession {
    pub(super) wire: Wire,
    pub(super) life: Life,
    id: ConnectionId,
    /// Of the names of tables, as a part of a quoted name.
    pub(super) prefix: String,
    pub(super) listening: Listening,
    /// Documents that this connection made since its last sweep.
    made: usize,
    /// Where that sweep stopped.
    swept: Vec<u8>,
    /// When a session of the process last wrote something.
    pub(super) wrote: watch::Sender<Instant>,
    clock: SeenClock,
    refusal: LastRefusal,
}

impl MysqlSession {
    /// Connects, ends `former`, and begins the life if there is none.
    pub(super) async fn open(
        options: &MysqlOptions,
        former: Option<(Life, ConnectionId)>,
        wrote: &watch::Sender<Instant>,
    ) -> Result<Self, ShardError> {
        let mut wire = Wire::connect(options).await?;
        let (life, id, is_durable) = wire.open(former).await?;
        if !is_durable {
            let reason = format!("{} is unusable: {LOSES_COMMITS}", options.address);
            return Err(ShardError::Unusable { reason });
        }
        Ok(Self {
            wire,
            life,
            id,
            prefix: options.quoted_prefix(),
            listening: Listening::default(),
            made: 0,
            swept: Vec::new(),
            wrote: wrote.clone(),
            clock: SeenClock::default(),
            refusal: LastRefusal::default(),
        })
    }

    fn life_argument(&self) -> Value {
        self.life.as_str().into()
    }

    async fn sweep(&mut self) -> Result<(), ShardError> {
        let after = vec![self.swept.clone().into()];
        let (_, row) = self.wire.call("sweep", after).await?;
        let (until,): (Option<Vec<u8>>,) = self.wire.read("sweep", row)?;
        (self.swept, self.made) = (until.unwrap_or_default(), 0);
        Ok(())
    }
}

#[async_trait]
impl Session for MysqlSession {
    fn life(&self) -> &Life {
        &self.life
    }

    fn id(&self) -> ConnectionId {
        self.id
    }

    fn commit_max(&self) -> usize {
        usize::MAX
    }

    /// Only a request shows it.
    async fn ended(&mut self) {
        pending().await
    }

    fn moment(&self) -> Option<Moment> {
        None
    }

    async fn read(&mut self, names: &[Name], draw: Option<Draw>) -> Result<Found, ShardError> {
        let names: Vec<String> = names.iter().map(hex).collect();
        let arguments = vec![
            self.life_argument(),
            list(&names),
            draw.and_then(|draw| version(draw.head)).into(),
            draw.map_or(0, |draw| draw.tokens).into(),
        ];
        let sent = SeenClock::sent();
        let (rows, last) = self.wire.call("read", arguments).await?;
        let (is_alive, now_ms, last, drawn, head_is_stale): (bool, u64, u64, u64, bool) =
            self.wire.read("read", last)?;
        alive(is_alive)?;
        self.clock.see(sent, now_ms);
        let document = |row: Row| -> Result<Option<Document>, ShardError> {
            let (version, content): (Option<u64>, Option<String>) = self.wire.read("read", row)?;
            let both = version.zip(content);
            Ok(both.map(|(version, content)| Document { version, content }))
        };
        Ok(Found {
            now_ms,
            slack_ms: 0,
            last: Token::from_number(last),
            drawn,
            head_is_stale,
            documents: rows.into_iter().map(document).collect::<Result<_, _>>()?,
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
        let arguments = vec![
            self.life_argument(),
            after.into(),
            (limit as u64 + 1).into(),
        ];
        let (rows, last) = self.wire.call("page", arguments).await?;
        let (is_alive, now_ms): (bool, u64) = self.wire.read("page", last)?;
        alive(is_alive)?;
        let more = rows.len() > limit;
        let mut documents = Vec::new();
        for row in rows.into_iter().take(limit) {
            let (name, version, content): (Vec<u8>, u64, String) = self.wire.read("page", row)?;
            let document = Document { version, content };
            documents.extend(Name::lock(&name).map(|key| (key, document)));
        }
        Ok(Page {
            now_ms,
            documents,
            more,
        })
    }

    async fn commit(&mut self, commit: &Commit) -> Result<Committed, ShardError> {
        if !commit.writes.is_empty() {
            self.wrote.send_replace(Instant::now());
        }
        if self.made >= SWEEP_AFTER {
            self.sweep().await?;
        }
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
        let Lists {
            locked,
            checked,
            written,
            contents,
            messages,
        } = Lists::of(commit);
        let arguments = vec![
            self.life_argument(),
            self.id.0.into(),
            commit.not_before_ms.into(),
            i64::try_from(commit.not_after_ms)
                .unwrap_or(i64::MAX)
                .into(),
            commit.version.into(),
            at_least.into(),
            exactly.into(),
            commit.writes_head().into(),
            self.refusal.is_recent().into(),
            list(&locked),
            list(&checked),
            list(&written),
            contents.into(),
            list(&messages),
        ];
        let sent = SeenClock::sent();
        let (_, row) = self.wire.call("commit", arguments).await?;
        let (outcome, stale, at_ms): (i32, Option<String>, Option<u64>) =
            self.wire.read("commit", row)?;
        let stale: Vec<String> = stale
            .and_then(|stale| serde_json::from_str(&stale).ok())
            .unwrap_or_default();
        let is_stale = |name: &Name| stale.contains(&hex(name));
        let committed = committed(outcome, at_ms, commit, is_stale)?;
        self.clock.see_commit(sent, &committed);
        self.refusal.see(&committed);
        self.made += made(&committed, commit);
        Ok(committed)
    }
}

/// What procedures read as JSON.
fn list(values: &impl Serialize) -> Value {
    let text = serde_json::to_string(values);
    text.expect("texts and numbers").into()
}

/// A commit's documents, and its messages.
struct Lists<'a> {
    /// All, in the order of their names, but the head, which has a lock of its own; none, if the others are written.
    locked: Vec<String>,
    /// Those that are not written.
    checked: Vec<Its>,
    written: Vec<Written>,
    /// The contents of all that are written, one after the other.
    contents: String,
    messages: Vec<Message<'a>>,
}

/// A document, and the version that it must have.
#[derive(Serialize)]
struct Its {
    n: String,
    v: Option<i64>,
}

#[derive(Serialize)]
struct Written {
    #[serde(flatten)]
    its: Its,
    any: bool,
    /// Where its content begins, from 1, and how long that is, in characters.
    at: usize,
    len: usize,
    e: Option<u64>,
}

#[derive(Serialize)]
struct Message<'a> {
    to: String,
    text: &'a str,
}

impl<'a> Lists<'a> {
    fn of(commit: &'a Commit) -> Self {
        let its = |name: &Name, expected| Its {
            n: hex(name),
            v: version(expected),
        };
        let all: Vec<_> = commit.expectations().collect();
        let checked = &all[..commit.checks.len()];
        let checked_its = checked
            .iter()
            .filter(|(_, expected)| *expected != Expected::Any);
        let checked_its = checked_its.map(|(name, expected)| its(name, *expected));
        let locks = |all: &[(&Name, Expected)]| {
            let locked = all.iter().filter(|(name, _)| **name != Name::Head);
            locked.map(|(name, _)| hex(name)).collect()
        };
        let mut locked: Vec<String> = locks(checked);
        if !locked.is_empty() {
            locked = locks(&all);
            locked.sort_unstable();
        }
        let (mut contents, mut at) = (String::new(), 1);
        let written = in_order(commit).into_iter().map(|write| {
            contents.push_str(&write.content);
            let len = write.content.chars().count();
            at += len;
            Written {
                its: its(&write.name, write.expected),
                any: write.expected == Expected::Any,
                at: at - len,
                len,
                e: write.ends_ms,
            }
        });
        let messages = commit.messages.iter();
        let messages = messages.map(|(to, text)| Message {
            to: to.to_string(),
            text,
        });
        Self {
            locked,
            checked: checked_its.collect(),
            written: written.collect(),
            contents,
            messages: messages.collect(),
        }
    }
}

/// A name as JSON can have it.
fn hex(name: &Name) -> String {
    let digits = name
        .to_bytes()
        .into_iter()
        .map(|byte| format!("{byte:02X}"));
    digits.collect()
}

fn alive(is_alive: bool) -> Result<(), ShardError> {
    match is_alive {
        true => Ok(()),
        false => Err(ShardError::Unarmed),
    }
}
