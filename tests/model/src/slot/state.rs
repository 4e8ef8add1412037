//! What the shards know, and what each process knows. Times are in ticks.

use super::{
    Ask, Nonce, Request, Token, configurations::Budget, ledger::Ledger, network::Network,
    topology::Topology,
};

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) topology: Topology,
    pub(super) shards: Vec<Shard>,
    pub(super) processes: Vec<Process>,
    pub(super) network: Network,
    pub(super) left: Left,
    pub(super) ledger: Ledger,
}

/// What may still happen.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) aborts: u8,
    pub(super) restarts: u8,
    pub(super) raises: u8,
    pub(super) repeats: u8,
}

/// A shard, as far as this key goes.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Shard {
    /// Of its memory; another after every restart.
    pub(super) life: u8,
    /// What there is under the name of this life: none, and the shard is unarmed.
    pub(super) slot: Option<Slot>,
    /// What came back under the name of the former.
    pub(super) former: Option<Slot>,
    pub(super) record: Option<Record>,
    /// What a restart may bring back, oldest first.
    pub(super) earlier: Vec<Memory>,
    /// What an arm would write that read the topology as it was when it recorded this life.
    pub(super) read: Option<Slot>,
}

/// What may survive a restart.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) slot: Option<Slot>,
    pub(super) record: Option<Record>,
}

/// The slot at an armed shard, and the shard's own tokens and timers.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) mode: Mode,
    /// The epoch of the move or the arm that it was last changed by, and the step of it: 0 is armed
    /// to import, 1 sealed or importing, 3 open or shut.
    pub(super) guard: (u8, u8),
    /// The last that was granted; the next is the one after.
    pub(super) token: Token,
    /// The rest of grace.
    pub(super) grace: u8,
    /// Whether the list of its import names the key as held, if it was delivered.
    pub(super) list: Option<bool>,
    /// Whether a proof for the key was brought in its import.
    pub(super) proven: bool,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Mode {
    Shut,
    Open,
    /// Sealed, and moving to that shard.
    Sealed(u8),
    Import,
}

/// The nonce that was granted the lock.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) nonce: Nonce,
    pub(super) token: Token,
    /// Its rest, at least 1.
    pub(super) left: u8,
    /// In which it was last written.
    pub(super) life: u8,
}

/// A process.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Process {
    /// The present one, or the last.
    pub(super) nonce: Nonce,
    pub(super) guard: Option<Guard>,
    /// What it waits for an answer to: one thing at a time.
    pub(super) call: Option<Call>,
    pub(super) proven: Option<Proven>,
    pub(super) view: View,
    pub(super) budget: Budget,
    /// Whether its guard was granted or renewed since the last tick (prompt processes).
    pub(super) fresh: bool,
    /// What it lost by its deadline, where a rule lets it renew that.
    pub(super) expired: Option<Guard>,
    /// The shards that carried out a release of its nonce, as bits.
    pub(super) released: u8,
}

/// The process's side of a record.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Guard {
    /// Where it renews.
    pub(super) shard: u8,
    pub(super) token: Token,
    /// Until the deadline.
    pub(super) left: u8,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) shard: u8,
    pub(super) ask: Ask,
    pub(super) repeated: bool,
    /// The age of its last send, where a rule counts from that.
    pub(super) last_sent: Option<u8>,
}

/// What a sealed slot proved.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Proven {
    /// Of the move.
    pub(super) epoch: u8,
    /// Where it is good.
    pub(super) to: u8,
    /// Whether the nonce that asked is still wanted: then the proof goes with it.
    pub(super) keeps_nonce: bool,
}

/// What a process knows of the topology, where a shard may be removed.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct View {
    /// Whether it is of after the removal.
    pub(super) removed: bool,
    /// … and of after the epoch at which the other shard takes the slot.
    pub(super) opens: bool,
    /// Until it lapses.
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

    /// Whether a process waits for the answer to this request.
    pub(super) fn is_awaited(&self, request: &Request) -> bool {
        let process = &self.processes[usize::from(request.nonce.process)];
        let asks = |call: Call| call.shard == request.shard && call.ask == request.ask;
        process.nonce == request.nonce && process.call.is_some_and(asks)
    }
}

impl Shard {
    pub(super) fn new(slot: Slot) -> Self {
        Self {
            life: 0,
            slot: Some(slot),
            former: None,
            record: None,
            earlier: Vec::new(),
            read: None,
        }
    }

    /// What a connection finds that names that life.
    pub(super) fn slot_of(&mut self, life: u8) -> &mut Option<Slot> {
        if life == self.life {
            &mut self.slot
        } else {
            &mut self.former
        }
    }

    pub(super) fn memory(&self) -> Memory {
        Memory {
            slot: self.slot,
            record: self.record,
        }
    }
}

impl Slot {
    pub(super) fn new(mode: Mode, guard: (u8, u8), epoch: u8) -> Self {
        Self {
            mode,
            guard,
            token: Token::none_of(epoch),
            grace: 0,
            list: None,
            proven: false,
        }
    }

    /// Nothing that is granted from now on is below `token`.
    pub(super) fn raise(&mut self, token: Token) {
        self.token = self.token.max(token);
    }
}
