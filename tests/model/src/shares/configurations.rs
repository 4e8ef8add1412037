//! The participants of a model, and its bounds.

use super::{Event, Survival};

/// A world to explore. Times are in ticks.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Its name on the command line.
    pub name: &'static str,
    /// The processes.
    pub participants: Vec<Participant>,
    /// Capacities that requests for permits carry: more than one while it is changed.
    pub capacities: &'static [u8],
    /// Ticks, at most; by default any number.
    pub ticks: Option<u8>,
    /// How long a holder's shares last.
    pub lease: u8,
    /// How long a grant from the queue lasts.
    pub claim: u8,
    /// How long a ticket lasts; without tickets nothing waits.
    pub ticket: Option<u8>,
    /// Whether the slot moves from the first shard to the second.
    pub moves: bool,
    /// Whether movers deliver the number of shares left at A.
    pub lists: bool,
    /// Shards that may restart, one of them once.
    pub restarting: &'static [u8],
    /// With what memory.
    pub survives: &'static [Survival],
    /// Whether the server that comes back has a clock that is behind: records end a lease late.
    pub clock_behind: bool,
    /// Whether the first process's messages arrive within the tick, and it renews in every tick: it is
    /// healthy, and must not lose a guard. Shards are armed within the tick, then.
    pub first_is_prompt: bool,
    /// Whether every state is asked for whether all can come to rest from it.
    pub comes_to_rest: bool,
    /// Events that must happen somewhere in it.
    pub reaches: &'static [Event],
}

/// A process: its kind of request, and how often it may do the things that it need not do.
#[derive(Clone, Copy, Debug)]
pub struct Participant {
    /// The kind of every request of it.
    pub want: Want,
    /// Whether its side is preferred.
    pub preferred: bool,
    /// Its bounds.
    pub budget: Budget,
}

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// One share.
    Reader,
    /// All shares.
    Writer,
    /// So many permits of a semaphore.
    Permits(u8),
}

/// The number of times that a process may do something.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub struct Budget {
    /// New nonces.
    pub acquisitions: u8,
    /// Further requests of a nonce that waits.
    pub rechecks: u8,
    /// Renewals in all, unless it is prompt.
    pub renewals: u8,
    /// Downgrades of a writer.
    pub downgrades: u8,
    /// Readers that come to the one that holds, or writers after it.
    pub joins: u8,
}

/// The capacity of a read-write lock, and the greatest capacity of a semaphore.
pub(super) const ALL: u8 = 2;

pub(super) const FIRST: &[u8] = &[0];
pub(super) const BOTH: &[u8] = &[0, 1];

impl Participant {
    pub(super) const fn new(want: Want) -> Self {
        Self {
            want,
            preferred: false,
            budget: Budget {
                acquisitions: 1,
                rechecks: 0,
                renewals: 0,
                downgrades: 0,
                joins: 0,
            },
        }
    }

    pub(super) const fn preferred(mut self) -> Self {
        self.preferred = true;
        self
    }

    pub(super) const fn rechecks(mut self, rechecks: u8) -> Self {
        self.budget.rechecks = rechecks;
        self
    }

    pub(super) const fn renews(mut self, renewals: u8) -> Self {
        self.budget.renewals = renewals;
        self
    }

    pub(super) const fn downgrades(mut self) -> Self {
        self.budget.downgrades = 1;
        self
    }

    pub(super) const fn joined(mut self) -> Self {
        self.budget.joins = 1;
        self
    }

    pub(super) const fn twice(mut self) -> Self {
        self.budget.acquisitions = 2;
        self
    }
}

impl Configuration {
    /// The least: a shard at rest, leases of two ticks, and no queue.
    pub(super) fn new(name: &'static str, participants: &[Participant]) -> Self {
        Self {
            name,
            participants: participants.to_vec(),
            capacities: &[ALL],
            ticks: None,
            lease: 2,
            claim: 2,
            ticket: None,
            moves: false,
            lists: false,
            restarting: &[],
            survives: &[],
            clock_behind: false,
            first_is_prompt: false,
            comes_to_rest: false,
            reaches: &[],
        }
    }

    /// Requests wait in the key's queue.
    pub(super) fn queueing(self) -> Self {
        Self {
            ticket: Some(2),
            ..self
        }
    }

    /// A grant from the queue lasts one tick.
    pub(super) fn claiming_briefly(self) -> Self {
        Self { claim: 1, ..self }
    }

    /// Leases of one tick.
    pub(super) fn brief(self) -> Self {
        Self {
            lease: 1,
            claim: 1,
            ..self
        }
    }

    /// Few ticks: fewer states.
    pub(super) fn within(self, ticks: u8) -> Self {
        Self {
            ticks: Some(ticks),
            ..self
        }
    }

    /// Requests carry the one capacity or the other.
    pub(super) fn resizing(self) -> Self {
        Self {
            capacities: &[1, 2],
            ..self
        }
    }

    pub(super) fn moving(self) -> Self {
        Self {
            moves: true,
            ..self
        }
    }

    pub(super) fn listing(self) -> Self {
        Self {
            lists: true,
            ..self
        }
    }

    pub(super) fn restarting(
        self,
        restarting: &'static [u8],
        survives: &'static [Survival],
    ) -> Self {
        Self {
            restarting,
            survives,
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

    pub(super) fn prompt(self) -> Self {
        Self {
            first_is_prompt: true,
            ..self
        }
    }

    pub(super) fn resting(self) -> Self {
        Self {
            comes_to_rest: true,
            ..self
        }
    }

    pub(super) fn reaching(self, reaches: &'static [Event]) -> Self {
        Self { reaches, ..self }
    }
}
