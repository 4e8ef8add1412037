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

    /// Takes the next `count` tokens. Returns the first of them, or none if fewer are left.
    pub(crate) fn take(&mut self, count: u32) -> Option<Token> {
        self.set_aside([(count.into(), None)].into_iter())[0]
    }

    /// Sets so many tokens aside for each, the first not below its floor. Returns the first tokens, or none if fewer are
    /// left than all need. A floor of another epoch, or far above the last token, is ignored.
    pub(crate) fn set_aside(
        &mut self,
        needs: impl Iterator<Item = (u64, Option<Token>)>,
    ) -> Vec<Option<Token>> {
        let (epoch, most, mut last) = (self.epoch, self.counter + FLOOR_REACH, self.counter);
        let reachable = |floor: &Token| floor.epoch() == epoch && floor.counter() <= most;
        let firsts = needs.map(|(count, floor)| {
            let floor = floor.filter(reachable).map_or(0, Token::counter);
            let first = floor.max(last + 1);
            last = first + count - 1;
            Some(Token::new(epoch, first))
        });
        let mut firsts: Vec<_> = firsts.collect();
        match last <= COUNTER_MAX {
            true => self.counter = last,
            false => firsts.fill(None),
        }
        firsts
    }
}
