//! The participants of a model, and its bounds.

use super::{Event, Survival};

/// A world to explore. Times are in ticks.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What each process may do.
    pub processes: Vec<Budget>,
    /// Of which the first owns the slot.
    pub shards: u8,
    /// How long a record lasts.
    pub lease: u8,
    /// Moves, from and to: one after the other.
    pub plan: &'static [(u8, u8)],
    /// How many of them may be aborted.
    pub aborts: u8,
    /// Whether movers deliver A's list.
    pub lists: bool,
    /// How often a shard is given a fresh epoch for its tokens.
    pub raises: u8,
    /// How often a shard dies and comes back.
    pub restarts: u8,
    /// Which of them.
    pub restarting: &'static [u8],
    /// With what memory.
    pub survives: &'static [Survival],
    /// Whether what comes back has a clock that is behind, by up to two leases.
    pub clock_behind: bool,
    /// How long a look at the topology is good for, where a shard may be gone for good.
    pub view_lease: Option<u8>,
    /// Which of two.
    pub gone: u8,
    /// Whether it begins amid the first move: the next shard grants, and the former has just come back.
    pub amid: bool,
    /// How many requests are sent again.
    pub repeats: u8,
    /// Whether an answer arrives in the step that makes it: fewer states.
    pub answers_at_once: bool,
    /// Whether the first process's messages arrive within the tick, and it renews in every tick: it
    /// is healthy, and must not lose a guard. Shards are armed within the tick, then.
    pub first_is_prompt: bool,
    /// What must happen somewhere in it.
    pub reaches: &'static [Event],
}

/// How often a process may do what it need not do.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub struct Budget {
    /// New nonces.
    pub acquisitions: u8,
    /// Renewals in all, unless it is prompt.
    pub renewals: u8,
}

/// The shards that restart.
pub(super) const FIRST: &[u8] = &[0];
pub(super) const SECOND: &[u8] = &[1];
pub(super) const BOTH: &[u8] = &[0, 1];
pub(super) const LOST: &[Survival] = &[Survival::Nothing];

/// A process that acquires so often, and renews.
pub(super) const fn budget(acquisitions: u8, renewals: u8) -> Budget {
    Budget {
        acquisitions,
        renewals,
    }
}

impl Configuration {
    /// The least: two shards at rest, leases of two ticks, every message free.
    pub(super) fn new(name: &'static str, processes: &[Budget]) -> Self {
        Self {
            name,
            processes: processes.to_vec(),
            shards: 2,
            lease: 2,
            plan: &[],
            aborts: 0,
            lists: false,
            raises: 0,
            restarts: 0,
            restarting: &[],
            survives: &[],
            clock_behind: false,
            view_lease: None,
            gone: 0,
            amid: false,
            repeats: 0,
            answers_at_once: false,
            first_is_prompt: false,
            reaches: &[],
        }
    }

    /// The slot moves from the first shard to the second.
    pub(super) fn moving(self) -> Self {
        Self {
            plan: &[(0, 1)],
            ..self
        }
    }

    /// … and may go back before it is there.
    pub(super) fn aborting(self) -> Self {
        Self {
            aborts: 1,
            ..self.moving()
        }
    }

    /// A second move takes the slot on to a third shard.
    pub(super) fn chained(self) -> Self {
        Self {
            shards: 3,
            plan: &[(0, 1), (1, 2)],
            ..self
        }
    }

    /// One of these shards restarts once.
    pub(super) fn restarting(
        self,
        restarting: &'static [u8],
        survives: &'static [Survival],
    ) -> Self {
        Self {
            restarts: 1,
            restarting,
            survives,
            ..self
        }
    }

    /// … twice.
    pub(super) fn twice(self) -> Self {
        Self {
            restarts: 2,
            ..self
        }
    }

    /// … or is replaced by a replica with a clock that is behind.
    pub(super) fn behind(self) -> Self {
        Self {
            clock_behind: true,
            ..self
        }
    }

    /// The first shard is removed, under leased views.
    pub(super) fn removing(self) -> Self {
        Self {
            lease: 3,
            view_lease: Some(2),
            ..self
        }
    }

    /// … the second is, amid a move to it.
    pub(super) fn removing_next(self) -> Self {
        Self {
            gone: 1,
            amid: true,
            ..self.moving().removing()
        }
    }

    pub(super) fn leasing(self, lease: u8) -> Self {
        Self { lease, ..self }
    }

    pub(super) fn viewing(self, view_lease: u8) -> Self {
        Self {
            view_lease: Some(view_lease),
            ..self
        }
    }

    pub(super) fn at_once(self) -> Self {
        Self {
            answers_at_once: true,
            ..self
        }
    }

    pub(super) fn prompt(self) -> Self {
        Self {
            first_is_prompt: true,
            ..self
        }
    }

    pub(super) fn listing(self) -> Self {
        Self {
            lists: true,
            ..self
        }
    }

    pub(super) fn repeating(self) -> Self {
        Self { repeats: 1, ..self }
    }

    pub(super) fn raising(self) -> Self {
        Self { raises: 1, ..self }
    }

    pub(super) fn reaching(self, reaches: &'static [Event]) -> Self {
        Self { reaches, ..self }
    }
}
