use super::Token;

/// Facts that no participant knows, for the properties.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Ledger {
    /// The greatest token that was granted.
    pub(super) newest: Token,
    pub(super) granted_out_of_order: bool,
    pub(super) healthy_guard_lost: bool,
    pub(super) put_back_after_release: bool,
    /// What the last action was an example of.
    pub(super) happened: Option<Event>,
}

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// A holder moved itself.
    Adopted,
    /// The importing shard granted by a proof.
    ProvenGrant,
    /// The importing shard granted by the list.
    ListedGrant,
    /// The shard that a move opened granted.
    GrantAfterMove,
    /// A move was finished under a holder that it had not granted to.
    FinishedUnderHolder,
    /// An aborted move was finished under a holder.
    TakenBackUnderHolder,
    /// A second move was finished under a holder.
    FinishedAgainUnderHolder,
    /// A renewal put its record back after a restart.
    Reclaimed,
    /// … while the slot moved.
    ReclaimedInMove,
    /// A renewal put its record back at the shard that took a removed one's slot.
    ReclaimedElsewhere,
    /// The shard that took a removed one's slot granted.
    GrantAfterRemoval,
}

impl Ledger {
    /// A shard grants `token`.
    pub(super) fn granted(&mut self, token: Token) {
        self.granted_out_of_order |= token <= self.newest;
        self.newest = self.newest.max(token);
    }
}
