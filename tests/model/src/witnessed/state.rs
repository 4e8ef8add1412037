//! What the store keeps, and what the processes believe.

use super::configurations::Budget;

/// A lease, in ticks. A claim is as long.
pub(super) const LEASE: u8 = 2;

pub(super) const PROCESSES: usize = 2;

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) now: u8,
    pub(super) record: Option<Record>,
    /// The request that is granted when the record goes.
    pub(super) ticket: Option<Ticket>,
    /// The stamp of the last grant.
    pub(super) stamp: u8,
    /// Each process's, unless it was removed.
    pub(super) beats: [Option<Beat>; PROCESSES],
    /// The number of the last beat of any process.
    pub(super) beaten: u8,
    pub(super) processes: [Process; PROCESSES],
    /// Under way, sorted.
    pub(super) requests: Vec<Request>,
    /// Under way, sorted.
    pub(super) answers: Vec<Answer>,
    /// What the last action was an example of.
    pub(super) happened: Option<Event>,
}

/// The lock's document says who holds it.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) owner: u8,
    pub(super) nonce: u8,
    /// Another one for every grant.
    pub(super) stamp: u8,
    /// It was granted by the release of another, and the owner has not confirmed it.
    pub(super) is_claim: bool,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) owner: u8,
    pub(super) nonce: u8,
    /// When the owner sent it.
    pub(super) sent: u8,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Beat {
    /// No two beats have one.
    pub(super) number: u8,
    /// When it was committed: only the store's timer goes by it.
    pub(super) at: u8,
}

/// A process, and its budget.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Process {
    /// Of its present acquisition.
    pub(super) nonce: u8,
    pub(super) doing: Doing,
    pub(super) budget: Budget,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Doing {
    Nothing,
    /// It wants the lock.
    Waiting(Option<Sight>),
    /// It believes that it holds the lock before this time.
    Holding(u8),
}

/// What a process has seen of another's lock.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    /// The record's stamp.
    pub(super) stamp: u8,
    pub(super) is_claim: bool,
    /// The number of the owner's beat.
    pub(super) beat: Option<u8>,
}

/// How long it has seen that.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) seen: Seen,
    pub(super) since: u8,
}

/// A commit, or a read, on its way to the store.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) from: u8,
    pub(super) nonce: u8,
    pub(super) sent: u8,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// Grant, or queue. The lock of another is taken over if it still is as seen.
    Ask(Option<Seen>),
    /// Release, or give up.
    Release,
    Beat,
    Read,
}

/// On its way to a process.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Answer {
    pub(super) to: u8,
    pub(super) nonce: u8,
    /// When the request was sent.
    pub(super) sent: u8,
    pub(super) what: Told,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    Granted,
    /// The release of another granted it.
    Claim,
    /// The beat was committed, and afterwards the lock was read as the process's own.
    Kept,
    Seen(Seen),
}

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// A lock was taken over from a process that had not beaten for a lease.
    TakenOver,
    /// … after the store had removed the beat.
    TakenOverUnbeaten,
    /// A beat made a lease longer.
    Extended,
    /// A waiter got the lock by the release of another.
    Claimed,
    /// A take-over was too late: the holder had beaten.
    TakeOverRefused,
}

impl World {
    pub(super) fn process(&self, process: u8) -> &Process {
        &self.processes[usize::from(process)]
    }

    pub(super) fn process_mut(&mut self, process: u8) -> &mut Process {
        &mut self.processes[usize::from(process)]
    }

    pub(super) fn beat(&self, process: u8) -> Option<u8> {
        self.beats[usize::from(process)].map(|beat| beat.number)
    }

    /// Whether `process` believes that it holds the lock.
    pub(super) fn believes(&self, process: u8) -> bool {
        matches!(self.process(process).doing, Doing::Holding(until) if self.now < until)
    }
}
