//! The participants of a model, and its bounds.

use super::{Event, Survival};

/// A world to explore. Times are in ticks.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called on the command line.
    pub name: &'static str,
    /// All of them members; the first is home.
    pub shards: u8,
    /// Which has the slot.
    pub owner: u8,
    /// How long a record of a lock lasts, and grace.
    pub lease: u8,
    /// Grants in all.
    pub grants: u8,
    /// Moves, wherever to: one after the other.
    pub moves: u8,
    /// How often a home dies and comes back.
    pub home_restarts: u8,
    /// With what record.
    pub survives: &'static [Survival],
    /// How often another member does, empty.
    pub restarts: u8,
    /// How often all of them do at once, empty.
    pub losses: u8,
    /// How often a member dies and comes back, empty, at any later time. It is attested dead.
    pub deaths: u8,
    /// How often the address of a shard that is not home comes to lead to its replica, which takes its place, or back.
    pub retargets: u8,
    /// How often such a shard loses all that it keeps, and lives on.
    pub flushes: u8,
    /// How often a shard is armed anew because its clock stepped.
    pub rearms: u8,
    /// How many recoveries are begun; two may be under way at once.
    pub recoveries: u8,
    /// Whether epochs follow a clock, so that none is allotted twice.
    pub clock: bool,
    /// How many other members must have a copy of a record before anything is done in its name.
    pub copies: u8,
    /// What must happen somewhere in it.
    pub reaches: &'static [Event],
}

impl Configuration {
    /// The least: two shards, one move, a home that restarts once, one recovery. Epochs follow a
    /// clock, and no process waits for copies.
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            shards: 2,
            owner: 0,
            lease: 1,
            grants: 2,
            moves: 1,
            home_restarts: 1,
            survives: Survival::EVERY,
            restarts: 0,
            losses: 0,
            deaths: 0,
            retargets: 0,
            flushes: 0,
            rearms: 0,
            recoveries: 1,
            clock: true,
            copies: 0,
            reaches: &[],
        }
    }

    /// Epochs do not follow a clock: so that none is used twice, records are copied ahead.
    pub(super) fn clockless(self) -> Self {
        Self {
            clock: false,
            copies: 1,
            ..self
        }
    }

    /// Three shards, of which the home has no slot.
    pub(super) fn three(self) -> Self {
        Self {
            shards: 3,
            owner: 1,
            ..self
        }
    }

    /// Two recoveries race, or one is given up and another begun.
    pub(super) fn racing(self) -> Self {
        Self {
            recoveries: 2,
            ..self
        }
    }

    /// The home dies twice.
    pub(super) fn twice(self) -> Self {
        Self {
            home_restarts: 2,
            ..self
        }
    }

    /// Another member dies, too.
    pub(super) fn restarting(self) -> Self {
        Self {
            restarts: 1,
            ..self
        }
    }

    pub(super) fn reaching(self, reaches: &'static [Event]) -> Self {
        Self { reaches, ..self }
    }
}
