//! The bounds of a model.

use super::Event;

/// A world to explore.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called on the command line.
    pub name: &'static str,
    /// How far time goes.
    pub ticks: u8,
    /// How long a document is kept after the lock was released, in ticks.
    pub forget_after: u8,
    /// How long a reserve may be used.
    pub reserve_for: u8,
    /// How many tokens are drawn.
    pub reserve: u8,
    /// How often each session may read, acquire and adopt.
    pub budget: [u8; 3],
    /// How often the lock may be granted elsewhere.
    pub moves: u8,
    /// What must happen somewhere in it.
    pub reaches: &'static [Event],
}

impl Configuration {
    /// Two sessions use a lock again and again, and its document is forgotten in between.
    pub(super) fn forgetting(name: &'static str) -> Self {
        Self {
            name,
            ticks: 4,
            forget_after: 2,
            reserve_for: 2,
            reserve: 2,
            budget: [2, 2, 0],
            moves: 0,
            reaches: &[
                Event::Recalled,
                Event::Presumed,
                Event::Stale,
                Event::Late,
                Event::Swept,
            ],
        }
    }

    /// The lock has tokens of other shards, too.
    pub(super) fn moving(name: &'static str) -> Self {
        Self {
            ticks: 1,
            budget: [1, 2, 1],
            moves: 1,
            reaches: &[Event::Recalled, Event::Presumed, Event::Stale, Event::Late],
            ..Self::forgetting(name)
        }
    }
}

/// Every clean configuration.
pub fn clean() -> Vec<Configuration> {
    vec![
        Configuration::forgetting("forgetting"),
        Configuration::moving("moving"),
    ]
}
