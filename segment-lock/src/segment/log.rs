//! The log: every change of a segment's money, in the order in which it was made.
//!
//! It is written in the same atomic step as the change. So the sum of the effects is the money: an audit adds them up.

use std::collections::VecDeque;

use super::{Answer, CreditId, Refusal, Reply, Segment};
use crate::{Account, Amount, Reference, RequestId};

/// One change of a segment's money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Its number in the segment's log. The next one's is greater by one; by more, where effects are missing: dropped
    /// because of their age or number, or lost by the server.
    pub number: u64,
    /// When it was made, in ms since 1970 on the segment's clock. Never falls from one effect to the next.
    pub at_ms: u64,
    /// What changed.
    pub kind: EffectKind,
    /// The amount.
    pub amount: Amount,
    /// The segment's money that may be spent, after it.
    pub value: i64,
    /// The segment's money set aside, after it.
    pub held: i64,
    /// The reference that came with the request: of a deposit, a deduction, a reservation, or a transfer that was sent.
    pub reference: Option<Reference>,
}

/// What changed, with the id of the request, and the counterpart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectKind {
    /// Money came in.
    Deposited(RequestId),
    /// Money went out.
    Deducted(RequestId),
    /// A reservation set money aside.
    Reserved(RequestId),
    /// A reservation was spent.
    Confirmed(RequestId),
    /// A reservation, or the rest of one that was spent in part, was given back.
    Cancelled(RequestId),
    /// A reservation came back at its deadline.
    Expired(RequestId),
    /// A transfer set money aside for the other account.
    Sent(RequestId, Account),
    /// The other account has that money.
    Delivered(RequestId, Account),
    /// The other account refused that money, and it is back.
    Returned(RequestId, Account),
    /// Money of another account's transfer came in.
    Received(CreditId),
    /// Money went to another segment of the account.
    Lent {
        /// The number of that segment.
        to: u32,
        /// The number of the loan.
        seq: u64,
    },
    /// Money of another segment of the account came in.
    Landed {
        /// The number of that segment.
        from: u32,
        /// The number of the loan.
        seq: u64,
    },
}

impl EffectKind {
    /// The word for it, in the past tense.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Deposited(_) => "deposited",
            Self::Deducted(_) => "deducted",
            Self::Reserved(_) => "reserved",
            Self::Confirmed(_) => "confirmed",
            Self::Cancelled(_) => "cancelled",
            Self::Expired(_) => "expired",
            Self::Sent(..) => "sent",
            Self::Delivered(..) => "delivered",
            Self::Returned(..) => "returned",
            Self::Received(_) => "received",
            Self::Lent { .. } => "lent",
            Self::Landed { .. } => "landed",
        }
    }

    /// The id of the request. None of money that moves between segments.
    pub fn request(&self) -> Option<&RequestId> {
        match self {
            Self::Deposited(id)
            | Self::Deducted(id)
            | Self::Reserved(id)
            | Self::Confirmed(id)
            | Self::Cancelled(id)
            | Self::Expired(id)
            | Self::Sent(id, _)
            | Self::Delivered(id, _)
            | Self::Returned(id, _)
            | Self::Received(CreditId { id, .. }) => Some(id),
            Self::Lent { .. } | Self::Landed { .. } => None,
        }
    }

    /// The other account of a transfer.
    pub fn counterpart(&self) -> Option<&Account> {
        match self {
            Self::Sent(_, other)
            | Self::Delivered(_, other)
            | Self::Returned(_, other)
            | Self::Received(CreditId { from: other, .. }) => Some(other),
            _ => None,
        }
    }

    /// The other segment of a loan, and the number of the loan.
    pub fn loan(&self) -> Option<(u32, u64)> {
        match *self {
            Self::Lent { to: other, seq } | Self::Landed { from: other, seq } => Some((other, seq)),
            _ => None,
        }
    }

    /// The factors of the amount by which the money that may be spent, and the money set aside, change.
    pub fn signs(&self) -> (i64, i64) {
        match self {
            Self::Deposited(_) | Self::Received(_) | Self::Landed { .. } => (1, 0),
            Self::Deducted(_) | Self::Lent { .. } => (-1, 0),
            Self::Reserved(_) | Self::Sent(..) => (-1, 1),
            Self::Confirmed(_) | Self::Delivered(..) => (0, -1),
            Self::Cancelled(_) | Self::Expired(_) | Self::Returned(..) => (1, -1),
        }
    }
}

/// The effects that a segment keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The number of the last effect.
    pub last: u64,
    /// The time of the last effect, in ms.
    pub at_ms: u64,
    /// The newest ones.
    pub effects: VecDeque<Effect>,
}

/// Reads the log, a bounded number of effects per request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Effects with a greater number.
    pub after: u64,
    /// Effects of this time or later, in ms since 1970 on the segment's clock.
    pub since_ms: u64,
    /// At most this many; at most [`EFFECTS_PAGE_LEN_MAX`](crate::limits::EFFECTS_PAGE_LEN_MAX).
    pub most: u32,
}

/// A part of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryPage {
    /// The effects, in their order.
    pub effects: Vec<Effect>,
    /// The number of the last effect that the segment has made. With that one, the page ends at the money of now.
    pub last: u64,
    /// The segment's money that may be spent, now.
    pub value: i64,
    /// The segment's money set aside, now.
    pub held: i64,
}

impl Segment {
    /// The effects that were asked for, doubtful or not.
    pub fn history(&self, history: &History) -> Answer {
        if self.terms.effects_max == 0 {
            return Err(Refusal::NoLog);
        }
        let History {
            after,
            since_ms,
            most,
        } = *history;
        let found = self.log.effects.iter();
        let found = found.skip_while(|effect| effect.number <= after || effect.at_ms < since_ms);
        Ok(Reply::History(HistoryPage {
            effects: found.take(most as usize).cloned().collect(),
            last: self.log.last,
            value: self.value,
            held: self.held,
        }))
    }

    /// Appends an effect that has just been made.
    pub(super) fn log(&mut self, kind: EffectKind, amount: i64, now_ms: u64) {
        self.log_referenced(kind, amount, None, now_ms);
    }

    /// The same, with the reference of its request.
    pub(super) fn log_referenced(
        &mut self,
        kind: EffectKind,
        amount: i64,
        reference: Option<Reference>,
        now_ms: u64,
    ) {
        let terms = self.terms;
        let Ok(amount) = Amount::new(amount) else {
            return;
        };
        if terms.effects_max == 0 {
            return;
        }
        self.log.last += 1;
        self.log.at_ms = self.log.at_ms.max(now_ms);
        self.log.effects.push_back(Effect {
            number: self.log.last,
            at_ms: self.log.at_ms,
            kind,
            amount,
            value: self.value,
            held: self.held,
            reference,
        });
        self.drop_effects(now_ms);
    }

    /// Drops effects beyond the greatest number, and those that are too old.
    pub(super) fn drop_effects(&mut self, now_ms: u64) {
        let since_ms = now_ms.saturating_sub(self.terms.effects_for_ms);
        let effects = &mut self.log.effects;
        let over = effects.len().saturating_sub(self.terms.effects_max);
        let old = effects.iter().skip(over);
        let old = old.take_while(|effect| effect.at_ms < since_ms).count();
        effects.drain(..over + old);
    }
}
