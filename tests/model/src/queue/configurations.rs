//! The clean configurations: all rules on, and everything must hold.

use super::{Event, Survival};

/// The participants and the bounds. Times are in ticks.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What each process may do.
    pub processes: Vec<Budget>,
    /// How long a record lasts.
    pub lease: u8,
    /// How long a turn lasts; at most the lease.
    pub claim: u8,
    /// How long a ticket lasts without a re-check.
    pub ticket: u8,
    /// Tokens reserved at a time.
    pub block: u8,
    /// Hand-offs allowed once it is known that another process waits.
    pub hand_offs_max: u8,
    /// Whether a process may keep a record that no task wants.
    pub lingers: bool,
    /// Whether attempts are given up.
    pub abandons: bool,
    /// Whether an answer arrives in the step that makes it: fewer states, more processes.
    pub answers_at_once: bool,
    /// Whether a re-check looks at the lock first, and puts its ticket later.
    pub tickets_apart: bool,
    /// Whether pushes arrive at all, now and then.
    pub pushes: bool,
    /// The processes whose clocks keep time with the shard.
    pub pace: Pace,
    /// The longest wait, where [`Pace::AllPrompt`]: the least that holds.
    pub wait_max: u8,
    /// How often the shard dies and comes back.
    pub restarts: u8,
    /// With what memory it may come back.
    pub survives: &'static [Survival],
    /// How many processes die.
    pub crashes: u8,
    /// Whether the slot is sealed, and another shard grants.
    pub seals: bool,
    /// What must happen somewhere in it.
    pub reaches: &'static [Event],
}

/// How often a process may do what it need not do.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub struct Budget {
    /// New nonces.
    pub acquisitions: u8,
    /// Re-checks in all, unless it is prompt.
    pub rechecks: u8,
    /// Renewals and reserves in all, unless it is prompt.
    pub renewals: u8,
    /// Hand-offs and grants while lingering; an unprompt process's lingering counts, too.
    pub local_grants: u8,
}

/// How the network and the processes keep up with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Not at all: a message may take for ever.
    Free,
    /// The first process's messages arrive within the tick, and it renews in every tick: it is
    /// healthy, and must not lose a guard. The others are free.
    FirstPrompt,
    /// All do so, re-check in every tick, hold for a tick at most, and give back what lingers and
    /// is wanted: waits must end.
    AllPrompt,
}

/// A process that acquires so often, re-checks, renews, and grants locally.
pub(super) fn budget(acquisitions: u8, rechecks: u8, renewals: u8, local_grants: u8) -> Budget {
    Budget {
        acquisitions,
        rechecks,
        renewals,
        local_grants,
    }
}

impl Configuration {
    /// The least: leases of two ticks, blocks of one token, every message free.
    pub(super) fn new(name: &'static str, processes: &[Budget]) -> Self {
        Self {
            name,
            processes: processes.to_vec(),
            lease: 2,
            claim: 2,
            ticket: 2,
            block: 1,
            hand_offs_max: 1,
            lingers: false,
            abandons: true,
            answers_at_once: false,
            tickets_apart: false,
            pushes: true,
            pace: Pace::Free,
            wait_max: 0,
            restarts: 0,
            survives: &[],
            crashes: 0,
            seals: false,
            reaches: &[],
        }
    }

    /// One restart, with any memory; tickets live long enough to see its end.
    pub(super) fn restarting(self) -> Self {
        Self {
            ticket: 4,
            restarts: 1,
            survives: Survival::EVERY,
            ..self
        }
    }

    /// Blocks of two tokens, handed off and kept.
    pub(super) fn lingering(self) -> Self {
        Self {
            block: 2,
            lingers: true,
            abandons: false,
            ..self
        }
    }

    /// Everybody prompt, leases of three ticks.
    pub(super) fn prompt(self, wait_max: u8) -> Self {
        Self {
            pace: Pace::AllPrompt,
            lease: 3,
            claim: 3,
            ticket: 3,
            answers_at_once: true,
            wait_max,
            ..self
        }
    }
}

/// Every clean configuration, by theme.
pub fn clean() -> Vec<Configuration> {
    [waiting(), restarts(), local(), progress()].concat()
}

fn waiting() -> Vec<Configuration> {
    use Event::{GrantFound, TurnTaken};
    let new = Configuration::new;
    let reaches = &[TurnTaken, GrantFound];
    let apart = &[TurnTaken, GrantFound, Event::StayedInVain];
    let two = [budget(2, 0, 0, 0), budget(1, 2, 0, 0)];
    let once = budget(1, 0, 0, 0);
    let three = [once, budget(1, 1, 0, 0), once];
    vec![
        Configuration {
            reaches,
            ..new("two-processes", &two)
        },
        Configuration {
            reaches,
            ..new(
                "two-processes-renewing",
                &[budget(1, 0, 1, 0), budget(1, 2, 1, 0)],
            )
        },
        Configuration {
            reaches,
            ..new("three-processes", &three)
        },
        Configuration {
            answers_at_once: true,
            reaches,
            ..new("four-processes", &[once, once, once, budget(1, 1, 0, 0)])
        },
        Configuration {
            lease: 3,
            claim: 2,
            answers_at_once: true,
            reaches,
            ..new("claim-shorter-than-lease", &three)
        },
        Configuration {
            seals: true,
            answers_at_once: true,
            reaches: &[TurnTaken, Event::GrantedElsewhere],
            ..new("sealed-with-a-queue", &three)
        },
        Configuration {
            tickets_apart: true,
            reaches: apart,
            ..new("tickets-apart", &[budget(1, 0, 1, 0), budget(1, 2, 0, 0)])
        },
        Configuration {
            tickets_apart: true,
            answers_at_once: true,
            reaches: apart,
            ..new("tickets-apart-of-three", &[once, budget(1, 2, 0, 0), once])
        },
    ]
}

fn restarts() -> Vec<Configuration> {
    use Event::{GrantFound, Reclaimed, RestartedWithQueue, TurnTakenAfterRestart};
    let new = Configuration::new;
    let reaches = &[RestartedWithQueue, Reclaimed, TurnTakenAfterRestart];
    let two = [budget(1, 0, 1, 0), budget(1, 2, 0, 0)];
    let three = [budget(1, 0, 1, 0), budget(1, 1, 0, 0), budget(1, 0, 0, 0)];
    vec![
        Configuration {
            reaches,
            ..new("restart", &two).restarting()
        },
        Configuration {
            restarts: 2,
            answers_at_once: true,
            reaches,
            ..new("two-restarts", &two).restarting()
        },
        Configuration {
            tickets_apart: true,
            reaches,
            ..new("restart-tickets-apart", &two).restarting()
        },
        Configuration {
            answers_at_once: true,
            reaches,
            ..new("restart-three-processes", &three).restarting()
        },
        Configuration {
            pace: Pace::FirstPrompt,
            reaches: &[RestartedWithQueue, Reclaimed, GrantFound],
            ..new(
                "restart-healthy-holder",
                &[budget(1, 0, 0, 0), budget(1, 1, 1, 0)],
            )
            .restarting()
        },
        Configuration {
            pace: Pace::FirstPrompt,
            reaches: &[Event::TurnTaken],
            ..new("healthy-waiter", &[budget(1, 0, 0, 0), budget(1, 1, 0, 0)])
        },
    ]
}

fn local() -> Vec<Configuration> {
    use Event::{GivenBack, GrantedAgain, HandedOff, Reclaimed, RestartedWithQueue};
    let new = Configuration::new;
    let reaches = &[HandedOff, GrantedAgain, GivenBack];
    vec![
        Configuration {
            reaches,
            ..new("linger", &[budget(1, 0, 1, 3), budget(1, 1, 0, 0)]).lingering()
        },
        Configuration {
            answers_at_once: true,
            crashes: 1,
            reaches,
            ..new(
                "linger-and-acquire-again",
                &[budget(2, 0, 1, 2), budget(1, 1, 0, 1)],
            )
            .lingering()
        },
        Configuration {
            answers_at_once: true,
            abandons: true,
            reaches,
            ..new(
                "linger-three-processes",
                &[budget(1, 0, 1, 2), budget(1, 0, 0, 0), budget(1, 0, 0, 0)],
            )
            .lingering()
        },
        Configuration {
            answers_at_once: true,
            reaches: &[
                HandedOff,
                GrantedAgain,
                GivenBack,
                Reclaimed,
                RestartedWithQueue,
            ],
            ..new("linger-restart", &[budget(1, 0, 2, 2), budget(1, 1, 0, 0)])
                .lingering()
                .restarting()
        },
        Configuration {
            abandons: true,
            crashes: 1,
            reaches: &[HandedOff, GivenBack, RestartedWithQueue],
            ..new(
                "everything",
                &[budget(1, 0, 1, 2), budget(1, 1, 0, 0), budget(1, 0, 0, 0)],
            )
            .lingering()
            .restarting()
        },
    ]
}

fn progress() -> Vec<Configuration> {
    use Event::{GivenBack, GrantFound, GrantedAgain, HandedOff, TurnTaken};
    let new = Configuration::new;
    let once = budget(1, 0, 0, 0);
    let twice = budget(2, 0, 0, 0);
    vec![
        Configuration {
            reaches: &[TurnTaken, GrantFound],
            ..new("prompt", &[twice, twice]).prompt(3)
        },
        Configuration {
            pushes: false,
            reaches: &[GrantFound],
            ..new("prompt-pushes-lost", &[once, once, twice]).prompt(5)
        },
        Configuration {
            pushes: false,
            reaches: &[HandedOff, GrantedAgain, GivenBack],
            ..new("prompt-linger-pushes-lost", &[budget(1, 0, 0, 6), twice])
                .lingering()
                .prompt(5)
        },
        Configuration {
            reaches: &[HandedOff, GrantedAgain, GivenBack, TurnTaken],
            ..new("prompt-linger", &[budget(1, 0, 0, 6), twice])
                .lingering()
                .prompt(6)
        },
        Configuration {
            crashes: 1,
            ticket: 2,
            claim: 2,
            reaches: &[TurnTaken, GrantFound],
            ..new("prompt-crash", &[once, once, once]).prompt(6)
        },
        Configuration {
            crashes: 3,
            ticket: 2,
            abandons: false,
            pushes: false,
            reaches: &[GrantFound],
            ..new("prompt-three-crashes", &[once, once, once, once]).prompt(12)
        },
        Configuration {
            crashes: 1,
            ticket: 4,
            restarts: 1,
            survives: Survival::EVERY,
            reaches: &[Event::RestartedWithQueue, Event::Reclaimed],
            ..new("prompt-crash-and-restart", &[once, once]).prompt(7)
        },
    ]
}
