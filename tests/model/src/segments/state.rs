//! What the segments keep, and what tasks know.

use std::collections::BTreeSet;

use super::{layout::Manifest, ledger::Ledger, network::Request};

/// The most segments there are.
pub(super) const SEGMENTS_MAX: usize = 3;
/// The most operations.
pub(super) const OPERATIONS_MAX: usize = 3;

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) segments: Vec<Segment>,
    /// The states of each before its last changes, the newest first: a restart may bring back any of them.
    pub(super) earlier: Vec<Vec<Segment>>,
    pub(super) tasks: Vec<Task>,
    /// What was sent. It may arrive, or arrive again, at any later time.
    pub(super) network: BTreeSet<Request>,
    /// Of the first account.
    pub(super) manifest: Manifest,
    /// Of the account that does not exist: transfers up to this time are refused.
    pub(super) refused: u8,
    /// The versions of the segments as a person last read them.
    pub(super) read: Option<[u8; SEGMENTS_MAX]>,
    pub(super) left: Left,
    pub(super) ledger: Ledger,
}

/// What may still happen.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) rounds: u8,
    pub(super) crashes: u8,
    pub(super) purges: u8,
    pub(super) losses: u8,
    pub(super) vanishings: u8,
    pub(super) manifest_losses: u8,
}

/// A segment.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) exists: bool,
    pub(super) money: Money,
    /// What it was last prepared for; 0 is the first layout.
    pub(super) layout: u8,
    /// The layout that was in force as it was prepared.
    pub(super) base: u8,
    /// The time from which the layout's homes are others.
    pub(super) from: u8,
    /// Ids of this time and older are too old, if they are not recorded.
    pub(super) mark: u8,
    /// The greatest time of an id that was decided.
    pub(super) decided: u8,
    /// The task that it is frozen for.
    pub(super) frozen: Option<u8>,
    /// By operation.
    pub(super) entries: [Option<Entry>; OPERATIONS_MAX],
    /// By operation: the transfers to here.
    pub(super) credits: [Option<Credit>; OPERATIONS_MAX],
    /// Whether its tail may be lost.
    pub(super) doubtful: bool,
    /// Whether its server came back without it.
    pub(super) gone: bool,
    /// Whether it replaces one that was gone, and does not know the versions of the others yet.
    pub(super) awaits: bool,
    /// The mark that it began with as a replacement.
    pub(super) anew: u8,
    /// All that ever landed here, for the ledger. Counted only where it may be lost.
    pub(super) landed_in_all: i8,
    /// … and all that was ever lent.
    pub(super) lent_in_all: i8,
}

/// A segment's money, as it answers a read.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Money {
    pub(super) value: i8,
    /// Counts the changes of anything else here.
    pub(super) version: u8,
    /// What was last lent to each segment.
    pub(super) lent: [Lent; SEGMENTS_MAX],
    /// The number of what last landed from each.
    pub(super) landed: [u8; SEGMENTS_MAX],
    /// How often it may have lost changes, and went on.
    pub(super) losses: u8,
}

/// What was lent, under its number.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lent {
    pub(super) number: u8,
    pub(super) amount: i8,
}

/// The loans to land.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Land {
    pub(super) from: u8,
    pub(super) lent: Lent,
}

/// The memory of an id at its home.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) outcome: Outcome,
    /// None where it was cancelled unseen.
    pub(super) content: Option<u8>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Insufficient,
    Held,
    Confirmed,
    Cancelled,
    Expired,
}

/// The memory of a transfer at its destination.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Credit {
    /// Given, and the source may not know.
    Pinned,
    /// Given, and the transfer is finished at its source.
    Unpinned,
    Refused,
}

/// A call under way.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) phase: Phase,
    /// Answers to earlier ones are not heard any more.
    pub(super) round: u8,
    /// The layout that it goes by.
    pub(super) layout: u8,
    /// Segments that are still to answer, as bits.
    pub(super) awaits: u8,
    /// What the first read of each has shown.
    pub(super) views: [Option<Money>; SEGMENTS_MAX],
    /// The loans to land with the next attempt.
    pub(super) lands: Vec<Land>,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Idle,
    Operating,
    CollectingFirst,
    CollectingAgain,
    Borrowing,
    Landing,
    Refusing,
    Crediting,
    /// Has the credit refused by the manifest of an account that does not exist.
    RefusingThere,
    Finishing,
    /// A confirmation, or a cancellation.
    Ending,
    /// For a newer layout than the one it goes by.
    Outdated,
    /// Nothing: it was answered, gave up, or died.
    Over,
}

impl World {
    pub(super) fn segment(&self, segment: u8) -> &Segment {
        &self.segments[usize::from(segment)]
    }

    pub(super) fn segment_mut(&mut self, segment: u8) -> &mut Segment {
        &mut self.segments[usize::from(segment)]
    }

    pub(super) fn task(&mut self, task: u8) -> &mut Task {
        &mut self.tasks[usize::from(task)]
    }

    /// Every segment, with its number.
    pub(super) fn each(&self) -> impl Iterator<Item = (u8, &Segment)> + Clone {
        (0..).zip(&self.segments)
    }
}

impl Segment {
    pub(super) fn new(exists: bool, value: i8) -> Self {
        Self {
            exists,
            money: Money {
                value,
                ..Money::default()
            },
            layout: 0,
            base: 0,
            from: u8::MAX,
            mark: 0,
            decided: 0,
            frozen: None,
            entries: [None; OPERATIONS_MAX],
            credits: [None; OPERATIONS_MAX],
            doubtful: false,
            gone: false,
            awaits: false,
            anew: 0,
            landed_in_all: 0,
            lent_in_all: 0,
        }
    }

    /// Whether it has money: it is not gone, and not an empty replacement.
    pub(super) fn is_there(&self) -> bool {
        !self.gone && !self.awaits
    }

    /// Whether money may not move for this task.
    pub(super) fn is_frozen_to(&self, task: u8) -> bool {
        self.frozen.is_some_and(|other| other != task)
    }

    /// The id of `operation`, of that time, has come to this.
    pub(super) fn record(&mut self, operation: u8, time: u8, entry: Entry) {
        self.entries[usize::from(operation)] = Some(entry);
        self.decided = self.decided.max(time);
    }

    pub(super) fn entry(&self, operation: u8) -> Option<Entry> {
        self.entries[usize::from(operation)]
    }

    /// Its outcome is another now.
    pub(super) fn turn(&mut self, operation: u8, outcome: Outcome) {
        if let Some(entry) = &mut self.entries[usize::from(operation)] {
            entry.outcome = outcome;
        }
    }
}

impl Money {
    pub(super) fn add(&mut self, amount: i8) {
        self.value += amount;
        self.version += 1;
    }
}
