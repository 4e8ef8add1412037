//! What the store keeps, and what the processes believe.

use super::{configurations::Budget, sight::Sight};

pub(super) const PROCESSES: usize = 2;

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) now: u8,
    pub(super) clock: Clock,
    pub(super) document: Document,
    pub(super) processes: [Process; PROCESSES],
    /// How many reads, or answers to reads, may still be late.
    pub(super) lates: u8,
    /// Under way, sorted.
    pub(super) requests: Vec<Request>,
    /// Under way, sorted.
    pub(super) answers: Vec<Answer>,
    /// What the last action was an example of.
    pub(super) happened: Option<Event>,
}

/// The store's clock, which processes put forward.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Clock {
    pub(super) revision: u8,
    pub(super) shows: u8,
}

/// The lock's document.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Document {
    pub(super) version: u8,
    pub(super) record: Option<Record>,
    /// The request that is granted when the record goes.
    pub(super) ticket: Option<Ticket>,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    pub(super) owner: u8,
    pub(super) nonce: u8,
    /// By the store's clock.
    pub(super) ends: u8,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    pub(super) owner: u8,
    pub(super) nonce: u8,
    /// When the owner sent it.
    pub(super) sent: u8,
}

/// A process, and its budget.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Process {
    /// Of its present acquisition.
    pub(super) nonce: u8,
    pub(super) doing: Doing,
    /// What it knows of the store's clock.
    pub(super) sight: Option<Sight>,
    pub(super) budget: Budget,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Doing {
    Nothing,
    /// It wants the lock.
    Waiting,
    /// It believes that it holds the lock before this time.
    Holding(u8),
}

/// A read on its way to the store.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) from: u8,
    pub(super) nonce: u8,
    pub(super) sent: u8,
    pub(super) aim: Aim,
    /// What the clock is put forward to, from the revision that was seen.
    pub(super) tick: Option<Clock>,
}

/// What a read is for.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Aim {
    /// Acquire, or renew.
    Ask,
    /// Another lock.
    Look,
    /// Release, or give up.
    Release,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// The process that asked has the lock, or has it for longer.
    Granted,
    /// The waiter has the lock, by its ticket.
    Claimed(Ticket),
}

/// On its way to a process.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Answer {
    pub(super) to: u8,
    pub(super) nonce: u8,
    /// When the read was sent, or that which made the ticket.
    pub(super) sent: u8,
    pub(super) what: Told,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    Granted,
    Claimed,
    Read {
        aim: Aim,
        clock: Clock,
        /// It put the clock forward.
        put: bool,
        document: Document,
    },
}

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// A lock was granted whose former record had ended.
    TakenOver,
    /// A renewal made a lease longer.
    Extended,
    /// A waiter got the lock by its ticket.
    Claimed,
    /// A tick was refused: another process had put the clock forward.
    TickRefused,
    /// A lock was granted without a read, by a clock that had gone on since.
    Recalled,
}

impl World {
    pub(super) fn process(&self, process: u8) -> &Process {
        &self.processes[usize::from(process)]
    }

    pub(super) fn process_mut(&mut self, process: u8) -> &mut Process {
        &mut self.processes[usize::from(process)]
    }

    /// Whether `process` believes that it holds the lock.
    pub(super) fn believes(&self, process: u8) -> bool {
        matches!(self.process(process).doing, Doing::Holding(until) if self.now < until)
    }
}
