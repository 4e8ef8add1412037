use super::Token;

/// Facts that no participant knows, for the properties.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Ledger {
    /// The greatest token that was granted.
    pub(super) newest: Token,
    /// … to a writer.
    pub(super) newest_writer: Token,
    pub(super) granted_out_of_order: bool,
    pub(super) granted_without_room: bool,
    pub(super) overtaken: bool,
    pub(super) room_left_idle: bool,
    pub(super) healthy_guard_lost: bool,
    /// The last action was an example of it.
    pub(super) happened: Option<Event>,
}

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// Two processes held at once.
    HeldTogether,
    /// A writer was granted after a reader.
    WriterAfterReader,
    /// A process took its turn.
    TurnTaken,
    /// One script granted to two tickets.
    TwoTurns,
    /// A preferred request was granted before a ticket that is not.
    PreferredGrant,
    /// A reader came to another one of its process.
    ReaderJoined,
    /// A writer had the lock after another one of its process.
    HandedOn,
    /// A reader was granted beside a downgraded writer.
    GrantAfterDowngrade,
    /// A grant by the smaller capacity, after one by the larger.
    SmallerCapacity,
    /// A holder moved itself.
    Adopted,
    /// B granted while shares were left at A.
    GrantBesideLeft,
    /// A move was finished under a holder.
    FinishedUnderHolder,
    /// A renewal put its shares back after a restart.
    Reclaimed,
    /// … where it would have found no room.
    ReclaimedWithoutRoom,
}

impl Ledger {
    /// A shard grants `token`.
    pub(super) fn granted(&mut self, token: Token, writes: bool) {
        self.granted_out_of_order |= token <= self.newest;
        if writes {
            self.newest_writer = self.newest_writer.max(token);
        }
        self.newest = self.newest.max(token);
    }
}
