use std::fmt;

use crate::RingError;

/// How many replicas a lock has: 1, 3 or 5. A majority of them decides, so an even number would add a
/// server and tolerate no further failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Replicas {
    /// A lock at one shard.
    #[default]
    One,
    /// Survives the loss of one shard.
    Three,
    /// Survives the loss of two shards.
    Five,
}

impl Replicas {
    /// The greatest number.
    pub const MAX: Self = Self::Five;

    /// Checks `replicas`.
    ///
    /// # Errors
    ///
    /// [`RingError::Replicas`]: neither 1 nor 3 nor 5.
    pub fn new(replicas: u32) -> Result<Self, RingError> {
        match replicas {
            1 => Ok(Self::One),
            3 => Ok(Self::Three),
            5 => Ok(Self::Five),
            value => Err(RingError::Replicas { value }),
        }
    }

    /// The number: 1, 3 or 5.
    pub const fn get(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Three => 3,
            Self::Five => 5,
        }
    }

    /// The greatest number of replicas whose loss leaves a majority: 0, 1 or 2.
    pub const fn minority(self) -> u32 {
        self.get() / 2
    }
}

impl fmt::Display for Replicas {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(formatter)
    }
}
