//! What a life has once it is armed.

use std::time::Duration;

use ringfence_ring::Slot;

use super::{imports::Imports, records::Entry};
use crate::{
    ids::{Epoch, MapVersion, Token},
    shard::{Mode, SlotState, SlotStates},
};

/// What an armed life has.
#[derive(Debug)]
pub(super) struct Armed {
    pub(super) epoch: Epoch,
    pub(super) token_epoch: Epoch,
    /// Of the last token made.
    pub(super) counter: u64,
    pub(super) slots: SlotStates,
    pub(super) imports: Imports,
    /// Nothing new is granted before this.
    pub(super) grace_until_ms: u64,
    /// Nothing is granted or reclaimed before this.
    pub(super) shut_until_ms: u64,
    /// How long the two were set for: if more seems to be left, the clock was set back since.
    pub(super) grace_ms: u64,
    pub(super) shut_ms: u64,
    /// The last epoch at which slots were opened by force, after both timers.
    pub(super) forced: Epoch,
    /// The map version at which every slot is open and no timer runs.
    pub(super) quiet: Option<MapVersion>,
}

impl Armed {
    /// Has nothing new granted for `grace_ms`, and nothing granted or reclaimed for `shut_ms`, at least.
    pub(super) fn set_timers(&mut self, grace_ms: u64, shut_ms: u64, now_ms: u64) {
        let left = |until_ms: u64, length_ms| until_ms.saturating_sub(now_ms).min(length_ms);
        self.grace_ms = left(self.grace_until_ms, self.grace_ms).max(grace_ms);
        self.shut_ms = left(self.shut_until_ms, self.shut_ms).max(shut_ms);
        self.grace_until_ms = now_ms.saturating_add(self.grace_ms);
        self.shut_until_ms = now_ms.saturating_add(self.shut_ms);
    }

    /// How long the grace goes on.
    pub(super) fn grace_left(&self, now_ms: u64) -> Duration {
        Duration::from_millis(self.grace_until_ms.saturating_sub(now_ms))
    }

    /// Whether an unexpired record still counts.
    pub(super) fn is_live(&self, entry: &Entry, now_ms: u64) -> bool {
        entry.record.arm == self.epoch || now_ms < self.grace_until_ms
    }

    /// No token made until now is above this.
    pub(super) fn last_token(&self) -> Token {
        Token::new(self.token_epoch, self.counter)
    }

    /// Makes every token to come greater than `above`.
    pub(super) fn raise(&mut self, above: Token) {
        if above > self.last_token() {
            self.token_epoch = above.epoch();
            self.counter = above.counter();
        }
    }

    /// Makes `state` that of `slot`, if the guard rises. Answers whether the slot is in that state now.
    pub(super) fn change(&mut self, slot: Slot, state: SlotState) -> bool {
        let present = self.slots.get(slot);
        let rises = state.guard() > present.guard();
        if rises {
            self.imports.forget(slot);
            self.slots.set(slot, state);
        }
        let applied = rises || state == present;
        if applied && state.mode == Mode::Import {
            self.imports.begin(slot);
        }
        applied
    }
}
