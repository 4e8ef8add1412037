//! The state of a shard's slots, packed: five bytes per slot.

use std::fmt;

use ringfence_ring::Slot;

use crate::ids::Epoch;

/// Bytes per slot.
pub(crate) const PACKED: usize = 5;

/// A slot that the shard has not heard of.
const NEVER: [u8; PACKED] = [Mode::Shut.letter(), 0, 0, 0, 0];

/// How a shard treats the keys of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It does nothing: the slot is elsewhere.
    Shut,
    /// It grants.
    Open,
    /// It no longer grants: the slot leaves. Held locks stay until they are moved or released.
    Sealed,
    /// The slot arrives. The shard grants a key once the former shard certainly no longer holds it. A life that is armed
    /// with this mode grants nothing before a mover's [`Step`](super::Step) tells it the last token of the former shard.
    Import,
}

impl Mode {
    /// Its letter in the packed form.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Shut => b'-',
            Self::Open => b'O',
            Self::Sealed => b'S',
            Self::Import => b'I',
        }
    }

    fn of(letter: u8) -> Self {
        match letter {
            b'O' => Self::Open,
            b'S' => Self::Sealed,
            b'I' => Self::Import,
            _ => Self::Shut,
        }
    }

    /// The step of a move that leads to it. Within an epoch, steps only rise.
    pub const fn step(self) -> u8 {
        match self {
            Self::Sealed | Self::Import => 1,
            Self::Open | Self::Shut => 3,
        }
    }
}

/// One slot: its mode, and the epoch of its last change. The pair of that epoch and the mode's
/// [step](Mode::step) guards it against late changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotState {
    /// The mode.
    pub mode: Mode,
    /// Epoch of the last change.
    pub epoch: Epoch,
}

impl SlotState {
    /// Compared as a pair: only a change with a greater one takes effect.
    pub fn guard(self) -> (Epoch, u8) {
        (self.epoch, self.mode.step())
    }

    /// Whether the slot leaves, or left, by the move of `epoch`.
    pub(crate) fn leaves_by(self, epoch: Epoch) -> bool {
        matches!(self.mode, Mode::Sealed | Mode::Shut) && self.epoch == epoch
    }

    /// Whether the slot arrives, or arrived, by the move of `epoch`.
    pub(crate) fn arrives_by(self, epoch: Epoch) -> bool {
        matches!(self.mode, Mode::Import | Mode::Open) && self.epoch == epoch
    }
}

/// The state of every slot.
///
/// Packed as: the mode's letter, the epoch of the last change (u32, big endian). The default has no slots.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SlotStates(Vec<u8>);

impl SlotStates {
    /// The states that `state` gives each of `slots`: all slots of a ring, in order.
    pub fn new(
        slots: impl ExactSizeIterator<Item = Slot>,
        state: impl Fn(Slot) -> SlotState,
    ) -> Self {
        let mut states = Self(Vec::with_capacity(slots.len() * PACKED));
        for slot in slots {
            states.set(slot, state(slot));
        }
        states
    }

    /// The state of `slot`. A slot of a rank that the shard has not heard of is shut since epoch 0.
    pub fn get(&self, slot: Slot) -> SlotState {
        let at = slot.index() * PACKED;
        let packed = self.0.get(at..at + PACKED).unwrap_or(&NEVER);
        let epoch = u32::from_be_bytes([packed[1], packed[2], packed[3], packed[4]]);
        SlotState {
            mode: Mode::of(packed[0]),
            epoch: Epoch(u64::from(epoch)),
        }
    }

    /// Changes `slot` to `state`.
    pub fn set(&mut self, slot: Slot, state: SlotState) {
        let at = slot.index() * PACKED;
        while self.0.len() < at + PACKED {
            self.0.extend(NEVER);
        }
        self.0[at] = state.mode.letter();
        self.0[at + 1..at + PACKED].copy_from_slice(&(state.epoch.0 as u32).to_be_bytes());
    }

    /// The packed states of the slots `from..until`, as far as there are any.
    pub(crate) fn packed(&self, from: usize, until: usize) -> &[u8] {
        let length = self.0.len();
        &self.0[length.min(from * PACKED)..length.min(until * PACKED)]
    }

    /// Puts packed states in, from the slot at `from` on.
    pub(crate) fn put(&mut self, from: usize, packed: &[u8]) {
        let (at, end) = (from * PACKED, from * PACKED + packed.len());
        while self.0.len() < end {
            self.0.extend(NEVER);
        }
        self.0[at..end].copy_from_slice(packed);
    }

    /// Forgets the states of the slots `from..until`, which exist.
    pub(crate) fn forget(&mut self, from: usize, until: usize) {
        let forgotten = self.0[from * PACKED..until * PACKED].chunks_mut(PACKED);
        forgotten.for_each(|packed| packed.copy_from_slice(&NEVER));
    }

    /// The open slots.
    pub(crate) fn open(&self) -> impl Iterator<Item = Slot> {
        let packed = (0..).zip(self.0.chunks(PACKED));
        let open = packed.filter(|(_, packed)| packed[0] == Mode::Open.letter());
        open.filter_map(|(index, _)| Slot::new(index).ok())
    }

    /// The packed form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SlotStates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.open().count();
        write!(formatter, "{open} of {} slots open", self.0.len() / PACKED)
    }
}
