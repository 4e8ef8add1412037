//! The bounds of a model.

use super::{Event, state::PROCESSES};

/// A world to explore.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called on the command line.
    pub name: &'static str,
    /// How far the clock goes. A lease is two ticks.
    pub ticks: u8,
    /// What each process may do.
    pub budgets: [Budget; PROCESSES],
    /// Whether the store removes beats.
    pub store_removes: bool,
    /// What must happen somewhere in it.
    pub reaches: &'static [Event],
}

/// How often a process may do what.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct Budget {
    /// Ask for the lock.
    pub asks: u8,
    /// Beat, besides.
    pub beats: u8,
    /// Read the other's lock.
    pub reads: u8,
    /// Release the lock, or give up.
    pub releases: u8,
}

const HOLDER: Budget = Budget {
    asks: 1,
    beats: 1,
    reads: 0,
    releases: 0,
};

const WATCHER: Budget = Budget {
    asks: 1,
    beats: 0,
    reads: 1,
    releases: 0,
};

impl Configuration {
    /// A process holds the lock, and the other watches it.
    pub(super) fn watching(name: &'static str) -> Self {
        Self {
            name,
            ticks: 5,
            budgets: [HOLDER, WATCHER],
            store_removes: false,
            reaches: &[Event::TakenOver, Event::Extended, Event::TakeOverRefused],
        }
    }

    /// A holder releases the lock to a waiter, and wants it again: the waiter may hear of it late.
    pub(super) fn claiming(name: &'static str) -> Self {
        let holder = Budget {
            asks: 2,
            beats: 0,
            reads: 1,
            releases: 1,
        };
        let waiter = Budget {
            reads: 0,
            ..WATCHER
        };
        Self {
            ticks: 4,
            budgets: [holder, waiter],
            reaches: &[Event::Claimed, Event::TakenOver],
            ..Self::watching(name)
        }
    }

    /// … and the waiter may have given up, and beats for other locks.
    pub(super) fn giving_up(name: &'static str) -> Self {
        let holder = Budget {
            beats: 0,
            releases: 1,
            ..HOLDER
        };
        let waiter = Budget {
            releases: 1,
            ..HOLDER
        };
        Self {
            budgets: [holder, waiter],
            reaches: &[Event::Claimed],
            ..Self::claiming(name)
        }
    }

    /// A process holds the lock, the other watches it, and the store removes beats.
    pub(super) fn removing(name: &'static str) -> Self {
        Self {
            store_removes: true,
            reaches: &[Event::TakenOverUnbeaten, Event::Extended],
            ..Self::watching(name)
        }
    }
}

/// Every clean configuration.
pub fn clean() -> Vec<Configuration> {
    vec![
        Configuration::watching("watching"),
        Configuration::claiming("claiming"),
        Configuration::giving_up("giving-up"),
        Configuration::removing("removing"),
    ]
}
