//! Where tokens come from.

use super::Armed;
use crate::{
    ids::{Epoch, Token},
    limits::COUNTER_MAX,
};

/// Tokens set aside, for grants that may come of it or not.
#[derive(Debug)]
pub(super) struct Tokens {
    epoch: Epoch,
    /// Counter of the last one handed out. `None`: they are used up.
    last: Option<u64>,
}

impl Tokens {
    /// Sets `count` tokens aside, or none if that many are not left.
    pub(super) fn reserve(armed: &mut Armed, count: u64) -> Self {
        let first = armed.counter;
        let fits = first + count <= COUNTER_MAX;
        if fits {
            armed.counter += count;
        }
        Self {
            epoch: armed.token_epoch,
            last: fits.then_some(first),
        }
    }

    /// The first of the next `count` in a row.
    pub(super) fn next(&mut self, count: u32) -> Option<Token> {
        let last = self.last.as_mut()?;
        let first = *last + 1;
        *last += u64::from(count);
        Some(Token::new(self.epoch, first))
    }
}
