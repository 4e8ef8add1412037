//! One thing that happened.

use std::{fmt, ops::Not};

use ringfence_coordinator::shard::LockMode;
use serde::{Deserialize, Serialize};

/// A line of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Which run.
    pub run: String,
    /// What the run's choices were made from.
    pub seed: u64,
    /// Which process: a new number at every start, never used again.
    pub process: u32,
    /// When, on `CLOCK_BOOTTIME`: the same for all processes of one machine.
    pub t_ns: u64,
    /// What.
    #[serde(flatten)]
    pub deed: Deed,
}

/// What happened, without who and when. Only the fields that its kind has a use for are there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Deed {
    /// Pairs an invocation with its completion, within a process.
    pub op: u64,
    /// How far it is.
    pub phase: Phase,
    /// What is done.
    pub kind: Kind,
    /// To which lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// At which shard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// How much of it.
    #[serde(skip_serializing_if = "Share::is_whole")]
    pub share: Share,
    /// Of a [`Kind::Ask`]: goes before tickets that are not preferred.
    #[serde(skip_serializing_if = "Not::not")]
    pub preferred: bool,
    /// Taken together with other keys: the number that those have as well, in their process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<u64>,
    /// Which acquisition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// Its fencing token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// For how long it was granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// When the request that was answered had left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_ns: Option<u64>,
    /// When the answer was looked at, or the lock was handed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged_ns: Option<u64>,
    /// Until when the client believes in it, as it computed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// Of a grant: handed on within its process, with the next token of what its nonce was granted.
    #[serde(skip_serializing_if = "Not::not")]
    pub handed: bool,
    /// Of a grant: its ticket's turn came, so that it lasts no longer than a claim.
    #[serde(skip_serializing_if = "Not::not")]
    pub turn: bool,
    /// Of what is done at one of the replicas of a lock: its rank, and the nonce there. [`Deed::nonce`] is the lock's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica: Option<(u64, String)>,
    /// Of a [`Kind::Queue`]: how many tickets were before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    /// Of a [`Kind::Acquire`]: how long is waited. If it is not said, a set is waited for without end, and a single lock not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Of a [`Kind::Acquire`]: how long a fixed hold lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_ms: Option<u64>,
    /// What was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Of an [`Kind::Apply`]: its place in the resource's order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// What the nemesis does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// The process it does it to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub victim: Option<u32>,
    /// Of what is done to a mover, or to a shard amid a resize: the phase the mover was in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_of_move: Option<String>,
    /// Of a [`Kind::Resize`]: what it came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resized: Option<Resized>,
    /// More, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a resize came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resized {
    /// Slots that it moved.
    pub slots: u64,
    /// Locks that left with their slots, as far as this mover saw them leave.
    pub locks: u64,
}

impl Deed {
    /// The beginning of `op`.
    pub fn invoke(op: u64, kind: Kind) -> Self {
        Self {
            op,
            kind,
            ..Self::default()
        }
    }

    /// Something that has no beginning of its own, or the end of `op`.
    pub fn ended(op: u64, kind: Kind, phase: Phase) -> Self {
        Self {
            op,
            kind,
            phase,
            ..Self::default()
        }
    }
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It begins.
    #[default]
    Invoke,
    /// Its effect was between its beginning and now.
    Ok,
    /// It had none, and will have none.
    Fail,
    /// It may have had one, or have one yet.
    Info,
}

/// What is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A lock is asked for.
    #[default]
    Acquire,
    /// It is known that it will take a while: the acquisition has its place in its process' line.
    Wait,
    /// A request with a ticket leaves.
    Ask,
    /// A ticket has a place in the queue, says the answer to the request that left at
    /// [`Deed::sent_ns`].
    Queue,
    /// A ticket's slot moves, and its request goes to another shard: it has no place from then on, until
    /// it has one there.
    Moving,
    /// A ticket is given up, not granted.
    GiveUp,
    /// A process was granted a lock, or hands it on: whoever is next in its line has it.
    Grant,
    /// One of the replicas of a lock has a record of its acquisition: it was granted, renewed or written there.
    Replica,
    /// A writer becomes a reader. Recorded before its engine knows: it writes no more.
    Downgrade,
    /// A lease is renewed. Only its end is recorded, with [`Deed::sent_ns`] as its beginning.
    Renew,
    /// A lock is given back.
    Release,
    /// A holder writes to what the lock protects.
    Write,
    /// What is protected decides about a write. Recorded by the resource, in its order.
    Apply,
    /// A guard tells its holder something.
    GuardState,
    /// A resize is begun.
    Begin,
    /// A mover takes up the resize under way.
    Resize,
    /// Something is done to servers, processes or connections.
    Nemesis,
}

/// What an operation was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Acquire: somebody else has it.
    Held,
    /// Acquire: the shard came back, and waits for the holders of before.
    Grace,
    /// Renew: the record was there.
    Renewed,
    /// Renew: the record was put back.
    Reclaimed,
    /// Renew: the shard has no record of it. Guard state: no longer held.
    Lost,
    /// Guard state: it may soon be lost.
    Danger,
    /// Release: the record was deleted.
    Released,
    /// Release: there was no record to delete; or belief had ended before.
    NotThere,
    /// Write, apply.
    Accepted,
    /// Write, apply: the resource had seen a greater token.
    Rejected,
}

/// What the nemesis does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// SIGKILL of a client; another takes its place.
    KillClient,
    /// SIGTERM of a client, which ends without `close()`; another takes its place.
    EndClient,
    /// SIGSTOP of a client, then SIGCONT.
    StopClient,
    /// SIGKILL of a coordinator; another takes its place.
    KillCoordinator,
    /// SIGTERM of a coordinator; another takes its place.
    EndCoordinator,
    /// SIGSTOP of a coordinator, then SIGCONT.
    StopCoordinator,
    /// SIGKILL of a server, which comes back with nothing.
    RestartEmpty,
    /// SIGKILL of a server, which comes back with its append-only file.
    RestartAof,
    /// SIGKILL of a server, which comes back with an append-only file that lost its end.
    RestartAofCut,
    /// A primary dies, and its stale replica takes over.
    Failover,
    /// A stale replica takes over, and the former primary follows it.
    Switchover,
    /// A switchover there and back, under connections that stay open.
    ThereAndBack,
    /// SIGSTOP of a server, then SIGCONT.
    StopServer,
    /// Connections to a server are cut, again and again.
    Cut,
    /// The connections on which a server speaks by itself are cut, again and again.
    CutNotifications,
    /// What goes to and from a server takes longer.
    Delay,
    /// Connections to a server stay open, and nothing comes through one way.
    BlackHole,
    /// Connections to all servers stay open, and nothing comes through one way.
    BlackHoles,
    /// FLUSHALL: the server forgets everything, and its life goes on.
    FlushAll,
    /// The address leads to a promoted replica for a while, then to the primary again, which was never demoted.
    Retarget,
    /// The wall clock of the servers steps back, or forward by as little as a lease allows for.
    StepClock,
    /// SIGKILL of a server for good, and its shard is removed by force.
    RemoveShard,
    /// FUNCTION FLUSH.
    FunctionFlush,
    /// A lock is taken from its holders by force.
    ForceRelease,
    /// SIGKILL of a mover.
    KillMover,
    /// SIGSTOP of a mover, then SIGCONT when another resize is over.
    StopMover,
    /// Two movers at once.
    TwoMovers,
    /// A resize is turned back.
    TurnBack,
    /// Everything is put right; nothing is done from here on.
    Heal,
}

impl Fault {
    /// Whether the server's memory begins anew, so that records may be gone, or older ones be back.
    pub fn ends_a_life(self) -> bool {
        matches!(
            self,
            Self::RestartEmpty
                | Self::RestartAof
                | Self::RestartAofCut
                | Self::Failover
                | Self::Switchover
                | Self::ThereAndBack
                | Self::FlushAll
                | Self::Retarget
                | Self::RemoveShard
        )
    }

    /// Whether its victim is no more.
    pub fn ends_a_process(self) -> bool {
        matches!(self, Self::KillClient | Self::EndClient | Self::KillMover)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// How many shares of a key an acquisition takes, and how many there are by its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Share {
    /// Those taken.
    pub count: u32,
    /// Those there are.
    pub of: u32,
}

impl Share {
    /// All of a key that has one holder.
    pub const WHOLE: Self = Self { count: 1, of: 1 };

    fn is_whole(&self) -> bool {
        *self == Self::WHOLE
    }

    /// Whether a key never has both at once, whichever was granted first.
    pub fn excludes(self, other: Self) -> bool {
        self.count + other.count > self.of.max(other.of)
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl From<LockMode> for Share {
    fn from(mode: LockMode) -> Self {
        Self {
            count: mode.shares(),
            of: mode.capacity(),
        }
    }
}

/// A fencing token: token epoch and counter, compared as a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Token {
    /// Token epoch.
    pub te: u64,
    /// Counter within it.
    pub ctr: u64,
}

impl From<ringfence_client::Token> for Token {
    fn from(token: ringfence_client::Token) -> Self {
        Self {
            te: token.epoch().0,
            ctr: token.counter(),
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.te, self.ctr)
    }
}
