use super::record::{Epoch, Meaning};
use crate::words::Token;

/// Facts that no participant knows, for the properties; and the clock.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Ledger {
    /// The greatest token that was granted.
    pub(super) newest: Token,
    pub(super) granted_out_of_order: bool,
    /// What took effect with each epoch.
    pub(super) effects: Vec<Option<Meaning>>,
    pub(super) epoch_with_two_meanings: bool,
    /// The greatest epoch ever allotted, if they follow a clock: it is above.
    pub(super) last_epoch: u8,
    /// The greatest incarnation that was ever in force, likewise.
    pub(super) last_incarnation: u8,
    /// What the last action was an example of.
    pub(super) happened: Option<Event>,
}

/// What a clean configuration must come across, or it checked nothing.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Event {
    /// A record was put back in force.
    Restored,
    /// … with a move under way.
    RestoredInMove,
    /// … at another shard than before.
    RestoredElsewhere,
    /// A recovery gave way to another.
    Outrun,
    /// A grant in the name of a record that was put back in force.
    GrantAfter,
    /// A move was finished in the name of one.
    FinishedAfter,
    /// A lock went through a restart, and a recovery.
    KeptThrough,
    /// A shard that was armed was armed anew.
    ArmedAnew,
    /// A shard was armed again in the life in which it lost its state.
    ArmedAfresh,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            newest: Token::default(),
            granted_out_of_order: false,
            effects: vec![None, Some(Meaning::Founding)],
            epoch_with_two_meanings: false,
            last_epoch: 0,
            last_incarnation: 0,
            happened: None,
        }
    }

    /// A shard grants `token`.
    pub(super) fn granted(&mut self, token: Token) {
        self.granted_out_of_order |= token <= self.newest;
        self.newest = self.newest.max(token);
    }

    /// Something is done at a shard with `epoch`.
    pub(super) fn takes_effect(&mut self, epoch: Epoch) {
        let index = usize::from(epoch.number);
        if self.effects.len() <= index {
            self.effects.resize(index + 1, None);
        }
        let before = self.effects[index].replace(epoch.meaning);
        self.epoch_with_two_meanings |= before.is_some_and(|meaning| meaning != epoch.meaning);
    }
}
