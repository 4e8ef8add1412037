//! The tokens that a shard makes.

use crate::{
    ids::{Epoch, Token},
    limits::COUNTER_MAX,
};

/// The last token that a shard made or set aside, in two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) epoch: Epoch,
    pub(crate) counter: u64,
}

impl Tokens {
    /// No earlier token is above this.
    pub(crate) fn last(&self) -> Token {
        Token::new(self.epoch, self.counter)
    }

    /// Makes every later token greater than `above`.
    pub(crate) fn raise(&mut self, above: Token) {
        if above > self.last() {
            self.epoch = above.epoch();
            self.counter = above.counter();
        }
    }

    /// Makes `count` tokens. Returns the first of them, or none if fewer are left.
    pub(crate) fn draw(&mut self, count: u32) -> Option<Token> {
        self.set_aside(count.into()).take(count)
    }

    /// Sets `count` tokens aside, or none if fewer are left.
    pub(crate) fn set_aside(&mut self, count: u64) -> TokenBlock {
        let first = self.counter;
        let fits = first + count <= COUNTER_MAX;
        if fits {
            self.counter += count;
        }
        TokenBlock {
            epoch: self.epoch,
            last: fits.then_some(first),
            end: self.counter,
        }
    }
}

/// Tokens that were set aside for grants. Some of them may never be used.
#[derive(Debug)]
pub(crate) struct TokenBlock {
    epoch: Epoch,
    /// The counter of the last token that was taken. `None`: there are none.
    last: Option<u64>,
    /// The shard's counter when they were set aside.
    end: u64,
}

impl TokenBlock {
    /// Whether the shard made no tokens since.
    pub(crate) fn is_last_of(&self, tokens: &Tokens) -> bool {
        self.end == tokens.counter
    }

    /// Takes the next `count` tokens. Returns the first of them.
    pub(crate) fn take(&mut self, count: u32) -> Option<Token> {
        let last = self.last.as_mut()?;
        let first = *last + 1;
        *last += u64::from(count);
        Some(Token::new(self.epoch, first))
    }
}
