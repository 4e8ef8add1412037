//! What the shards know, and what each client knows. Times are in ticks.

use super::{Event, Message, Nonce, Token};

/// Three ranks: two are a majority.
pub(super) const RANKS: u8 = 3;
pub(super) const MAJORITY: usize = 2;

/// The shard of the first rank, and the shard that takes it over. Ranks 1 and 2 are at shards 1 and 2.
pub(super) const A: u8 = 0;
pub(super) const B: u8 = 3;
pub(super) const SHARDS: u8 = 4;

/// The shard whose release names the nonce that its successor may replace elsewhere.
pub(super) const LEAD: u8 = 1;

/// The ranks, in the order in which they lead.
const LEADS: [u8; RANKS as usize] = [LEAD, 2, A];

/// Of the move of the first rank. Epochs up to 3 were allotted before the model begins.
pub(super) const MOVE_EPOCH: u8 = 2;

/// Everything: one state of the model.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub(super) shards: [Shard; SHARDS as usize],
    pub(super) clients: [Client; 2],
    /// Messages under way, sorted.
    pub(super) late: Vec<Message>,
    pub(super) migration: Migration,
    pub(super) removal: Removal,
    /// The last epoch that the topology allotted.
    pub(super) epoch: u8,
    pub(super) left: Left,
    pub(super) ledger: Ledger,
}

/// What may still happen.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) late: u8,
    pub(super) restarts: u8,
    pub(super) raises: u8,
    pub(super) give_backs: u8,
    pub(super) forces: u8,
    pub(super) doubts: u8,
    pub(super) steps: u8,
}

/// A shard, as far as this key goes.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Shard {
    pub(super) life: Life,
    pub(super) mode: Mode,
    /// The last token that was granted or raised to; the next is the one after.
    pub(super) token: Token,
    /// The rest of grace.
    pub(super) grace: u8,
    pub(super) record: Option<Record>,
    /// The waiter. There is one place.
    pub(super) ticket: Option<Ticket>,
    /// The nonce that was released last, at the lead.
    pub(super) released: Option<Nonce>,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Life {
    /// With this epoch.
    Armed(u8),
    /// It came back empty, and the topology allotted this epoch to it.
    Unarmed(u8),
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Mode {
    Shut,
    Open,
    Sealed,
    Import,
}

/// The nonce that was granted the lock at a shard.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) nonce: Nonce,
    pub(super) token: Token,
    /// Its rest, at least 1.
    pub(super) left: u8,
}

/// A nonce that waits, by its latest request.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) nonce: Nonce,
    /// Ticks since that request was sent.
    pub(super) age: u8,
    /// Its rest, at least 1.
    pub(super) left: u8,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Client {
    /// The present one, or the last.
    pub(super) nonce: Nonce,
    pub(super) phase: Phase,
    pub(super) ranks: [Rank; RANKS as usize],
    /// The released nonce that the lead named with its grant.
    pub(super) replaces: Option<Nonce>,
    pub(super) acquisitions: u8,
    /// How often the present nonce was given back.
    pub(super) round: u8,
    /// Whether another waits at the lead since before this attempt.
    pub(super) behind: bool,
    /// Whether its view of the topology is of after the removal of A.
    pub(super) knows_removal: bool,
    /// Whether the lock was released by force. It does not know.
    pub(super) taken: bool,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Acquiring,
    Holding(Token),
    /// A majority's deadlines passed, and nothing was released.
    Lost,
}

/// The client's knowledge of its record at one rank.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Rank {
    /// The token that counts there, while the deadline has not passed.
    pub(super) token: Option<Token>,
    /// Until the deadline.
    pub(super) left: u8,
    /// The first rank only: whether the record is at B.
    pub(super) moved: bool,
    /// Whether this attempt has had a grant there, or may have.
    pub(super) asked: bool,
    /// The token that a shard raised itself to without a record (broken rule).
    pub(super) written: Token,
    /// The lead only: whether it answered that another has it.
    pub(super) held: bool,
    /// Whether it does not lead, whatever its place in the order.
    pub(super) passed: bool,
    /// Whether the record was there, and is not any more.
    pub(super) gone: bool,
    /// Whether it was renewed since any rank was found gone.
    pub(super) renewed: bool,
}

/// The move of the first rank from A to B.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Migration {
    /// What A had granted last, as its seal answered.
    pub(super) sealed: Option<Token>,
    /// Whether B has been told so, in its present life.
    pub(super) imported: bool,
    /// A was sealed, past its grace and without a live record: it can have none again.
    pub(super) free: bool,
    pub(super) opened: bool,
    pub(super) finished: bool,
}

/// The forced removal of A.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Removal {
    /// The epoch at which A was declared dead.
    pub(super) declared: Option<u8>,
    /// The rest of the time in which a client may go by a view of before that.
    pub(super) views: u8,
    /// The epoch at which B takes its rank.
    pub(super) second: Option<u8>,
}

/// Facts that no participant knows, for the properties.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Ledger {
    /// The token of the last holder.
    pub(super) newest: Token,
    pub(super) out_of_order: bool,
    /// What the last action was an example of.
    pub(super) happened: Option<Event>,
}

impl World {
    pub(super) fn shard(&self, shard: u8) -> &Shard {
        &self.shards[usize::from(shard)]
    }

    pub(super) fn shard_mut(&mut self, shard: u8) -> &mut Shard {
        &mut self.shards[usize::from(shard)]
    }

    pub(super) fn client(&self, client: u8) -> &Client {
        &self.clients[usize::from(client)]
    }

    pub(super) fn client_mut(&mut self, client: u8) -> &mut Client {
        &mut self.clients[usize::from(client)]
    }

    pub(super) fn fresh_epoch(&mut self) -> u8 {
        self.epoch += 1;
        self.epoch
    }
}

impl Shard {
    pub(super) fn new(mode: Mode, epoch: u8, token: Token) -> Self {
        Self {
            life: Life::Armed(epoch),
            mode,
            token,
            grace: 0,
            record: None,
            ticket: None,
            released: None,
        }
    }

    /// Nothing that is granted from now on is below `token`.
    pub(super) fn raise(&mut self, token: Token) {
        self.token = self.token.max(token);
    }

    /// Of its record, and of the waiter.
    pub(super) fn nonces(&self) -> impl Iterator<Item = Nonce> + use<> {
        let record = self.record.map(|record| record.nonce);
        record
            .into_iter()
            .chain(self.ticket.map(|ticket| ticket.nonce))
    }

    pub(super) fn is_armed(&self) -> bool {
        matches!(self.life, Life::Armed(_))
    }
}

impl Client {
    pub(super) fn rank(&self, rank: u8) -> &Rank {
        &self.ranks[usize::from(rank)]
    }

    /// The rank at which it waits, and by which it has its turn.
    pub(super) fn lead(&self) -> u8 {
        let mut leads = LEADS.into_iter();
        leads.find(|rank| !self.rank(*rank).passed).unwrap_or(LEAD)
    }

    /// The ranks whose deadline has not passed.
    pub(super) fn live(&self) -> impl Iterator<Item = &Rank> {
        self.ranks.iter().filter(|rank| rank.left > 0)
    }

    pub(super) fn is_acquiring(&self) -> bool {
        self.phase == Phase::Acquiring
    }

    pub(super) fn holds(&self) -> bool {
        matches!(self.phase, Phase::Holding(_))
    }

    /// The token that its records shall have: the guard's, or the greatest granted.
    pub(super) fn token(&self) -> Option<Token> {
        match self.phase {
            Phase::Holding(token) => Some(token),
            Phase::Acquiring => self.live().filter_map(|rank| rank.token).max(),
            Phase::Idle | Phase::Lost => None,
        }
    }

    /// The nonce ends, and all that was known of it.
    pub(super) fn end(&mut self) {
        self.phase = Phase::Idle;
        self.ranks = Default::default();
        self.replaces = None;
        self.round = 0;
        self.behind = false;
        self.taken = false;
    }
}
