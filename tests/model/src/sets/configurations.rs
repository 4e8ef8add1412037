//! The bounds of a model.

use super::Event;

/// A world to explore.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called on the command line.
    pub name: &'static str,
    /// How many keys there are.
    pub keys: u8,
    /// What each process wants.
    pub wishes: Vec<Wish>,
    /// A lease, in ticks. A claim is as long, and so is a ticket kept.
    pub lease: u8,
    /// How far time goes.
    pub ticks: u8,
    /// How many processes may crash.
    pub crashes: u8,
    /// How many locks may be lost by a fault, though their holder renews.
    pub losses: u8,
    /// What must happen somewhere in it.
    pub reaches: &'static [Event],
}

/// What a process calls for.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// The keys, as it gives them.
    pub keys: &'static [u8],
    /// How long it waits, in ticks; 0 is a try.
    pub wait: u8,
    /// How often it calls.
    pub calls: u8,
}

const fn wish(keys: &'static [u8], wait: u8, calls: u8) -> Wish {
    Wish { keys, wait, calls }
}

impl Configuration {
    /// Two processes want the same two keys, given in opposite orders, and one may crash.
    pub(super) fn opposite(name: &'static str) -> Self {
        Self {
            name,
            keys: 2,
            wishes: vec![wish(&[0, 1], 2, 2), wish(&[1, 0], 2, 1)],
            lease: 1,
            ticks: 4,
            crashes: 1,
            losses: 0,
            reaches: &[
                Event::GrantedAtOnce(0),
                Event::GrantedAfterAWait(1),
                Event::TimedOut,
                Event::CrashedWithSome,
            ],
        }
    }

    /// Each of three processes wants what two others want a part of.
    pub(super) fn circle(name: &'static str) -> Self {
        Self {
            name,
            keys: 3,
            wishes: vec![
                wish(&[0, 1], 3, 1),
                wish(&[1, 2], 3, 1),
                wish(&[2, 0], 3, 1),
            ],
            lease: 2,
            ticks: 3,
            crashes: 0,
            losses: 0,
            reaches: &[
                Event::GrantedAfterAWait(0),
                Event::GrantedAfterAWait(1),
                Event::GrantedAfterAWait(2),
            ],
        }
    }

    /// One of three processes only tries, and another wants one key.
    pub(super) fn tries(name: &'static str) -> Self {
        Self {
            name,
            keys: 2,
            wishes: vec![wish(&[1, 0], 0, 2), wish(&[0, 1], 2, 1), wish(&[1], 2, 1)],
            lease: 1,
            ticks: 3,
            crashes: 0,
            losses: 0,
            reaches: &[Event::GrantedAtOnce(0), Event::FailedInPart],
        }
    }

    /// A lock is lost while others of its set are waited for.
    pub(super) fn losing(name: &'static str) -> Self {
        Self {
            name,
            keys: 3,
            wishes: vec![wish(&[2, 1, 0], 3, 1), wish(&[1, 2], 3, 1)],
            lease: 2,
            ticks: 4,
            crashes: 0,
            losses: 1,
            reaches: &[Event::GrantedAfterAWait(0), Event::LostMeanwhile],
        }
    }
}

/// Every clean configuration.
pub fn clean() -> Vec<Configuration> {
    vec![
        Configuration::opposite("opposite"),
        Configuration::circle("circle"),
        Configuration::tries("tries"),
        Configuration::losing("losing"),
    ]
}
