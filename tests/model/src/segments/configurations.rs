//! The participants of a model, and its bounds.

use super::{Caller, Event, Operation};

/// A world to explore.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What each segment begins with.
    pub values: Vec<i8>,
    /// The account of each.
    pub accounts: Vec<u8>,
    /// How many of the first account there are in the first layout; the later ones have all.
    pub at_first: u8,
    /// The operations.
    pub operations: Vec<Operation>,
    /// The callers.
    pub callers: Vec<Caller>,
    /// How often a task begins anew before it gives up.
    pub rounds: u8,
    /// The round from which reads freeze.
    pub freezes_from: Option<u8>,
    /// How many tasks die.
    pub crashes: u8,
    /// How often a segment's mark is raised.
    pub purges: u8,
    /// How often a segment loses its last changes.
    pub losses: u8,
    /// … and how many, at most.
    pub tail: u8,
    /// How often a server comes back without its segment.
    pub vanishings: u8,
    /// How often the manifest goes back in time.
    pub manifest_losses: u8,
    /// The time from which each new layout is to be in force.
    pub plans: &'static [u8],
    /// The segment with the account that is closed.
    pub closed: Option<u8>,
    /// The segment with the account that does not exist, and may be created.
    pub absent: Option<u8>,
    /// Whether reservations expire.
    pub expires: bool,
    /// What must happen somewhere in it.
    pub reaches: &'static [Event],
}

impl Configuration {
    /// Segments of one account, with no faults but one task that dies.
    pub(super) fn new(name: &'static str, values: &[i8]) -> Self {
        Self {
            name,
            values: values.to_vec(),
            accounts: vec![0; values.len()],
            at_first: u8::MAX,
            operations: Vec::new(),
            callers: Vec::new(),
            rounds: 2,
            freezes_from: None,
            crashes: 1,
            purges: 0,
            losses: 0,
            tail: 1,
            vanishings: 0,
            manifest_losses: 0,
            plans: &[],
            closed: None,
            absent: None,
            expires: false,
            reaches: &[],
        }
    }

    /// These operations, by those callers that have one of them.
    pub(super) fn asking(self, operations: &[Operation], callers: &[Caller]) -> Self {
        let exists = |caller: &&Caller| usize::from(caller.operation) < operations.len();
        Self {
            operations: operations.to_vec(),
            callers: callers.iter().filter(exists).copied().collect(),
            ..self
        }
    }

    /// The segments are of these accounts.
    pub(super) fn of(self, accounts: &[u8]) -> Self {
        Self {
            accounts: accounts.to_vec(),
            ..self
        }
    }

    /// Layouts with all of the first account's segments are planned, where there was one.
    pub(super) fn growing(self, plans: &'static [u8]) -> Self {
        Self {
            at_first: 1,
            plans,
            ..self
        }
    }

    pub(super) fn rounds(self, rounds: u8) -> Self {
        Self { rounds, ..self }
    }

    pub(super) fn crashing(self, crashes: u8) -> Self {
        Self { crashes, ..self }
    }

    pub(super) fn purging(self, purges: u8) -> Self {
        Self { purges, ..self }
    }

    /// So often, up to so many changes.
    pub(super) fn losing(self, losses: u8, tail: u8) -> Self {
        Self {
            losses,
            tail,
            ..self
        }
    }

    pub(super) fn vanishing(self, vanishings: u8) -> Self {
        Self { vanishings, ..self }
    }

    /// Whether a segment may lose anything.
    pub(super) fn loses(&self) -> bool {
        self.losses + self.vanishings > 0
    }

    pub(super) fn losing_the_manifest(self) -> Self {
        Self {
            manifest_losses: 1,
            ..self
        }
    }

    pub(super) fn freezing_from(self, round: u8) -> Self {
        Self {
            freezes_from: Some(round),
            ..self
        }
    }

    pub(super) fn expiring(self) -> Self {
        Self {
            expires: true,
            ..self
        }
    }

    pub(super) fn reaching(self, reaches: &'static [Event]) -> Self {
        Self { reaches, ..self }
    }

    /// The operation that the task asks for.
    pub(super) fn operation(&self, task: u8) -> &Operation {
        &self.operations[usize::from(self.caller(task).operation)]
    }

    pub(super) fn caller(&self, task: u8) -> Caller {
        self.callers[usize::from(task)]
    }

    /// Which segments an account has in a layout.
    pub(super) fn segments(&self, account: u8, layout: u8) -> impl Iterator<Item = u8> + Clone {
        let old = account == 0 && layout == 0;
        let end = if old { self.at_first } else { u8::MAX };
        let each = (0..end).zip(&self.accounts);
        each.filter(move |(_, of)| **of == account)
            .map(|(segment, _)| segment)
    }
}
