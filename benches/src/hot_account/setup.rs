//! What takes part.

use std::fmt;

use serde::{Serialize, Serializer};

/// How coins are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
    /// Under a lock that every task asks the shard for: read, write.
    Lock,
    /// Under a lock that goes from task to task.
    HandedOn,
    /// Under any of so many locks: read, write the row of that one.
    Segments,
    /// From a counter, each request alone.
    Alone,
    /// From a counter, requests together.
    Counter,
    /// The same again.
    CounterAgain,
    /// The same, from an account with a log of its effects.
    Logged,
    /// By a script on plain Redis, which keeps a set of the ids that it has seen.
    Script,
    /// By a transaction of etcd, which writes a key for each id; again if another process has changed the account since.
    Etcd,
    /// UPDATE of a row, or of any of so many.
    PostgreSql,
    /// The same.
    MariaDb,
}

/// What a server has written when it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Log {
    /// Nothing.
    Off,
    /// To a file that it syncs every second.
    EverySecond,
    /// To a file that it syncs before it answers; databases too.
    Always,
}

/// What each server may use of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Share {
    /// All that it gets.
    Whole,
    /// Half of one: so that servers are the scarce resource, on a machine of few cores.
    Half,
}

/// One contender's set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Setup {
    pub(crate) how: How,
    /// Locks, segments or rows.
    pub(crate) segments: u32,
    /// Servers.
    pub(crate) shards: usize,
    pub(crate) log: Log,
    pub(crate) share: Share,
}

impl Setup {
    pub(crate) const fn new(how: How, segments: u32, shards: usize, log: Log) -> Self {
        Self {
            how,
            segments,
            shards,
            log,
            share: Share::Whole,
        }
    }

    /// The same, on servers that may use half a processor each.
    pub(crate) const fn halved(self) -> Self {
        Self {
            share: Share::Half,
            ..self
        }
    }

    /// Its place in [`all`](Self::all).
    pub(crate) fn place(&self) -> Option<usize> {
        Self::all().position(|setup| setup == *self)
    }

    /// The prefix of its keys, which other set-ups on the same servers do not have.
    pub(crate) fn prefix(&self) -> String {
        // A prefix has no blanks.
        format!("{}-{}", self.how.name().replace(' ', "-"), self.shards)
    }

    /// Everything that is compared.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        use How::{
            Alone, Counter, CounterAgain, Etcd, HandedOn, Lock, Logged, MariaDb, PostgreSql,
            Script, Segments,
        };
        use Log::{Always, EverySecond, Off};
        let mut all = vec![Self::new(Lock, 1, 1, Off), Self::new(HandedOn, 1, 1, Off)];
        all.extend([1, 2, 4].map(|shards| Self::new(Segments, 16, shards, Off)));
        for log in [Off, EverySecond, Always] {
            for how in [Alone, Counter] {
                let sizes = [(1, 1), (4, 1), (4, 2)];
                all.extend(sizes.map(|(segments, shards)| Self::new(how, segments, shards, log)));
            }
        }
        let again = Self::new(CounterAgain, 4, 1, Off);
        all.push(again);
        all.extend([Off, Always].map(|log| Self::new(Logged, 4, 1, log)));
        all.extend([1, 2].map(|shards| Self::new(Counter, 4, shards, Off).halved()));
        all.push(again.halved());
        all.extend([Off, Always].map(|log| Self::new(Script, 1, 1, log)));
        all.push(Self::new(Etcd, 1, 1, Always));
        for how in [PostgreSql, MariaDb] {
            all.extend([1, 16].map(|rows| Self::new(how, rows, 1, Always)));
        }
        all.into_iter()
    }
}

impl How {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::HandedOn => "handed-on lock",
            Self::Segments => "locks",
            Self::Alone => "unbatched counter",
            Self::Counter => "counter",
            Self::CounterAgain => "again: counter",
            Self::Logged => "counter with a log",
            Self::Script => "script of Redis",
            Self::Etcd => "etcd",
            Self::PostgreSql => "PostgreSQL",
            Self::MariaDb => "MariaDB",
        }
    }
}

impl Log {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "no log",
            Self::EverySecond => "log, a sync a second",
            Self::Always => "every write synced",
        }
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            how,
            segments,
            shards,
            log,
            share,
        } = self;
        let (how, log) = (how.name(), log.name());
        write!(out, "{how} {segments} over {shards}, {log}")?;
        match share {
            Share::Whole => Ok(()),
            Share::Half => out.write_str(", half a processor each"),
        }
    }
}

impl Serialize for Setup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
