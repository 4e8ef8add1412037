//! What the shard knows, and what each process knows. Times are in ticks.

use super::{Nonce, Token, configurations::Budget, ledger::Ledger, network::Network};

/// Tokens of one epoch that may still be handed out: `next` to `last`.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    pub(super) next: Token,
    pub(super) last: u8,
}

impl Block {
    pub(super) fn tokens_left(self) -> u8 {
        (self.last + 1).saturating_sub(self.next.counter)
    }

    pub(super) fn is_empty(self) -> bool {
        self.tokens_left() == 0
    }

    pub(super) fn take(&mut self) -> Token {
        let token = self.next;
        self.next = token.next();
        token
    }
}

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) shard: Shard,
    pub(super) processes: Vec<Process>,
    pub(super) network: Network,
    /// Restarts still to come.
    pub(super) restarts: u8,
    /// Crashes still to come.
    pub(super) crashes: u8,
    pub(super) ledger: Ledger,
}

/// The shard, as far as this key goes.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Shard {
    /// Of its memory; another after every restart.
    pub(super) life: u8,
    pub(super) armed: bool,
    /// The rest of grace.
    pub(super) grace: u8,
    pub(super) epoch: u8,
    pub(super) counter: u8,
    pub(super) slot: Slot,
    pub(super) memory: Memory,
    /// What a restart may bring back: the memory before the last script that changed it.
    pub(super) earlier: Option<Memory>,
}

/// The slot that the key is of.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Slot {
    Open,
    Sealed,
    /// Sealed, and asked by the new shard, which was told that the key is free.
    Absent,
    /// Granted by the new shard.
    Moved,
}

/// What may survive a restart.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) record: Option<Record>,
    pub(super) queue: Vec<Ticket>,
}

/// The nonce that was granted the lock.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) nonce: Nonce,
    pub(super) token: Token,
    /// The counter of its block's last token.
    pub(super) last: u8,
    /// Its rest, at least 1.
    pub(super) left: u8,
    /// In which it was last written.
    pub(super) life: u8,
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) nonce: Nonce,
    /// Of the youngest request that was queued with it: what its turn echoes.
    pub(super) age: u8,
    /// Its rest without a re-check. At 0 it is no longer live.
    pub(super) left: u8,
}

/// A process.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Process {
    /// The present one, or the last.
    pub(super) nonce: Nonce,
    pub(super) phase: Phase,
    pub(super) budget: Budget,
    /// The rest of the last nonce's block, if that rule is off.
    pub(super) leftover: Option<Block>,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Waiting(Attempt),
    Holding(Guard),
}

/// An acquisition that is not granted yet, as far as its process knows.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Attempt {
    /// Whether it was sent or re-checked since the last tick (prompt processes).
    pub(super) fresh: bool,
    /// For how long it has waited ([`Pace::AllPrompt`](super::Pace::AllPrompt)).
    pub(super) waited: u8,
    /// The age of the send that a broken rule counts a turn's deadline from.
    pub(super) counts_from: Option<u8>,
}

/// The process's side of a record.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Guard {
    /// Of the present local holder.
    pub(super) token: Token,
    pub(super) block: Block,
    /// Until the deadline.
    pub(super) left: u8,
    /// Whether a task holds the lock; otherwise it lingers.
    pub(super) busy: bool,
    /// Whether it is known that another process waits.
    pub(super) contended: bool,
    /// Hand-offs since that is known.
    pub(super) handed_off: u8,
    /// Reserves sent.
    pub(super) reserves: u8,
    /// Whether the last of them is still to be answered.
    pub(super) reserving: bool,
    /// Whether it was granted or renewed since the last tick (prompt processes).
    pub(super) fresh: bool,
    /// For how long the present task holds it ([`Pace::AllPrompt`](super::Pace::AllPrompt)).
    pub(super) held: u8,
}

impl World {
    /// The process that sent, or is sent, what carries this nonce.
    pub(super) fn process(&mut self, nonce: Nonce) -> &mut Process {
        &mut self.processes[usize::from(nonce.process)]
    }

    /// Whether that nonce waits or holds, as its process sees it.
    pub(super) fn is_alive(&self, nonce: Nonce) -> bool {
        let process = &self.processes[usize::from(nonce.process)];
        process.nonce == nonce && process.phase != Phase::Idle
    }

    /// Whether that nonce waits, as its process sees it.
    pub(super) fn is_waiting(&self, nonce: Nonce) -> bool {
        let process = &self.processes[usize::from(nonce.process)];
        process.nonce == nonce && matches!(process.phase, Phase::Waiting(_))
    }
}

impl Process {
    pub(super) fn attempt(&mut self) -> Option<&mut Attempt> {
        match &mut self.phase {
            Phase::Waiting(attempt) => Some(attempt),
            _ => None,
        }
    }

    pub(super) fn guard(&mut self) -> Option<&mut Guard> {
        match &mut self.phase {
            Phase::Holding(guard) => Some(guard),
            _ => None,
        }
    }
}

impl Memory {
    pub(super) fn knows(&self, nonce: Nonce) -> bool {
        self.record.is_some_and(|record| record.nonce == nonce) || self.awaits(nonce)
    }

    pub(super) fn awaits(&self, nonce: Nonce) -> bool {
        self.queue.iter().any(|ticket| ticket.nonce == nonce)
    }
}
