use std::fmt;
use std::num::NonZeroU32;

use crate::RingError;
use crate::limits::WEIGHT_MAX;

/// The number of slots due to a shard, relative to the others: 1 to 10,000, default 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(NonZeroU32);

impl Weight {
    /// The default weight.
    pub const ONE: Self = Self(NonZeroU32::MIN);

    /// Checks `weight`.
    ///
    /// # Errors
    ///
    /// [`RingError::OutOfRange`]: 0 (remove the shard instead) or above 10,000.
    pub fn new(weight: u32) -> Result<Self, RingError> {
        let refused = || RingError::OutOfRange {
            field: "weight",
            value: weight.into(),
            min: 1,
            max: WEIGHT_MAX.into(),
        };
        match NonZeroU32::new(weight) {
            Some(weight) if weight.get() <= WEIGHT_MAX => Ok(Self(weight)),
            _ => Err(refused()),
        }
    }

    /// The number: 1 to 10,000.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
