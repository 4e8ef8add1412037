//! The bounds of a model.

use super::Event;

/// A world to explore.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Whether a reservation is captured; otherwise a transfer is made.
    pub captures: bool,
    /// By how many ids.
    pub attempts: u8,
    /// How many processes call.
    pub callers: u8,
    /// How many coins each destination has room for.
    pub room: i8,
    /// Whether others deposit and spend at the second destination.
    pub is_used: bool,
    /// Whether the second destination may be closed.
    pub closes: bool,
    /// Whether destinations forget.
    pub forgets: bool,
    /// Processes that end for good.
    pub crashes: u8,
    /// Promises that are lost.
    pub losses: u8,
    /// What must happen somewhere in it.
    pub reaches: &'static [Event],
}

impl Configuration {
    fn new(name: &'static str, captures: bool) -> Self {
        Self {
            name,
            captures,
            attempts: 1,
            callers: 2,
            room: 1,
            is_used: false,
            closes: false,
            forgets: false,
            crashes: 1,
            losses: 0,
            reaches: &[Event::Paid, Event::Continued],
        }
    }

    /// Others use the room of a destination.
    pub(super) fn used(name: &'static str, captures: bool) -> Self {
        Self {
            is_used: true,
            reaches: &[Event::Paid, Event::TakenBack],
            ..Self::new(name, captures)
        }
    }

    /// A destination is closed.
    pub(super) fn closing(name: &'static str, captures: bool) -> Self {
        Self {
            closes: true,
            reaches: &[Event::Paid, Event::TakenBack, Event::KeptThoughClosed],
            ..Self::new(name, captures)
        }
    }

    /// Destinations forget what they may.
    pub(super) fn forgetting(name: &'static str, captures: bool) -> Self {
        Self {
            forgets: true,
            ..Self::new(name, captures)
        }
    }

    /// A reservation is captured by two ids.
    pub(super) fn twice(name: &'static str) -> Self {
        Self {
            attempts: 2,
            room: 2,
            crashes: 0,
            reaches: &[Event::Paid, Event::Continued, Event::ExpiredWhilePromised],
            ..Self::new(name, true)
        }
    }

    /// A destination loses a promise.
    pub(super) fn losing(name: &'static str) -> Self {
        Self {
            losses: 1,
            closes: true,
            crashes: 0,
            reaches: &[Event::Paid, Event::CameBack],
            ..Self::new(name, true)
        }
    }
}

/// Every clean configuration.
pub fn clean() -> Vec<Configuration> {
    vec![
        Configuration::used("transfer-used", false),
        Configuration::used("capture-used", true),
        Configuration::closing("transfer-closing", false),
        Configuration::closing("capture-closing", true),
        Configuration::forgetting("transfer-forgetting", false),
        Configuration::forgetting("capture-forgetting", true),
        Configuration::twice("twice"),
        Configuration::losing("losing"),
    ]
}
