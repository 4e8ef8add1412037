use super::{Nonce, Token};

/// Facts that no participant knows, for the properties.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Ledger {
    /// The nonce of the shard's last grant.
    pub(super) granted: Option<Nonce>,
    /// The greatest token that the shard gave out or reserved.
    pub(super) newest_reserved: Token,
    /// The greatest token that a guard had.
    pub(super) newest_held: Token,
    pub(super) reserved_out_of_order: bool,
    pub(super) held_out_of_order: bool,
    pub(super) overtaken: bool,
    pub(super) too_many_hand_offs: bool,
    pub(super) healthy_guard_lost: bool,
    /// A record that its process no longer knows, and for how many ticks.
    pub(super) orphan: Option<(Nonce, u8)>,
    /// What the last action was an example of.
    pub(super) happened: Option<Event>,
}

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// A turn was pushed, and taken.
    TurnTaken,
    /// A turn was taken that the shard gave after a restart.
    TurnTakenAfterRestart,
    /// A ticket was put again, and was in the queue no more.
    StayedInVain,
    /// A re-check found the grant already made to it.
    GrantFound,
    /// A local waiter got the lock without asking the shard.
    HandedOff,
    /// A lingering record was granted again.
    GrantedAgain,
    /// A record was given back because another process waits.
    GivenBack,
    /// A renewal put its record back.
    Reclaimed,
    /// The shard restarted while a ticket was queued.
    RestartedWithQueue,
    /// Another shard granted while a ticket was still queued at the sealed slot.
    GrantedElsewhere,
}

impl Ledger {
    /// The shard gives out or reserves the tokens from `first` to the counter `last`.
    pub(super) fn reserved(&mut self, first: Token, last: u8) {
        self.reserved_out_of_order |= first <= self.newest_reserved;
        self.newest_reserved = self.newest_reserved.max(Token {
            counter: last,
            ..first
        });
    }

    /// A guard has `token`.
    pub(super) fn held(&mut self, token: Token) {
        self.held_out_of_order |= token <= self.newest_held;
        self.newest_held = self.newest_held.max(token);
    }
}
