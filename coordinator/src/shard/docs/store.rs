//! A server that keeps documents.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use ringfence_ring::Slot;

use crate::{
    clock::Moment,
    ids::{ClientId, Life, Nonce, Token},
    name::LockKey,
    shard::{ConnectionId, ShardError},
};

/// A commit is refused if the documents it is based on were read longer ago.
pub const COMMIT_WITHIN: Duration = Duration::from_secs(5);

/// A store keeps a document at least so long after its end: much longer than [`COMMIT_WITHIN`], so that a commit never
/// takes a later document for the one that was read, or finds nothing where there was something meanwhile.
pub const FORGET_AFTER: Duration = Duration::from_secs(60);

/// A clock that may be late may be late by so much, at most: see [`Found::slack_ms`].
pub const SLACK_MAX: Duration = Duration::from_secs(2);

/// The client whose messages go to all that listen for it: they tell of a new topology record. Other clients have random
/// numbers of 128 bits, and one listener.
pub const WATCHERS: ClientId = ClientId(0);

/// A server that keeps the documents of one shard.
///
/// # Contract
///
/// * Each session is one physical connection in one life of the server, and never reconnects by itself.
/// * A session that ends `former` returns only when no request of `former` can take effect any more.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Opens a session, and ends `former` if that was one of the same life.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection. `former` may have been ended.
    async fn open(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError>;

    /// The same for requests that come seldom. Such sessions and inboxes may share a connection, and end together: if it is
    /// `former`, or a request of one fails.
    ///
    /// # Cancel safety
    ///
    /// As [`open`](Self::open).
    async fn open_rare(
        &self,
        former: Option<(Life, ConnectionId)>,
    ) -> Result<Box<dyn Session>, ShardError>;

    /// Opens a connection for the messages to `client`.
    async fn listen(&self, client: ClientId) -> Result<Box<dyn Inbox>, ShardError>;
}

/// A connection to a store.
///
/// # Contract
///
/// * A request in another life than the session's does nothing: [`ShardError::Unarmed`]. In a session that a later one
///   has ended, a commit does nothing: [`ShardError::NoReply`].
/// * **A read is a snapshot.** It has every commit that was answered before the read was sent. [`Found::now_ms`] is the
///   server's clock at the time of the snapshot, or before it, and after the read was sent.
/// * **The clock runs no faster than time.** Between the snapshot of a read and any later moment, it goes from
///   [`Found::now_ms`] by at most [`Found::slack_ms`] more than the time between them. It may be slow.
/// * **A commit is atomic.** It is done only if every document named has the expected version *at the time of the
///   commit*, which no other commit can change until this one is visible, and if the server's clock is not past
///   [`Commit::not_after_ms`], nor before [`Commit::not_before_ms`]. Two commits that both change or both check a document are one after the other.
/// * **Tokens rise.** [`Found::last`] is at least every token that a commit in the snapshot used. A draw adds to the last
///   token in one step, after the snapshot was taken: no two draws get the same token.
/// * A document without an end is never forgotten in a life. One with an end is kept for at least [`FORGET_AFTER`] after
///   it.
///
/// # Cancel safety
///
/// A dropped request was applied, or not, or is applied later. Drop the session too: no request of it is applied after a
/// later session has ended it.
#[async_trait]
pub trait Session: fmt::Debug + Send {
    /// The life of the server.
    fn life(&self) -> &Life;

    /// The id by which a later session ends this one.
    fn id(&self) -> ConnectionId;

    /// Whether a crash of the server loses nothing that was answered: etcd and ZooKeeper answer after a majority has the
    /// commit on disk, and a server that would lose it is refused, but for unlogged tables.
    fn is_durable(&self) -> bool {
        true
    }

    /// Documents that a commit checks or writes, at most.
    fn commit_max(&self) -> usize;

    /// What draws tokens for locks that have to be read.
    fn draws(&self) -> Draws {
        Draws::Reads
    }

    /// Now, on a clock that other processes read. `None`: there is none, or none is needed, because the server has a clock of
    /// its own, which never stands still.
    fn moment(&self) -> Option<Moment>;

    /// As [`Link::ended`](crate::shard::Link::ended).
    async fn ended(&mut self);

    /// Reads documents, and draws tokens, unless the head is another than the draw depends on.
    async fn read(&mut self, names: &[Name], draw: Option<Draw>) -> Result<Found, ShardError>;

    /// The clock, as it is known without a request. `None`: a read is needed.
    fn glance(&self) -> Option<Glance>;

    /// Reads at most `limit` documents of locks that are not empty, after `after`, in an order of the store's own.
    async fn page(&mut self, after: Option<&LockKey>, limit: usize) -> Result<Page, ShardError>;

    /// Writes documents, if those that they depend on are unchanged.
    async fn commit(&mut self, commit: &Commit) -> Result<Committed, ShardError>;
}

/// A connection on which messages to one client arrive. They may be lost, and are dropped rather than kept without bound.
#[async_trait]
pub trait Inbox: fmt::Debug + Send {
    /// The life in which the connection was opened. It ends with it.
    fn life(&self) -> &Life;

    /// The next message.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    async fn next(&mut self) -> Result<String, ShardError>;
}

/// The name of a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// The shard's arming, fence, and copy of the topology.
    Head,
    /// The topology that the shard belongs to, and the record of that, if it is kept here. It outlasts lives.
    Topology,
    /// The states of 4096 slots. A commit that writes them writes the head too.
    Slots(u32),
    /// The knowledge about the keys of a slot that arrives.
    Import(Slot),
    /// The record and the queue of a lock.
    Lock(LockKey),
    /// When a waiter of that queue asked again. Not in the queue, so that waiters do not compete with the holder.
    Ticket(LockKey, Nonce),
}

impl Name {
    /// The name in bytes: `head`, `topology`, `slots/0`, `import/0`, `lock/{slot}:namespace:key`,
    /// `ticket/client:sequence/{slot}:namespace:key`.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Head => b"head".into(),
            Self::Topology => b"topology".into(),
            Self::Slots(number) => format!("slots/{number}").into_bytes(),
            Self::Import(slot) => format!("import/{slot}").into_bytes(),
            Self::Lock(key) => [Self::LOCK, key.text()].concat(),
            Self::Ticket(key, nonce) => {
                [format!("ticket/{nonce}/").as_bytes(), key.text()].concat()
            }
        }
    }

    /// Whether it is a lock's. There are as many of these as locks and waiters: a session remembers few.
    pub(crate) fn is_of_a_lock(&self) -> bool {
        matches!(self, Self::Lock(_) | Self::Ticket(..))
    }

    /// The beginning of the names of locks.
    pub const LOCK: &[u8] = b"lock/";

    /// The key of the lock with this name.
    pub fn lock(name: &[u8]) -> Option<LockKey> {
        LockKey::parse(name.strip_prefix(Self::LOCK)?)
    }
}

/// A stored document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The number that its last commit gave it. No other commit gives the same.
    pub version: u64,
    /// The text; empty if it says nothing.
    pub content: String,
}

/// What draws tokens for locks that have to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draws {
    /// The read.
    Reads,
    /// The commit, by [`TokenChange::Next`]: draws compete, so one in a read would often be in vain.
    Commits,
}

/// Takes tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The version of the head. If it is another, nothing is taken.
    pub head: Expected,
    /// How many.
    pub tokens: u64,
}

/// The answer to a read.
#[derive(Clone, Debug)]
pub struct Found {
    /// The server's clock, in milliseconds.
    pub now_ms: u64,
    /// By how much that clock may have been late, at most [`SLACK_MAX`]: ends count from both together. 0: the server has a clock of its own, which
    /// is never late, nor stands still.
    pub slack_ms: u64,
    /// The last token before the draw.
    pub last: Token,
    /// How many tokens after `last` were taken. None, if the counter of the token would exceed
    /// [`COUNTER_MAX`](crate::limits::COUNTER_MAX), or if the head is stale.
    pub drawn: u64,
    /// The head is another than the draw depends on.
    pub head_is_stale: bool,
    /// The documents, in the order of their names.
    pub documents: Vec<Option<Document>>,
}

/// What is known of the clock without a request.
#[derive(Clone, Copy, Debug)]
pub struct Glance {
    /// What the server's clock has shown. Between the glance and any later moment, it goes from this by at most
    /// [`slack_ms`](Self::slack_ms) more than the time between them.
    pub now_ms: u64,
    /// At most [`SLACK_MAX`].
    pub slack_ms: u64,
    /// The last millisecond, by the server's clock, at which a commit may depend on this.
    pub until_ms: u64,
}

/// A page of documents of locks.
#[derive(Clone, Debug)]
pub struct Page {
    /// As in [`Found`].
    pub now_ms: u64,
    /// The documents, and the keys.
    pub documents: Vec<(LockKey, Document)>,
    /// There are more.
    pub more: bool,
}

/// The version that a document must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any, or none.
    Any,
    /// There is no document of this name.
    Absent,
    /// This one.
    Version(u64),
}

/// A change of the documents.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Documents that must be unchanged, and are not written.
    pub checks: Vec<(Name, Expected)>,
    /// Documents to write. No name occurs twice in a commit.
    pub writes: Vec<Write>,
    /// The version of each written document: a random number of 63 bits.
    pub version: u64,
    /// The last token.
    pub tokens: TokenChange,
    /// The first millisecond, by the server's clock, at which the commit may be done: a clock that shows less has gone back.
    pub not_before_ms: u64,
    /// The last millisecond, by the server's clock, at which the commit may be done.
    pub not_after_ms: u64,
    /// Messages to send if it is done.
    pub messages: Vec<(ClientId, String)>,
}

impl Commit {
    /// Whether it may be done when the server's clock shows this.
    pub fn is_in_time(&self, now_ms: u64) -> bool {
        (self.not_before_ms..=self.not_after_ms).contains(&now_ms)
    }

    /// Whether it writes the head, on which all requests depend, and which few change.
    pub fn writes_head(&self) -> bool {
        self.writes.iter().any(|write| write.name == Name::Head)
    }

    /// How many documents it makes.
    pub fn makes(&self) -> usize {
        let is_new = |write: &&Write| write.expected == Expected::Absent;
        self.writes.iter().filter(is_new).count()
    }

    /// Its documents, and how they must be for it to be done.
    pub fn expectations(&self) -> impl Iterator<Item = (&Name, Expected)> {
        let checks = self.checks.iter();
        let checks = checks.map(|(name, expected)| (name, *expected));
        let writes = self.writes.iter();
        checks.chain(writes.map(|write| (&write.name, write.expected)))
    }
}

/// A document to write.
#[derive(Clone, Debug)]
pub struct Write {
    /// Its name.
    pub name: Name,
    /// The version that it replaces.
    pub expected: Expected,
    /// Its text.
    pub content: String,
    /// The last millisecond, by the server's clock, at which it says something. `None`: it has no end.
    pub ends_ms: Option<u64>,
}

/// What becomes of the last token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenChange {
    /// It stays.
    None,
    /// This, if it is lower.
    AtLeast(Token),
    /// This.
    Exactly(Token),
    /// It draws tokens, as a read does: it is done only if the last token is `after`.
    Next {
        /// The last token before.
        after: Token,
        /// The last token then.
        last: Token,
    },
}

impl TokenChange {
    /// Whether others drew tokens before it, if `last` is the last one.
    pub fn is_overtaken(self, last: Token) -> bool {
        matches!(self, Self::Next { after, .. } if after != last)
    }
}

/// What became of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// It was done.
    Done {
        /// The server's clock then. `None`: it has none of its own.
        at_ms: Option<u64>,
    },
    /// It came too late, or these documents were not as expected, and perhaps others. Nothing was done.
    Refused {
        /// Some of the documents.
        stale: Vec<Name>,
    },
}

impl Committed {
    /// Whether it was done.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }
}
