//! Words that both models use.

/// One acquisition of one process, never used again.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nonce {
    /// The process.
    pub process: u8,
    /// Which of its acquisitions, from 1.
    pub sequence: u8,
}

/// A fencing token.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// In which the shard grants.
    pub epoch: u8,
    /// Within it.
    pub counter: u8,
}

impl Token {
    pub(crate) fn next(self) -> Self {
        Self {
            counter: self.counter + 1,
            ..self
        }
    }

    /// Before the first of `epoch`.
    pub(crate) fn none_of(epoch: u8) -> Self {
        Self { epoch, counter: 0 }
    }
}
