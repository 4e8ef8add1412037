//! What the shards keep of each key, and how far each process is.

use crate::words::Nonce;

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) now: u8,
    /// In the order that all callers share.
    pub(super) keys: Vec<Key>,
    pub(super) processes: Vec<Process>,
    /// Requests whose caller is gone, on their way, sorted.
    pub(super) strays: Vec<Stray>,
    /// Releases on their way, sorted.
    pub(super) releases: Vec<(u8, Nonce)>,
    pub(super) crashes: u8,
    pub(super) losses: u8,
    /// What the last action was an example of.
    pub(super) happened: Option<Event>,
}

/// A lock, at its shard.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) record: Option<Entry>,
    /// In the order of arrival.
    pub(super) queue: Vec<Entry>,
}

/// A record, or a ticket.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) nonce: Nonce,
    pub(super) ends: u8,
}

/// A request that may still be granted.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stray {
    pub(super) key: u8,
    pub(super) nonce: Nonce,
    /// A release follows it.
    pub(super) released: bool,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Process {
    /// Of its present call.
    pub(super) call: u8,
    /// When that began.
    pub(super) began: u8,
    pub(super) doing: Doing,
    pub(super) calls: u8,
}

/// Sets of keys are bits.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Doing {
    Nothing,
    /// It has asked for all at once.
    Trying {
        since: u8,
        unanswered: u8,
        granted: u8,
    },
    /// It holds some, and waits for the first of the others.
    Waiting {
        since: u8,
        held: u8,
    },
    /// It was granted the set.
    Has,
    /// It crashed then.
    Dead(u8),
}

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// A set was granted by one try.
    GrantedAtOnce(u8),
    /// A set was granted after a wait.
    GrantedAfterAWait(u8),
    /// A try failed after it was granted some.
    FailedInPart,
    /// The deadline of a call was over.
    TimedOut,
    /// A set was granted in full, and not held in full any more.
    LostMeanwhile,
    /// A process crashed with some of its keys.
    CrashedWithSome,
}

impl World {
    pub(super) fn process(&self, process: u8) -> &Process {
        &self.processes[usize::from(process)]
    }

    pub(super) fn process_mut(&mut self, process: u8) -> &mut Process {
        &mut self.processes[usize::from(process)]
    }

    pub(super) fn key(&self, key: u8) -> &Key {
        &self.keys[usize::from(key)]
    }

    /// Of the tries of its present call.
    pub(super) fn of_tries(&self, process: u8) -> Nonce {
        let sequence = 2 * self.process(process).call;
        Nonce { process, sequence }
    }

    /// Of the waits of its present call: a key that it gave back is asked for anew.
    pub(super) fn of_waits(&self, process: u8) -> Nonce {
        let sequence = 2 * self.process(process).call + 1;
        Nonce { process, sequence }
    }

    /// Whether an acquisition belongs to the present call of its process.
    pub(super) fn is_of_call(&self, nonce: Nonce) -> bool {
        nonce.sequence / 2 == self.process(nonce.process).call
    }

    /// Whether `key` has a record of the present call of `process`.
    pub(super) fn has_record(&self, key: u8, process: u8) -> bool {
        let record = self.key(key).record;
        record.is_some_and(|Entry { nonce, .. }| nonce.process == process && self.is_of_call(nonce))
    }
}

impl Doing {
    /// The keys that the process believes it holds, if it wants `all`.
    pub(super) fn held(self, all: u8) -> u8 {
        match self {
            Self::Nothing | Self::Dead(_) => 0,
            Self::Trying { granted, .. } => granted,
            Self::Waiting { held, .. } => held,
            Self::Has => all,
        }
    }
}
