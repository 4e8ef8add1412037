use std::fmt;

use crate::RingError;
use crate::limits::{SLOTS_MAX, SLOTS_MIN};

/// One of [`SlotCount`] equal arcs of the 64-bit hash circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

impl Slot {
    /// Position on the circle, from 0; less than the [`SlotCount`] it came from.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of slots: a power of two, 2 to 65,536, fixed for the life of a topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotCount {
    /// 1 to 16.
    log2: u8,
}

impl SlotCount {
    /// 16,384 slots: 160 per shard at a hundred shards, so that rounding costs less than 1 %.
    pub const DEFAULT: Self = Self { log2: 14 };

    /// 65,536 slots.
    pub const MAX: Self = Self { log2: 16 };

    /// Checks `slots`.
    ///
    /// # Errors
    ///
    /// [`RingError::OutOfRange`]: below 2 or above 65,536.
    /// [`RingError::SlotsNotPowerOfTwo`]: anything between two powers of two.
    pub fn new(slots: u32) -> Result<Self, RingError> {
        RingError::check("slots", slots.into(), SLOTS_MIN.into(), SLOTS_MAX.into())?;
        if !slots.is_power_of_two() {
            return Err(RingError::SlotsNotPowerOfTwo { value: slots });
        }
        Ok(Self {
            log2: slots.trailing_zeros() as u8,
        })
    }

    /// The number of slots.
    pub const fn get(self) -> u32 {
        1 << self.log2
    }

    /// The slot of a hash: its highest `log2 S` bits.
    #[inline]
    pub const fn slot_of(self, hash: u64) -> Slot {
        Slot((hash >> (64 - self.log2)) as u16)
    }

    /// The slot at `index`.
    ///
    /// # Errors
    ///
    /// [`RingError::OutOfRange`]: there are fewer slots.
    pub fn slot(self, index: u32) -> Result<Slot, RingError> {
        RingError::check("slot", index.into(), 0, u64::from(self.get()) - 1)?;
        Ok(Slot(index as u16))
    }

    /// Every slot, in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Slot> + DoubleEndedIterator {
        (0..self.get() as usize).map(|index| Slot(index as u16))
    }

    /// First hash of `slot`.
    pub(crate) fn start(self, slot: Slot) -> u64 {
        u64::from(slot.0) << (64 - self.log2)
    }

    /// 1 to 16.
    pub(crate) fn log2(self) -> u8 {
        self.log2
    }
}

impl Default for SlotCount {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for SlotCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
