//! What a broken rule is reported as.

use std::fmt;

use crate::history::Event;

/// What must be true of every history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// No two holders of a key certainly believe at the same time.
    Exclusion,
    /// No client believes for longer than the lease allows.
    Deadline,
    /// Nobody writes without believing.
    Belief,
    /// The resource accepts no smaller token than it has accepted, and none that nobody was granted.
    Fence,
    /// No two grants of a key have one token.
    Uniqueness,
    /// A later grant has a greater token.
    Order,
    /// No renewal puts back what was released, or what another was granted since.
    Resurrection,
    /// Nobody is told before the deadline that the lock is not theirs.
    Loss,
    /// Whoever had a place in a key's queue before another asked is granted it before.
    Queue,
    /// Whoever waited in a process before another asked there is granted it before.
    Line,
    /// A process that knows that another waits does not hand the lock on for long.
    HandOff,
    /// Every question has an answer; once everything is put right, every key is granted again.
    Liveness,
    /// Enough happened for all of this to mean something.
    Minima,
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Exclusion => "mutual exclusion",
            Self::Deadline => "deadline from the send",
            Self::Belief => "no action without belief",
            Self::Fence => "fence at the resource",
            Self::Uniqueness => "token uniqueness",
            Self::Order => "token order",
            Self::Resurrection => "no resurrection",
            Self::Loss => "no spurious loss",
            Self::Queue => "first come, first served",
            Self::Line => "first come, first served within a process",
            Self::HandOff => "bounded hand-off",
            Self::Liveness => "liveness",
            Self::Minima => "not vacuous",
        })
    }
}

/// A rule that was broken, and by what.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// The lock; empty if it is of no one lock.
    pub key: String,
    /// What is wrong, in words.
    pub what: String,
    /// The events that show it, in the order in which they are spoken of.
    pub events: Vec<Event>,
}

impl Violation {
    pub(super) fn new<'h>(
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

/// `t_ns` as people read it.
pub(super) fn seconds(t_ns: u64) -> String {
    format!("{}.{:06} s", t_ns / 1_000_000_000, t_ns / 1000 % 1_000_000)
}
