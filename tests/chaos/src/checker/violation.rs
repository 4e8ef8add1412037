//! The report of a broken rule.

use std::fmt;

use crate::history::Event;

/// The rules that every history must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// No two holders of a key certainly believe at the same time.
    Exclusion,
    /// No client believes for longer than the lease allows.
    Deadline,
    /// A lock with replicas is granted and renewed by a majority of them.
    Majority,
    /// No client writes without believing.
    Belief,
    /// The resource accepts no token smaller than one it has accepted, and none that was never
    /// granted.
    Fence,
    /// No two grants of a key have one token.
    Uniqueness,
    /// A later grant has a greater token.
    Order,
    /// No renewal puts back a released record, or one of a key that was granted again since.
    Resurrection,
    /// No holder is told before the deadline that it has lost the lock.
    Loss,
    /// No lock is renewed that nobody in its process has or wants.
    Leftover,
    /// A client that is told to end gives its locks back.
    Stop,
    /// A set of locks is granted whole.
    Whole,
    /// A leader is told of its end before another leads.
    Notice,
    /// A latch has as many counts left as requests did not count it down.
    Latch,
    /// A ticket with a place in a key's queue is granted before a later ticket.
    Queue,
    /// A waiter in a process is granted before a later waiter of that process.
    Line,
    /// A process that knows that another process waits does not hand the lock on for long.
    HandOff,
    /// Every request has an answer; after all faults are removed, every key is granted again.
    Liveness,
    /// No shard begins a recovery period unless something happened to it.
    Recovery,
    /// Enough happened to make the check meaningful.
    Minima,
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Exclusion => "mutual exclusion",
            Self::Deadline => "deadline from the send",
            Self::Majority => "majority of the replicas",
            Self::Belief => "no action without belief",
            Self::Fence => "fence at the resource",
            Self::Uniqueness => "token uniqueness",
            Self::Order => "token order",
            Self::Resurrection => "no resurrection",
            Self::Loss => "no spurious loss",
            Self::Leftover => "no lock of nobody",
            Self::Stop => "an orderly stop costs no lease",
            Self::Whole => "all or nothing",
            Self::Notice => "notice before another leads",
            Self::Latch => "counts of a latch",
            Self::Queue => "first come, first served",
            Self::Line => "first come, first served within a process",
            Self::HandOff => "bounded hand-off",
            Self::Liveness => "liveness",
            Self::Recovery => "no recovery period without a cause",
            Self::Minima => "not vacuous",
        })
    }
}

/// A broken rule, with the evidence.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The lock; empty if the violation does not concern a single lock.
    pub key: String,
    /// The violation, in words.
    pub what: String,
    /// The events that show it, in the order of the text.
    pub events: Vec<Event>,
}

impl Violation {
    pub(crate) fn new<'h>(
        rule: Rule,
        key: &str,
        what: String,
        events: impl IntoIterator<Item = &'h Event>,
    ) -> Self {
        Self {
            rule,
            key: key.to_owned(),
            what,
            events: events.into_iter().cloned().collect(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rule,
            key,
            what,
            events,
        } = self;
        let at = if key.is_empty() { "" } else { " of " };
        write!(formatter, "{rule}{at}{key}: {what}")?;
        for event in events {
            let line = serde_json::to_string(event).expect("an event has only texts and numbers");
            write!(formatter, "\n    {line}")?;
        }
        Ok(())
    }
}

/// `t_ns` for human readers.
pub(super) fn seconds(t_ns: u64) -> String {
    format!("{}.{:06} s", t_ns / 1_000_000_000, t_ns / 1000 % 1_000_000)
}
