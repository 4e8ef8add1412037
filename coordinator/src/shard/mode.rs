//! Which share of a key its holder takes.

use std::fmt;

use crate::limits::PERMITS_MAX;

/// The capacity of a read-write lock: a reader takes one share, and a writer all of them.
const READ_WRITE: u32 = 1 << 30;

/// Which share of a key a holder takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// The whole key.
    Exclusive,
    /// Some permits of a semaphore.
    Permits {
        /// How many, at least 1.
        count: u32,
        /// How many there are, at most [`PERMITS_MAX`](crate::limits::PERMITS_MAX). No shard stores this: each request
        /// is granted by its own.
        capacity: u32,
    },
    /// One share of a read-write lock.
    Read,
    /// All shares of a read-write lock.
    Write,
}

/// The kinds of locks. A key is of one kind at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// One holder.
    Mutex,
    /// A number of permits.
    Semaphore,
    /// Many readers, or one writer.
    ReadWrite,
}

impl LockMode {
    /// The kind of lock that has such holders.
    pub fn kind(self) -> LockKind {
        match self {
            Self::Exclusive => LockKind::Mutex,
            Self::Permits { .. } => LockKind::Semaphore,
            Self::Read | Self::Write => LockKind::ReadWrite,
        }
    }

    /// The mode of a lock of `kind` that takes `count` shares of so many.
    pub fn of(kind: LockKind, count: u32, capacity: u32) -> Self {
        match kind {
            LockKind::Mutex => Self::Exclusive,
            LockKind::Semaphore => Self::Permits { count, capacity },
            LockKind::ReadWrite if count == Self::Read.shares() => Self::Read,
            LockKind::ReadWrite => Self::Write,
        }
    }

    /// Whether there are so many shares, and at least one is taken.
    pub fn is_possible(self) -> bool {
        let (count, capacity) = (self.shares(), self.capacity());
        (1..=capacity).contains(&count) && capacity <= PERMITS_MAX
    }

    /// How many shares the holder takes.
    pub fn shares(self) -> u32 {
        match self {
            Self::Exclusive | Self::Read => 1,
            Self::Permits { count, .. } => count,
            Self::Write => READ_WRITE,
        }
    }

    /// How many shares there are.
    pub fn capacity(self) -> u32 {
        match self {
            Self::Exclusive => 1,
            Self::Permits { capacity, .. } => capacity,
            Self::Read | Self::Write => READ_WRITE,
        }
    }
}

impl LockKind {
    /// As it is stored.
    pub(crate) fn letter(self) -> u8 {
        match self {
            Self::Mutex => b'm',
            Self::Semaphore => b's',
            Self::ReadWrite => b'r',
        }
    }

    /// The kind that is stored as `letter`.
    pub(crate) fn of_letter(letter: u8) -> Option<Self> {
        let all = [Self::Mutex, Self::Semaphore, Self::ReadWrite];
        all.into_iter().find(|kind| kind.letter() == letter)
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Mutex => "lock",
            Self::Semaphore => "semaphore",
            Self::ReadWrite => "read-write lock",
        })
    }
}
