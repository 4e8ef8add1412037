use std::fmt;

use crate::limits::{SLOTS_MAX, SLOTS_MIN};
use crate::{Replicas, RingError};

/// One of [`SlotCount`] equal arcs of the 64-bit hash circle, or a further replica of one.
///
/// Of `S` slots, replica `r` (its *rank*, from 0) of slot `s` is slot `r * S + s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// The slot at `index`, of the greatest ring with the most replicas.
    ///
    /// # Errors
    ///
    /// [`RingError::OutOfRange`]: no ring has such a slot.
    pub fn new(index: u32) -> Result<Self, RingError> {
        let count = u64::from(SLOTS_MAX * Replicas::MAX.get());
        RingError::check("slot", index.into(), 0, count - 1)?;
        Ok(Self(index))
    }

    /// Rank times [`SlotCount`], plus the position on the circle, from 0.
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
        Slot((hash >> (64 - self.log2)) as u32)
    }

    /// The slot at `index`.
    ///
    /// # Errors
    ///
    /// [`RingError::OutOfRange`]: there are fewer slots.
    pub fn slot(self, index: u32) -> Result<Slot, RingError> {
        RingError::check("slot", index.into(), 0, u64::from(self.get()) - 1)?;
        Ok(Slot(index))
    }

    /// Every slot of rank 0, in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Slot> + DoubleEndedIterator {
        self.all(Replicas::One)
    }

    /// Every slot of every rank, in order: by rank, then by position on the circle.
    pub fn all(
        self,
        replicas: Replicas,
    ) -> impl ExactSizeIterator<Item = Slot> + DoubleEndedIterator {
        let count = (self.get() * replicas.get()) as usize;
        (0..count).map(|index| Slot(index as u32))
    }

    /// The rank of `slot`, from 0.
    #[inline]
    pub fn rank(self, slot: Slot) -> u32 {
        slot.0 >> self.log2
    }

    /// The slots of all `replicas` of `slot`, by rank. `slot` has any rank.
    pub fn replicas(
        self,
        slot: Slot,
        replicas: Replicas,
    ) -> impl ExactSizeIterator<Item = Slot> + DoubleEndedIterator {
        let position = slot.0 & (self.get() - 1);
        (0..replicas.get() as usize).map(move |rank| Slot(((rank as u32) << self.log2) | position))
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
