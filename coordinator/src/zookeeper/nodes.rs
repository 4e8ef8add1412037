//! The znodes, and operations on them.
//!
//! ```text
//! life            the life; its child has its name, so that a check of the child tells lives apart
//! gates/<id>      ephemeral: the session of the store may commit
//! clock, tokens   in milliseconds; the last token
//! swept           changes when documents are deleted
//! documents/…     all documents but locks
//! locks/<n>/…     documents of locks and of their waiters, in directories, so that each can be listed in one answer
//! messages/<n>/…  ephemeral, of a client: each message changes one
//! watchers        the last message to all who watch the topology
//! ```

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use zookeeper_client::{Acls, Client, CreateMode, Error, MultiReadResult, MultiWriteError, Stat};

use super::ZookeeperOptions;
use crate::{
    ids::{ClientId, Life},
    name::LockKey,
    shard::{
        ConnectionId, ShardError,
        docs::{Document, Name, WATCHERS, quorum::text::parse},
    },
};

/// Directories of locks: ZooKeeper lists one in one answer, of at most 1 MB by default.
pub(super) const LOCK_DIRS: usize = 1024;

/// Directories of messages. A client hears of all changes in its directory.
const MESSAGE_DIRS: u128 = 256;

/// So many messages of one process may be on their way to a client before a later one takes the place of an earlier one.
pub(super) const INBOX_SLOTS: u64 = 16;

/// Znodes read in one request, at most.
const READ_AT_ONCE: usize = 2048;

/// What a name of a znode must not have, or what a reader would take for something else.
const ENCODED: &AsciiSet = &CONTROLS.add(b'/').add(b'%').add(b'.');

/// Where znodes are.
#[derive(Debug)]
pub(super) struct Paths(String);

impl Paths {
    pub(super) fn new(options: &ZookeeperOptions) -> Self {
        let prefix = encoded(options.prefix.as_str().as_bytes());
        Self(format!("{}/{prefix}", options.address.path))
    }

    /// The znode that all others are under.
    pub(super) fn root(&self) -> &str {
        &self.0
    }

    /// A znode that is always there.
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }

    /// The znode that exists while `life` goes on.
    pub(super) fn life(&self, life: &Life) -> String {
        self.at(&format!("life/{}", encoded(life.as_str().as_bytes())))
    }

    /// The znode that exists while the session `id` may commit.
    pub(super) fn gate(&self, ConnectionId(id): ConnectionId) -> String {
        self.at(&format!("gates/{id}"))
    }

    /// A directory of locks.
    pub(super) fn locks(&self, dir: usize) -> String {
        self.at(&format!("locks/{dir}"))
    }

    /// A document.
    pub(super) fn document(&self, name: &Name) -> String {
        match name {
            Name::Lock(key) => self.lock(key),
            // Those of one key are in many directories.
            Name::Ticket(_, nonce) => {
                let dir = nonce.client.0 % LOCK_DIRS as u128;
                format!("{}/{}", self.locks(dir as usize), encoded(&name.to_bytes()))
            }
            name => self.at(&format!("documents/{}", encoded(&name.to_bytes()))),
        }
    }

    /// The document of a lock.
    pub(super) fn lock(&self, key: &LockKey) -> String {
        format!("{}/{}", self.locks(dir_of(key)), lock_name(key))
    }

    /// The directory of a client's messages; that of watchers is `watchers` itself.
    pub(super) fn inbox(&self, client: ClientId) -> String {
        match client {
            WATCHERS => self.at("watchers"),
            ClientId(id) => self.at(&format!("messages/{}", id % MESSAGE_DIRS)),
        }
    }

    /// What the znodes of messages to `client` begin with.
    pub(super) fn messages_of(&self, client: ClientId) -> String {
        let inbox = self.inbox(client);
        match client {
            WATCHERS => inbox,
            client => format!("{inbox}/{client}-"),
        }
    }

    /// The znode with the `number`-th message to `client`.
    pub(super) fn message(&self, client: ClientId, number: u64) -> String {
        let begin = self.messages_of(client);
        match client {
            WATCHERS => begin,
            _ => format!("{begin}{}", number % INBOX_SLOTS),
        }
    }

    /// All that is there before a life begins, parents first.
    pub(super) fn layout(&self, clock: Vec<u8>, token: Vec<u8>) -> Vec<Op> {
        let texts = [("clock", clock), ("tokens", token)];
        let texts = texts.map(|(name, text)| Op::Create(self.at(name), text));
        let names = [
            "swept",
            "watchers",
            "gates",
            "documents",
            "locks",
            "messages",
        ];
        let plain = names.map(str::to_owned).into_iter();
        let plain = plain.chain((0..LOCK_DIRS).map(|dir| format!("locks/{dir}")));
        let plain = plain.chain((0..MESSAGE_DIRS).map(|dir| format!("messages/{dir}")));
        let plain = plain.map(|name| Op::Create(self.at(&name), Vec::new()));
        texts.into_iter().chain(plain).collect()
    }
}

/// The directory that `key` is in. The keys of a slot are together.
pub(super) fn dir_of(key: &LockKey) -> usize {
    key.slot().index() % LOCK_DIRS
}

/// The name of a lock in its directory.
pub(super) fn lock_name(key: &LockKey) -> String {
    encoded(key.text())
}

/// The key with this name in its directory.
pub(super) fn key_named(name: &str) -> Option<LockKey> {
    LockKey::parse(&percent_decode_str(name).collect::<Vec<u8>>())
}

fn encoded(name: &[u8]) -> String {
    percent_encode(name, ENCODED).to_string()
}

/// The state of a znode. Later ones are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    zxid: i64,
    pub(super) version: i32,
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            zxid: stat.mzxid,
            version: stat.version,
        }
    }
}

/// An operation of a transaction.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// The znode exists, in this version, if one is given.
    Check(String, Option<i32>),
    Create(String, Vec<u8>),
    /// It goes with the session of ZooKeeper.
    CreateEphemeral(String),
    /// Writes a znode, if it has this version.
    Set(String, Vec<u8>, Option<i32>),
    /// Deletes a znode, if it has this version.
    Delete(String, Option<i32>),
}

impl Op {
    /// How much of a request it takes, or a little more.
    pub(super) fn bytes(&self) -> usize {
        let (path, text) = match self {
            Self::Check(path, _) | Self::CreateEphemeral(path) | Self::Delete(path, _) => (path, 0),
            Self::Create(path, text) | Self::Set(path, text, _) => (path, text.len()),
        };
        path.len() + text + 64
    }
}

/// There is no znode at `path`.
pub(super) fn absent(path: String) -> [Op; 2] {
    [Op::Create(path.clone(), Vec::new()), Op::Delete(path, None)]
}

/// Writes a znode that has `version`, and returns its next version.
pub(super) fn set(ops: &mut Vec<Op>, path: String, text: Vec<u8>, version: i32) -> i32 {
    ops.push(Op::Set(path.clone(), text.clone(), Some(version)));
    match version.wrapping_add(1) {
        // It means any version: a condition on it would be none.
        -1 => {
            ops.push(Op::Set(path, text, None));
            0
        }
        next => next,
    }
}

/// What came of a transaction.
#[derive(Debug)]
pub(super) enum Written {
    /// All of it was done. What was written has these states, in the order of the operations.
    Done(Vec<Option<Stamp>>),
    /// The operation with this number could not be done; so nothing was.
    Failed(usize),
}

/// Sends a transaction, before the future is polled.
pub(super) fn write<'a>(
    client: &'a Client,
    acls: Acls<'static>,
    ops: &[Op],
) -> impl Future<Output = Result<Written, Error>> + Send + use<'a> {
    let sent = send(client, acls, ops);
    async move {
        match sent?.await {
            Ok(results) => Ok(Written::Done(results)),
            Err(MultiWriteError::OperationFailed { index, source }) => match source {
                Error::NoNode | Error::NodeExists | Error::BadVersion | Error::NotEmpty => {
                    Ok(Written::Failed(index))
                }
                other => Err(other),
            },
            Err(MultiWriteError::RequestFailed { source }) => Err(source),
        }
    }
}

fn send<'a>(
    client: &'a Client,
    acls: Acls<'static>,
    ops: &[Op],
) -> Result<impl Future<Output = Result<Vec<Option<Stamp>>, MultiWriteError>> + Send + use<'a>, Error>
{
    let mut writer = client.new_multi_writer();
    let kept = CreateMode::Persistent.with_acls(acls);
    let ephemeral = CreateMode::Ephemeral.with_acls(acls);
    for op in ops {
        match op {
            Op::Check(path, version) => writer.add_check_version(path, version.unwrap_or(-1))?,
            Op::Create(path, text) => writer.add_create(path, text, &kept)?,
            Op::CreateEphemeral(path) => writer.add_create(path, &[], &ephemeral)?,
            Op::Set(path, text, version) => writer.add_set_data(path, text, *version)?,
            Op::Delete(path, version) => writer.add_delete(path, *version)?,
        }
    }
    let written = writer.commit();
    Ok(async move {
        let results = written.await?.into_iter();
        let stamp = |result| match result {
            zookeeper_client::MultiWriteResult::SetData { stat } => Some(Stamp::of(&stat)),
            _ => None,
        };
        Ok(results.map(stamp).collect())
    })
}

/// A znode that was read.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) text: Vec<u8>,
    pub(super) stamp: Stamp,
}

impl Node {
    /// Whether the document in it has content.
    pub(super) fn says_something(&self) -> bool {
        parse(&self.text).is_none_or(|(document, _)| !document.content.is_empty())
    }
}

/// Reads znodes. It is sent before the future is polled.
pub(super) fn read<'a>(
    client: &'a Client,
    paths: &[String],
) -> impl Future<Output = Result<Vec<Option<Node>>, Error>> + Send + use<'a> {
    let sent = paths.chunks(READ_AT_ONCE).map(|paths| {
        let mut reader = client.new_multi_reader();
        let added = paths.iter().try_for_each(|path| reader.add_get_data(path));
        added.map(|()| reader.commit())
    });
    let sent: Vec<_> = sent.collect();
    async move {
        let mut nodes = Vec::new();
        for part in sent {
            for result in part?.await? {
                nodes.push(match result {
                    MultiReadResult::Data { data, stat } => Some(Node {
                        text: data,
                        stamp: Stamp::of(&stat),
                    }),
                    MultiReadResult::Error { err: Error::NoNode } => None,
                    MultiReadResult::Error { err } => return Err(err),
                    _ => return Err(Error::UnexpectedError("no data".into())),
                });
            }
        }
        Ok(nodes)
    }
}

/// The names in each of `dirs`.
pub(super) async fn list(client: &Client, dirs: &[String]) -> Result<Vec<Vec<String>>, Error> {
    let mut reader = client.new_multi_reader();
    for dir in dirs {
        reader.add_get_children(dir)?;
    }
    let names = |result| match result {
        MultiReadResult::Children { children } => Ok(children),
        MultiReadResult::Error { err } => Err(err),
        _ => Err(Error::UnexpectedError("no children".into())),
    };
    reader.commit().await?.into_iter().map(names).collect()
}

/// The number that a znode has, and its state.
pub(super) fn number(node: Option<Node>, what: &str) -> Result<(u64, Stamp), ShardError> {
    let node = node.ok_or_else(|| not_ours(what))?;
    let number = str::from_utf8(&node.text).ok();
    let number = number.and_then(|text| text.parse().ok());
    Ok((number.ok_or_else(|| not_ours(what))?, node.stamp))
}

/// The document that a znode has, and its end.
pub(super) fn stored(node: &Node, what: &str) -> Result<(Document, Option<u64>), ShardError> {
    parse(&node.text).ok_or_else(|| not_ours(what))
}

pub(super) fn not_ours(what: &str) -> ShardError {
    ShardError::Refused {
        what: "a read",
        reason: format!("the znode {what} is not what Ringfence wrote"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_never_names_the_version_that_means_any() {
        let mut ops = Vec::new();
        assert_eq!(set(&mut ops, "/a".into(), Vec::new(), i32::MAX), i32::MIN);
        assert_eq!(ops.len(), 1);
        assert_eq!(set(&mut ops, "/a".into(), Vec::new(), -2), 0);
        assert!(matches!(
            ops[1..],
            [Op::Set(_, _, Some(-2)), Op::Set(_, _, None)]
        ));
    }
}
