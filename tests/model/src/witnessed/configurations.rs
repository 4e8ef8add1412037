//! The bounds of a model.

use super::{Event, state::PROCESSES};

/// A world to explore.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called on the command line.
    pub name: &'static str,
    /// A lease, in ticks. A claim is as long.
    pub lease: u8,
    /// How far time goes.
    pub ticks: u8,
    /// How many reads, or answers to reads, may be late, or lost.
    pub lates: u8,
    /// Whether a process may change the document by what it knows, without a read.
    pub recalls: bool,
    /// What each process may do.
    pub budgets: [Budget; PROCESSES],
    /// What must happen somewhere in it.
    pub reaches: &'static [Event],
}

/// How often a process may do what.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct Budget {
    /// Ask for the lock, or renew it.
    pub asks: u8,
    /// Ask for another lock.
    pub looks: u8,
    /// Release the lock, or give up.
    pub releases: u8,
}

/// Asks, looks, releases.
const fn budget(asks: u8, looks: u8, releases: u8) -> Budget {
    Budget {
        asks,
        looks,
        releases,
    }
}

impl Configuration {
    /// A process gets the lock and may renew it, and the other wants it.
    pub(super) fn renewing(name: &'static str) -> Self {
        Self {
            name,
            lease: 2,
            ticks: 4,
            lates: 1,
            recalls: false,
            budgets: [budget(2, 1, 0), budget(1, 1, 0)],
            reaches: &[Event::TakenOver, Event::Extended, Event::TickRefused],
        }
    }

    /// A holder releases the lock to a waiter, and wants it again: the waiter may hear of it late.
    pub(super) fn claiming(name: &'static str) -> Self {
        Self {
            name,
            lease: 2,
            ticks: 4,
            lates: 1,
            recalls: false,
            budgets: [budget(2, 1, 1), budget(1, 0, 0)],
            reaches: &[Event::Claimed, Event::TakenOver],
        }
    }

    /// A process may give up, and ask again.
    pub(super) fn giving_up(name: &'static str) -> Self {
        Self {
            name,
            lease: 1,
            ticks: 4,
            lates: 1,
            recalls: false,
            budgets: [budget(2, 0, 1); PROCESSES],
            reaches: &[Event::Claimed, Event::TakenOver],
        }
    }

    /// A process comes that knows nothing of the clock, which the other has seen unchanged for long.
    pub(super) fn coming(name: &'static str) -> Self {
        Self {
            name,
            lease: 2,
            ticks: 6,
            lates: 1,
            recalls: false,
            budgets: [budget(1, 0, 0), budget(1, 2, 0)],
            reaches: &[Event::TakenOver],
        }
    }

    /// Requests of a process overtake each other, more than once.
    pub(super) fn overtaking(name: &'static str) -> Self {
        Self {
            name,
            lease: 1,
            ticks: 3,
            lates: 2,
            recalls: false,
            budgets: [budget(1, 1, 0), budget(1, 2, 0)],
            reaches: &[Event::TakenOver, Event::TickRefused],
        }
    }

    /// Processes do without a read, long after they saw the clock.
    pub(super) fn recalling(name: &'static str) -> Self {
        Self {
            name,
            lease: 1,
            ticks: 4,
            lates: 0,
            recalls: true,
            budgets: [budget(1, 2, 0), budget(1, 3, 0)],
            reaches: &[Event::TakenOver, Event::Recalled],
        }
    }
}

/// Every clean configuration.
pub fn clean() -> Vec<Configuration> {
    vec![
        Configuration::renewing("renewing"),
        Configuration::claiming("claiming"),
        Configuration::giving_up("giving-up"),
        Configuration::coming("coming"),
        Configuration::overtaking("overtaking"),
        Configuration::recalling("recalling"),
    ]
}
