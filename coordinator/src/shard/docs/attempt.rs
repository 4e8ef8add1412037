//! The steps of an attempt at a request: read, and commit.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use hashbrown::HashMap;
use tokio::time::sleep;

use super::{
    known::{Drawn, KnownLocks, Reserve},
    locks::Locks,
    store::{
        COMMIT_WITHIN, Commit, Committed, Draw, Expected, Found, Glance, Name, Session,
        TokenChange, WATCHERS, Write,
    },
    view::View,
};
use crate::{
    ids::{Life, Nonce},
    name::LockKey,
    random::Random,
    shard::{
        ConnectionId, Notification, ShardError,
        rules::{ToRead, codec, millis},
    },
};

/// Attempts at a request before it is given up. Each one that fails means that another request was done.
pub(super) const ATTEMPTS: u32 = 64;

/// Documents of a lock's waiters that are read at once, at first and then: mostly the first one waits.
const STAYS_FIRST: usize = 8;
const STAYS_NEXT: usize = 256;

/// The pause between two attempts is a random part of this, times two for each attempt, so many times.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_DOUBLED: u32 = 7;

/// A session, and the documents of the whole shard as it read them.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(super) session: Box<dyn Session>,
    pub(super) view: View,
    pub(super) known: KnownLocks,
    pub(super) reserve: Reserve,
    /// The nonce that last had to wait for each key, and the tokens that it asked for.
    pub(super) waiting: HashMap<LockKey, (Nonce, u32)>,
    random: Arc<Random>,
}

/// What was read for an attempt.
#[derive(Debug)]
pub(super) struct Read {
    /// The documents of slots and imports that the request depends on, and the head.
    pub(super) names: BTreeSet<Name>,
    pub(super) locks: Locks,
    pub(super) now_ms: u64,
    /// The last millisecond at which a commit may depend on it.
    pub(super) until_ms: u64,
    /// The tokens that a commit may use.
    pub(super) drawn: Drawn,
    pub(super) tokens: Tokens,
    pub(super) head_is_stale: bool,
}

/// Where the tokens of a read are from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tokens {
    None,
    Reserved,
    /// The read drew them.
    Drawn,
}

/// What an attempt changes, apart from its locks.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) writes: Vec<Write>,
    pub(super) tokens: TokenChange,
    pub(super) notifications: Vec<Notification>,
    /// The version of a topology record that comes into force.
    pub(super) announcement: Option<String>,
}

impl Read {
    /// Of no lock.
    pub(super) fn of(names: BTreeSet<Name>, found: &Found) -> Self {
        Self {
            names,
            locks: Locks::default(),
            now_ms: found.now_ms,
            until_ms: found.now_ms.saturating_add(millis(COMMIT_WITHIN)),
            drawn: Drawn {
                start: found.last,
                count: found.drawn,
            },
            tokens: match found.drawn {
                0 => Tokens::None,
                _ => Tokens::Drawn,
            },
            head_is_stale: found.head_is_stale,
        }
    }
}

impl Changes {
    /// Whether nothing is changed.
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            writes,
            tokens,
            notifications,
            announcement,
        } = self;
        let is_kept = *tokens == TokenChange::None;
        writes.is_empty() && is_kept && notifications.is_empty() && announcement.is_none()
    }
}

impl Desk {
    pub(super) fn new(session: Box<dyn Session>, random: Arc<Random>) -> Self {
        Self {
            session,
            view: View::default(),
            known: KnownLocks::default(),
            reserve: Reserve::default(),
            waiting: HashMap::new(),
            random,
        }
    }

    /// The life of the server.
    pub(crate) fn life(&self) -> &Life {
        self.session.life()
    }

    /// The id by which a later connection ends this one.
    pub(crate) fn id(&self) -> ConnectionId {
        self.session.id()
    }

    /// Whether a crash of the server loses nothing that was answered.
    pub(crate) fn is_durable(&self) -> bool {
        self.session.is_durable()
    }

    /// Waits after a request was overtaken so often: the more compete for a lock, the longer.
    pub(super) async fn pause(&mut self, overtaken: u32) {
        if overtaken > 1 {
            let longest = PAUSE_MIN * (1 << overtaken.min(PAUSE_DOUBLED));
            let nanos = self.random.below(longest.as_nanos() as u64);
            sleep(Duration::from_nanos(nanos)).await;
        }
    }

    /// As [`read`](Self::read), without a request, with `locks` that are known and were last read after so many `draws`. `None`:
    /// too little else is known.
    pub(super) fn recall(
        &mut self,
        names: impl Fn(&View) -> BTreeSet<Name>,
        locks: Locks,
        draws: u64,
    ) -> Option<Read> {
        let mut wanted = BTreeSet::from([Name::Head]);
        wanted.extend(names(&self.view));
        if !self.view.unknown(&wanted).is_empty() {
            return None;
        }
        let Glance {
            now_ms,
            slack_ms,
            until_ms,
        } = self.session.glance()?;
        self.view.whole.slack_ms = slack_ms;
        self.view.whole.moment = self.session.moment();
        let head = self.view.version(&Name::Head);
        let none = Drawn {
            start: self.view.token().unwrap_or_default(),
            count: 0,
        };
        let (tokens, drawn, until_ms) = match self.reserve.left(head, draws, now_ms + slack_ms) {
            Some((left, serves_ms)) => (Tokens::Reserved, left, until_ms.min(serves_ms)),
            None => (Tokens::None, none, until_ms),
        };
        Some(Read {
            names: wanted,
            locks,
            now_ms,
            until_ms,
            drawn,
            tokens,
            head_is_stale: false,
        })
    }

    /// Reads the documents that a request depends on: the head, those that `names` tells by what is known, and `keys`.
    /// Only locks are read anew: the commit tells which of the others are not as they were.
    pub(super) async fn read(
        &mut self,
        names: impl Fn(&View) -> BTreeSet<Name>,
        keys: &BTreeSet<LockKey>,
        draw: impl Fn(&View) -> Option<Draw>,
    ) -> Result<Read, ShardError> {
        // The head tells which slots need a check, and their states tell which of them have an import.
        let names = loop {
            let mut wanted = BTreeSet::from([Name::Head]);
            if self.view.unknown(&wanted).is_empty() {
                wanted.extend(names(&self.view));
            }
            let unknown = self.view.unknown(&wanted);
            if unknown.is_empty() {
                break wanted;
            }
            let found = self.session.read(&unknown, None).await?;
            let life = self.session.life();
            for (name, document) in unknown.into_iter().zip(&found.documents) {
                self.view.put(life, name, document.as_ref())?;
            }
        };
        let draw = draw(&self.view);
        self.read_locks(names, keys, draw).await
    }

    /// Reads `keys`, and draws tokens. Boxed, as [`commit`](Self::commit) is: each kind of request would have its copy.
    fn read_locks<'a>(
        &'a mut self,
        names: BTreeSet<Name>,
        keys: &'a BTreeSet<LockKey>,
        draw: Option<Draw>,
    ) -> BoxFuture<'a, Result<Read, ShardError>> {
        Box::pin(async move {
            // A waiter that asks again replaces its ticket: some stores need to know it for that.
            let its_own = |key: &LockKey| Some((key.clone(), self.waiting.get(key)?.0));
            let waiting: Vec<_> = keys.iter().filter_map(its_own).collect();
            let mut wanted: Vec<_> = keys.iter().cloned().map(Name::Lock).collect();
            wanted.extend(waiting.iter().cloned().map(ticket));
            let found = self.session.read(&wanted, draw).await?;
            if found.head_is_stale {
                self.view = View::default();
            }
            self.view.whole.slack_ms = found.slack_ms;
            self.view.whole.moment = self.session.moment();
            let mut locks = Locks::default();
            for (key, document) in keys.iter().zip(&found.documents) {
                self.known
                    .found(key, document.as_ref(), self.reserve.draws());
                locks.read(key.clone(), document.as_ref())?;
            }
            if found.drawn > 0 {
                self.reserve.drew();
            }
            for ((key, nonce), document) in waiting.iter().zip(&found.documents[keys.len()..]) {
                locks.read_stay(key, *nonce, document.as_ref())?;
            }
            Ok(Read {
                locks,
                ..Read::of(names, &found)
            })
        })
    }

    /// Reads tickets, after the locks: a lock that has changed in between is not passed on, because the commit checks it.
    pub(super) fn read_stays<'a>(
        &'a mut self,
        locks: &'a mut Locks,
        now_ms: u64,
        to_read: &'a BTreeMap<LockKey, ToRead>,
    ) -> BoxFuture<'a, Result<(), ShardError>> {
        Box::pin(async move {
            let mut most = STAYS_FIRST;
            loop {
                let at = (now_ms, self.view.whole.moment.as_ref());
                let unread = locks.unread(to_read, at, most);
                if unread.is_empty() {
                    break;
                }
                let names: Vec<Name> = unread.iter().cloned().map(ticket).collect();
                let found = self.session.read(&names, None).await?;
                for ((key, nonce), document) in unread.iter().zip(&found.documents) {
                    locks.read_stay(key, *nonce, document.as_ref())?;
                }
                most = STAYS_NEXT;
            }
            locks.put_stays();
            Ok(())
        })
    }

    /// Commits what the rules changed, if all that the request depends on is as it was read.
    pub(super) fn commit<'a>(
        &'a mut self,
        read: &'a Read,
        changes: Changes,
    ) -> BoxFuture<'a, Result<Committed, ShardError>> {
        Box::pin(async move {
            let Changes {
                mut writes,
                tokens,
                notifications,
                announcement,
            } = changes;
            let now_ms = read.now_ms;
            let version = |name: &Name| (name.clone(), self.view.version(name));
            let is_written = |name: &Name| writes.iter().any(|write| write.name == *name);
            let is_checked = |name: &&Name| !matches!(name, Name::Slots(_)) && !is_written(name);
            let unwritten = read.names.iter().filter(is_checked);
            let checks: Vec<(Name, Expected)> =
                unwritten.map(version).chain(read.locks.checks()).collect();
            writes.extend(read.locks.writes(now_ms));
            let until = self.view.unchanged_until(now_ms);
            let until = until.min(read.locks.unchanged_until(now_ms));
            let message = |notification: &Notification| {
                let text = codec::notification_text(notification);
                (notification.client(), text)
            };
            let commit = Commit {
                checks,
                writes,
                // SQL has signed numbers.
                version: self.random.below(1 << 63),
                tokens,
                not_before_ms: now_ms,
                not_after_ms: until.min(read.until_ms),
                messages: notifications
                    .iter()
                    .map(message)
                    .chain(announcement.map(|text| (WATCHERS, text)))
                    .collect(),
            };
            let committed = self.session.commit(&commit).await?;
            match &committed {
                Committed::Done { .. } => {
                    self.view.committed(&commit.writes, commit.version);
                    for (key, state) in read.locks.changed() {
                        self.known.wrote(key, commit.version, state);
                    }
                }
                Committed::Refused { stale } => {
                    self.view.forget(stale);
                    self.known.forget(stale);
                    // The rules may have changed them.
                    self.view.forget(imports_in(&read.names));
                }
            }
            Ok(committed)
        })
    }
}

fn ticket((key, nonce): (LockKey, Nonce)) -> Name {
    Name::Ticket(key, nonce)
}

/// The imports among `names`.
pub(super) fn imports_in(names: &BTreeSet<Name>) -> impl Iterator<Item = &Name> {
    names.iter().filter(|name| matches!(name, Name::Import(_)))
}

/// Every attempt was overtaken.
pub(super) fn overtaken() -> ShardError {
    ShardError::Unreachable {
        reason: format!("other requests changed the same documents {ATTEMPTS} times"),
    }
}
