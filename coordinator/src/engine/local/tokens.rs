//! The fencing tokens that came with a grant.

use crate::ids::Token;

/// A row of tokens; each holder gets one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    next: Token,
    left: u32,
}

impl Tokens {
    /// `count` tokens from `first` on. At least one: every grant has a token.
    pub(crate) fn new(first: Token, count: u32) -> Self {
        Self {
            next: first,
            left: count.max(1),
        }
    }

    /// The first of the remaining tokens.
    pub(crate) fn first(&self) -> Token {
        self.next
    }

    /// How many remain.
    pub(crate) fn left(&self) -> u32 {
        self.left
    }

    /// The next one.
    pub(crate) fn take(&mut self) -> Option<Token> {
        self.left = self.left.checked_sub(1)?;
        let token = self.next;
        self.next = Token::new(token.epoch(), token.counter() + 1);
        Some(token)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }
}
