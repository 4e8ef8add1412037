//! The participants of a model, and its bounds.

use super::Event;

/// A world to explore.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called on the command line.
    pub name: &'static str,
    /// The servers in each process's list, in the order of their `run_id`s.
    pub lists: [&'static [u8]; 2],
    /// Foundings in all.
    pub foundings: usize,
    /// Processes that end for good.
    pub crashes: u8,
    /// Servers that come back empty.
    pub restarts: u8,
    /// What must happen somewhere in it.
    pub reaches: &'static [Event],
}

const A_B: &[u8] = &[0, 1];
const A_C: &[u8] = &[0, 2];
const B_C: &[u8] = &[1, 2];
const B: &[u8] = &[1];
const ALL: &[u8] = &[0, 1, 2];

impl Configuration {
    /// Three foundings, and one process that ends.
    pub(super) fn new(name: &'static str, lists: [&'static [u8]; 2]) -> Self {
        Self {
            name,
            lists,
            foundings: 3,
            crashes: 1,
            restarts: 0,
            reaches: &[Event::Activated, Event::Helped, Event::Voided],
        }
    }

    /// Both have the same list.
    pub(super) fn sharing(name: &'static str) -> Self {
        Self::new(name, [ALL, ALL])
    }

    /// Lists that have one server in common.
    pub(super) fn overlapping(name: &'static str) -> Self {
        Self::new(name, [A_B, B_C])
    }

    /// One list has what the other has, and more.
    pub(super) fn containing(name: &'static str) -> Self {
        Self::new(name, [ALL, B_C])
    }

    /// A server comes back empty.
    pub(super) fn restarting(self) -> Self {
        Self {
            restarts: 1,
            ..self
        }
    }
}

/// Every clean configuration.
pub fn clean() -> Vec<Configuration> {
    let both_crash = Configuration {
        crashes: 2,
        foundings: 4,
        ..Configuration::overlapping("both-crash")
    };
    let two = Configuration {
        foundings: 2,
        ..Configuration::sharing("restart-two-foundings").restarting()
    };
    vec![
        Configuration::sharing("same-list"),
        Configuration::overlapping("overlapping"),
        Configuration::new("contained", [ALL, B]),
        Configuration::new("common-last", [A_C, B_C]),
        both_crash,
        two,
        Configuration::sharing("restart").restarting(),
        Configuration::containing("contained-restart").restarting(),
    ]
}

/// What no rule is for: the only server that two lists have in common comes back without a trace.
pub fn beyond() -> Configuration {
    Configuration::overlapping("beyond").restarting()
}
