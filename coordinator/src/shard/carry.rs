//! Counters that change hands with their slot: what a mover does for them, and what it learns.
//!
//! ```text
//! seal at A ─► import at B ─► groups at A ─► copy_out ─► copy_in ─► arrive at B ─► drop_groups at A
//!                                 none left ─► admit at B: B applies their requests
//! ```
//!
//! The parts of a key's counter, a segment or a manifest, are one **group**. In a slot that is sealed it is frozen, so
//! it may be copied piece by piece, by several movers at once. What was copied is put aside at B, under the move's epoch
//! and the life it was copied from, until all of it is there: a life changes nothing of what it has frozen, but the
//! next may have less.
//!
//! **Most is copied before the seal.** Old final answers lie in blocks, each named by its content. A mover copies them while
//! the group is served, as often as there are new ones; B keeps them apart, under their names. After the seal it copies
//! the blocks that B lacks and all that is no block. A block that is gone at A by then does not arrive at B. A slot that B
//! seals in its turn drops what was put aside for it: so a move that is turned back leaves nothing.
//!
//! **Which of two is the one?** Every group has the epoch at which it came to its shard, or was made there. Each move's
//! is above all that were before, so the one group that counts has the greatest of all, even if a shard that restarted from
//! an old copy, a move that was turned back, or a mover that died has left elsewhere. B takes a group only for one that is
//! older; A drops one only when B has it. So it may all be done again, at any time.

use ringfence_ring::Slot;
use ringfence_segment_lock::{
    RequestId,
    segment::{Credit, CreditId, Entry, Final, Segment},
};

use super::Cursor;
use crate::{
    ids::{Epoch, Life},
    name::LockKey,
};

/// Asks for some of the groups that slots have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskGroups {
    /// Of the move.
    pub epoch: Epoch,
    /// Of which slots.
    pub slots: Vec<Slot>,
    /// Of which of these.
    pub when: When,
}

/// Which slots are asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Those that are [`Sealed`](super::Mode::Sealed) or [`Shut`](super::Mode::Shut) at the epoch.
    Sealed,
    /// Those that no step of the move has reached, and of their groups those that have blocks. From where the answer before
    /// ended; `None`: from the start.
    Before(Option<Cursor>),
}

/// Some groups. None of sealed slots, and no slot refused: the slots have none, nor will they.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// About [`GROUPS_PAGE`](crate::limits::GROUPS_PAGE) of them, whichever come first.
    pub groups: Vec<Group>,
    /// Slots that are in another state. Of these nothing is said.
    pub refused: Vec<Slot>,
    /// Where the next page begins. `None`: this was the last.
    pub next: Option<Cursor>,
}

/// A group that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The key.
    pub key: LockKey,
    /// When it came to the shard, or was made there: the greater is the later.
    pub since: Epoch,
    /// Its blocks.
    pub blocks: Vec<Block>,
}

/// The name of a block of final answers: the digest of its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block(pub Vec<u8>);

/// Asks for a piece of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOut {
    /// Of the move.
    pub epoch: Epoch,
    /// The key of the group.
    pub key: LockKey,
    /// Which piece.
    pub what: Excerpt,
}

/// A piece of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excerpt {
    /// About [`COPY_ROWS`](crate::limits::COPY_ROWS) rows that are no blocks, of a group whose slot is sealed, or shut, at
    /// the epoch. From where the piece before ended; `None`: from the start.
    Rows(Option<Cursor>),
    /// These blocks, or those of them that there are. The slot may also be one that no step of the move has reached.
    Blocks(Vec<Block>),
}

/// About [`COPY_ROWS`](crate::limits::COPY_ROWS) rows of a group. Piece by piece every row comes, some of them twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How many rows of each kind the whole group has.
    pub sizes: Vec<u64>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Where the next piece begins. `None`: this was the last.
    pub next: Option<Cursor>,
    /// Of the whole group, with its last piece.
    pub stamp: Stamp,
}

/// A digest of a group's content, the same for a group and its copy. Empty: there is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp(pub Vec<u8>);

/// What a group is a copy of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOf {
    /// The life that it was copied from.
    pub source: Life,
    /// The stamp that it had when it arrived.
    pub stamp: Stamp,
}

/// A row of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// A manifest, and its version.
    Manifest(u64, String),
    /// A segment, but what it remembers of requests and credits.
    Segment(Box<Segment>),
    /// What it remembers of a request.
    Id(RequestId, Entry),
    /// What it remembers of a credit.
    Credit(CreditId, Credit),
    /// A final answer's place in the order in which they became final.
    Final(usize, Final),
    /// A row as a server keeps it. Shards in memory and on servers are never members of one topology.
    Stored {
        /// Of which part, as its scripts count them.
        part: u8,
        /// Its field, its member, or its place.
        field: Vec<u8>,
        /// Its value, or its score.
        value: Vec<u8>,
    },
}

/// Puts a piece of a group aside, where its slot is [`Import`](super::Mode::Import), or open already, at `epoch`, or where
/// no step of the move has reached it. Pieces come in their order, perhaps more than once; of one that comes too early
/// some may be left out. What is put aside is
/// forgotten after [`ASIDE_FOR`](crate::limits::ASIDE_FOR), and when its slot is sealed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyIn {
    /// Of the move.
    pub epoch: Epoch,
    /// The life that it was copied from: pieces of two do not fit each other.
    pub source: Life,
    /// The group as it is there; of its blocks those that are asked for.
    pub group: Group,
    /// The piece.
    pub rows: Vec<Row>,
}

/// What came of a [`CopyIn`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutAside {
    /// It is put aside; of the blocks asked for these are not.
    Lacks(Vec<Block>),
    /// The group, or a later one, has arrived. Nothing was done.
    Arrived,
    /// The slot does not come here by that move. Nothing was done.
    Refused,
}

/// Makes a group of what was put aside, if all of it was, in the place of one that is older.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrive {
    /// Of the move, and of the group from now on.
    pub epoch: Epoch,
    /// The life that it was copied from.
    pub source: Life,
    /// The group as it is there.
    pub group: Group,
    /// How many rows of each kind it has.
    pub sizes: Vec<u64>,
    /// Its stamp.
    pub stamp: Stamp,
}

/// What came of an [`Arrive`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The group is here, by this call or an earlier one, and as durable as its account asks for; or one that is
    /// later. If it was copied: of what.
    Here(Option<CopyOf>),
    /// Some of it is missing: copy it again.
    Incomplete,
    /// It has other content than the stamp says. Nothing was done, and what was put aside is dropped: copy it again.
    Differs,
    /// The slot does not come here by that move.
    Refused,
    /// Its account asks for every change to be on the disk, and the server does not sync each. Nothing was done.
    NotOnDisk,
    /// It is here, and too few replicas have it.
    TooFewReplicas {
        /// How many have it for certain.
        replicas: u64,
        /// How many must.
        required: u64,
    },
}

/// Drops groups that have arrived where their slots go, where these are sealed, or shut, at `epoch`: if they still have the content that
/// arrived, or that was copied from another life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropGroups {
    /// Of the move.
    pub epoch: Epoch,
    /// Whose, about [`GROUPS_PAGE`](crate::limits::GROUPS_PAGE) of them, and what the group is a copy of that is there now.
    pub groups: Vec<(LockKey, Option<CopyOf>)>,
}

/// What came of a [`DropGroups`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Slots that do not leave by that move. Of these nothing was dropped.
    pub refused: Vec<Slot>,
    /// Groups that are not dropped: what arrived is no copy of them.
    pub differ: Vec<LockKey>,
}

/// Says that slots which come by `epoch` have all their counters: what is asked of these is done from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admit {
    /// Of the move.
    pub epoch: Epoch,
    /// Which slots.
    pub slots: Vec<Slot>,
}
