//! The tokens that a shard makes.

use crate::{
    ids::{Epoch, Token},
    limits::{COUNTER_MAX, FLOOR_REACH},
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

    /// Sets `count` tokens aside, or none if fewer are left.
    pub(crate) fn set_aside(&mut self, count: u64) -> TokenBlock {
        self.set_aside_from(count, [])
    }

    /// The same, with floors: a place among the tokens, from 1, and the least token at that place. A floor of another
    /// epoch, or far above the last token, is ignored.
    pub(crate) fn set_aside_from(
        &mut self,
        count: u64,
        floors: impl IntoIterator<Item = (u64, Token)>,
    ) -> TokenBlock {
        let most = self.counter + FLOOR_REACH;
        let floors = floors.into_iter();
        let floors =
            floors.filter(|(_, floor)| floor.epoch() == self.epoch && floor.counter() <= most);
        let firsts = floors.map(|(place, floor)| floor.counter().saturating_sub(place));
        let first = firsts.fold(self.counter, u64::max);
        let fits = first + count <= COUNTER_MAX;
        if fits {
            self.counter = first + count;
        }
        TokenBlock {
            epoch: self.epoch,
            last: fits.then_some(first),
        }
    }
}

/// Tokens that were set aside for grants. Some of them may never be used.
#[derive(Debug)]
pub(crate) struct TokenBlock {
    epoch: Epoch,
    /// The counter of the last token that was taken. `None`: there are none.
    last: Option<u64>,
}

impl TokenBlock {
    /// Takes the next `count` tokens. Returns the first of them.
    pub(crate) fn take(&mut self, count: u32) -> Option<Token> {
        let last = self.last.as_mut()?;
        let first = *last + 1;
        *last += u64::from(count);
        Some(Token::new(self.epoch, first))
    }
}
