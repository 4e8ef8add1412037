//! What the shards keep, and what engines know. Times are in ticks.

use super::{
    ledger::Ledger,
    record::{Incarnation, MEMBERS_MAX, Mover, Record, Version, newest},
};
use crate::words::Token;

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) shards: Vec<Shard>,
    /// The records that a process may have read, and may still arm by, copy or recover.
    pub(super) read: Vec<Record>,
    /// The moves of which a process may still take steps.
    pub(super) movers: Vec<Mover>,
    /// What each of two engines has under way.
    pub(super) recoveries: [Option<Recovery>; 2],
    /// Those of two processes, that do nothing else.
    pub(super) guards: Vec<Guard>,
    pub(super) left: Left,
    pub(super) ledger: Ledger,
}

/// What may still happen.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) grants: u8,
    pub(super) moves: u8,
    pub(super) home_restarts: u8,
    pub(super) restarts: u8,
    pub(super) losses: u8,
    pub(super) deaths: u8,
    pub(super) retargets: u8,
    pub(super) flushes: u8,
    pub(super) rearms: u8,
    pub(super) recoveries: u8,
}

/// A shard, which is a member and may be home.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Shard {
    pub(super) up: bool,
    /// Of its memory; another after every restart.
    pub(super) life: u8,
    /// What there is under the name of this life: none, and the shard is unarmed.
    pub(super) slot: Option<Slot>,
    /// The greatest incarnation that this life has seen.
    pub(super) fence: Incarnation,
    /// The newest record that this life has seen.
    pub(super) copy: Option<Record>,
    /// The record it keeps as home, or kept.
    pub(super) record: Option<Record>,
    /// Those before it, which a restart may bring back, newest first.
    pub(super) earlier: Vec<Record>,
    pub(super) lock: Option<Lock>,
    /// The server that its address led to before, as it goes on.
    pub(super) former: Option<Box<Shard>>,
    /// The newest record when the address began to lead here: connections are younger.
    pub(super) led_here: Version,
    /// The newest that named it as it is.
    pub(super) named_until: Version,
    /// The greatest life that was behind the address.
    pub(super) last_life: u8,
    /// The greatest epoch that it was armed with behind this address.
    pub(super) used: u8,
}

/// The slot at an armed shard, the shard's tokens and its grace.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) mode: Mode,
    /// The epoch that it was last changed by, and the step of it: 0 is armed to import, 1 sealed or
    /// importing, 3 open or shut.
    pub(super) guard: (u8, u8),
    /// The last that was granted; the next is the one after.
    pub(super) token: Token,
    pub(super) grace: u8,
    /// What it was armed with.
    pub(super) armed: u8,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Mode {
    Shut,
    Open,
    /// Sealed, and moving to that shard.
    Sealed(u8),
    /// Coming from that shard.
    Import(u8),
}

/// The record of a lock, of the only key there is.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) token: Token,
    pub(super) left: u8,
}

/// A process's side of it.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Guard {
    pub(super) shard: u8,
    pub(super) token: Token,
    pub(super) left: u8,
}

/// A recovery under way.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Recovery {
    /// Where it will restore the record.
    pub(super) home: u8,
    /// As noted before `incarnation` was chosen.
    pub(super) lives: [u8; MEMBERS_MAX],
    pub(super) incarnation: Incarnation,
    /// The members with a fence that it raised, as bits.
    pub(super) fenced: u8,
    /// The newest record or copy of their answers, and of what the engine knew.
    pub(super) base: Option<Record>,
    /// The greatest epoch of their answers.
    pub(super) epoch: u8,
    /// What each is armed with; 0 is unarmed.
    pub(super) armed: [u8; MEMBERS_MAX],
}

impl World {
    pub(super) fn shard(&self, shard: u8) -> &Shard {
        &self.shards[usize::from(shard)]
    }

    pub(super) fn shard_mut(&mut self, shard: u8) -> &mut Shard {
        &mut self.shards[usize::from(shard)]
    }

    /// Every shard, with its number.
    pub(super) fn each(&self) -> impl Iterator<Item = (u8, &Shard)> {
        (0..).zip(&self.shards)
    }

    /// Those that answer, with their numbers.
    pub(super) fn up(&self) -> impl Iterator<Item = (u8, &Shard)> {
        self.each().filter(|(_, shard)| shard.up)
    }
}

impl Shard {
    pub(super) fn new(mode: Mode, copy: Record) -> Self {
        Self {
            up: true,
            life: 1,
            slot: Some(Slot::new(mode, (1, 3), (1, 1))),
            fence: Incarnation::default(),
            copy: Some(copy),
            record: None,
            earlier: Vec::new(),
            lock: None,
            former: None,
            led_here: Version::default(),
            named_until: Version::default(),
            last_life: 1,
            used: 1,
        }
    }

    /// The newest record there is here.
    pub(super) fn newest(&self) -> Option<Record> {
        newest(self.copy, self.record)
    }

    /// Something was done here for `record`.
    pub(super) fn keep_copy(&mut self, record: &Record) {
        self.copy = newest(self.copy, Some(*record));
    }
}

impl Slot {
    /// Armed, and with tokens of the second epoch.
    pub(super) fn new(mode: Mode, guard: (u8, u8), (armed, epoch): (u8, u8)) -> Self {
        Self {
            mode,
            guard,
            token: Token::none_of(epoch),
            grace: 0,
            armed,
        }
    }
}
