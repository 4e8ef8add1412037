//! The state of a shard's slots, packed: eight bytes a slot.

use std::fmt;

use ringfence_ring::{Slot, SlotCount};

use crate::ids::Epoch;

/// Bytes a slot.
pub(crate) const PACKED: usize = 8;

/// What a shard does with a slot's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: the slot is elsewhere.
    Shut,
    /// Grants.
    Open,
}

impl Mode {
    const fn letter(self) -> u8 {
        match self {
            Self::Shut => b'-',
            Self::Open => b'O',
        }
    }
}

/// One slot: its mode, and the (epoch, step) that guards changes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotState {
    /// The mode.
    pub mode: Mode,
    /// Epoch of the last change.
    pub epoch: Epoch,
}

/// Every slot's state.
///
/// Packed as: the mode's letter, the step of the last change (3: settled), its epoch (u32, big
/// endian), the number of the other shard of a move (u16, big endian; 0: none).
#[derive(Clone, PartialEq, Eq)]
pub struct SlotStates(Vec<u8>);

impl SlotStates {
    /// The states that `state` gives each of `count` slots.
    pub fn new(count: SlotCount, state: impl Fn(Slot) -> SlotState) -> Self {
        let mut packed = Vec::with_capacity(count.get() as usize * PACKED);
        for slot in count.iter() {
            let SlotState { mode, epoch } = state(slot);
            packed.extend([mode.letter(), 3]);
            packed.extend((epoch.0 as u32).to_be_bytes());
            packed.extend([0, 0]);
        }
        Self(packed)
    }

    /// The state of `slot`.
    pub fn get(&self, slot: Slot) -> SlotState {
        let at = slot.index() * PACKED;
        let packed = &self.0[at..at + PACKED];
        let epoch = u32::from_be_bytes([packed[2], packed[3], packed[4], packed[5]]);
        SlotState {
            mode: if packed[0] == b'O' {
                Mode::Open
            } else {
                Mode::Shut
            },
            epoch: Epoch(u64::from(epoch)),
        }
    }

    /// The packed form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SlotStates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self
            .0
            .chunks(PACKED)
            .filter(|packed| packed[0] == b'O')
            .count();
        write!(formatter, "{open} of {} slots open", self.0.len() / PACKED)
    }
}
