//! The knowledge of the shards and of each process. Times are in ticks.

use super::{
    Nonce, Token, configurations::Budget, ledger::Ledger, mover::Migration, network::Network,
};

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) shards: [Shard; 2],
    pub(super) processes: Vec<Process>,
    pub(super) network: Network,
    /// The move, once it is planned.
    pub(super) migration: Option<Migration>,
    /// The last epoch that was allotted.
    pub(super) epoch: u8,
    /// Ticks still to come, if they are limited.
    pub(super) ticks: Option<u8>,
    /// Restarts still to come.
    pub(super) restarts: u8,
    pub(super) ledger: Ledger,
}

/// A shard, as far as this key goes.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Shard {
    /// Of its memory; another after the restart.
    pub(super) life: u8,
    /// None: the shard is unarmed.
    pub(super) slot: Option<Slot>,
    pub(super) memory: Memory,
    /// The memory before its last changes, oldest first: a restart may bring it back.
    pub(super) earlier: Vec<Memory>,
}

/// The key's record and queue. They may survive a restart.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Memory {
    /// Sorted by nonce.
    pub(super) shares: Vec<Share>,
    pub(super) queue: Vec<Ticket>,
}

/// One holder's entry in the record.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) nonce: Nonce,
    pub(super) shares: u8,
    pub(super) token: Token,
    /// Its rest, at least 1.
    pub(super) left: u8,
    /// The life in which it was last written.
    pub(super) life: u8,
}

/// A place in the queue, live while it is there.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) nonce: Nonce,
    pub(super) terms: Terms,
    /// Of the youngest request that was queued with it.
    pub(super) age: u8,
    /// Its rest without a re-check, at least 1.
    pub(super) left: u8,
}

/// The terms of a request.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Terms {
    /// The shares it asks for.
    pub shares: u8,
    /// Of how many there are.
    pub capacity: u8,
    /// It goes before tickets that are not preferred.
    pub preferred: bool,
}

/// The slot at an armed shard, and the shard's own tokens and timer.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) mode: Mode,
    /// (epoch, step) of the last change: 0 is armed to import, 1 sealed or importing, 3 open or shut.
    pub(super) guard: (u8, u8),
    /// The last token granted.
    pub(super) token: Token,
    /// The rest of grace.
    pub(super) grace: u8,
    /// Import: the shares left at the former shard, at most, if that is known.
    pub(super) left: Option<u8>,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Mode {
    Shut,
    Open,
    Sealed,
    Import,
}

/// A process.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Process {
    /// The present one, or the last.
    pub(super) nonce: Nonce,
    /// The terms of the nonce, until it holds.
    pub(super) waits: Option<Terms>,
    pub(super) guard: Option<Guard>,
    /// The shards that its nonce asked, as bits.
    pub(super) asked: u8,
    /// The shares left at A, by A's own answer.
    pub(super) proof: Option<u8>,
    pub(super) budget: Budget,
    /// Whether its guard was granted or renewed since the last tick (prompt processes).
    pub(super) fresh: bool,
}

/// The process's side of its shares.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Guard {
    /// The shard where it renews.
    pub(super) shard: u8,
    pub(super) token: Token,
    pub(super) shares: u8,
    pub(super) writes: bool,
    /// The holders in this process that have the lease together: more than one if they are readers.
    pub(super) holders: u8,
    /// Until the deadline.
    pub(super) left: u8,
}

impl World {
    pub(super) fn shard(&mut self, shard: u8) -> &mut Shard {
        &mut self.shards[usize::from(shard)]
    }

    /// The process that sent what carries this nonce.
    pub(super) fn process(&mut self, nonce: Nonce) -> &mut Process {
        &mut self.processes[usize::from(nonce.process)]
    }

    /// Whether that nonce waits or holds, as its process sees it.
    pub(super) fn is_alive(&self, nonce: Nonce) -> bool {
        let process = &self.processes[usize::from(nonce.process)];
        process.nonce == nonce && (process.waits.is_some() || process.guard.is_some())
    }

    /// The guards of the processes that believe they hold.
    pub(super) fn guards(&self) -> impl Iterator<Item = Guard> {
        self.processes.iter().filter_map(|process| process.guard)
    }
}

impl Memory {
    pub(super) fn share(&self, nonce: Nonce) -> Option<Share> {
        (self.shares.iter().copied()).find(|share| share.nonce == nonce)
    }

    pub(super) fn knows(&self, nonce: Nonce) -> bool {
        self.share(nonce).is_some() || self.queue.iter().any(|ticket| ticket.nonce == nonce)
    }

    pub(super) fn forget_ticket(&mut self, nonce: Nonce) {
        self.queue.retain(|ticket| ticket.nonce != nonce);
    }

    /// The entry of its nonce.
    pub(super) fn write(&mut self, share: Share) {
        self.shares.retain(|other| other.nonce != share.nonce);
        let place = self
            .shares
            .partition_point(|other| other.nonce < share.nonce);
        self.shares.insert(place, share);
    }
}

impl Slot {
    pub(super) fn new(mode: Mode, guard: (u8, u8), epoch: u8) -> Self {
        Self {
            mode,
            guard,
            token: Token::none_of(epoch),
            grace: 0,
            left: None,
        }
    }

    /// Nothing that is granted from now on is below `token`.
    pub(super) fn raise(&mut self, token: Token) {
        self.token = self.token.max(token);
    }

    /// No more than `left` shares are left at the former shard.
    pub(super) fn lower_left(&mut self, left: u8) {
        self.left = Some(self.left.map_or(left, |known| known.min(left)));
    }
}
