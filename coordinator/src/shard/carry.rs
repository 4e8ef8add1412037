//! The requests with which a mover carries counters to another shard with their slot, and their answers.
//!
//! ```text
//! seal at A ─► import at B ─► groups at A ─► copy_out ─► copy_in ─► arrive at B ─► drop_groups at A
//!                                 none left ─► admit at B: B applies their requests
//! ```
//!
//! A counter's segment, or an account's manifest, is stored in several parts, under one key. These parts are a
//! **group**. A group does not change while its slot is sealed, so several movers at once may copy it piece by piece. B
//! puts the pieces aside, under the move's epoch and the life of A from which they were copied, until all of them are
//! there: a life does not change a sealed group, but the next life may have less of it.
//!
//! **Most of a group is copied before the seal.** Old final answers are stored in blocks, each named by its content. A
//! mover copies the blocks while A still serves the group, and repeats that for new blocks; B puts them aside under
//! their names. After the seal it copies the blocks that B lacks, and all other parts. A block that A has dropped by
//! then does not arrive at B. When B seals a slot, it drops what was put aside for it: so a move that is turned back
//! leaves nothing.
//!
//! **Of two copies, which one counts?** Every group has the epoch at which it came to its shard, or was made there. The
//! epoch of each move is above all earlier ones. So the group that counts has the greatest epoch of all, even if others
//! exist at a shard that restarted from an old copy, after a move that was turned back, or after the death of a mover.
//! B replaces a group only by a later one; A drops a group only if B has it. So each step may be repeated at any time.

use ringfence_ring::Slot;
use ringfence_segment_lock::{
    RequestId,
    segment::{Credit, CreditId, Effect, Entry, Final, Segment},
};

use super::Cursor;
use crate::{
    ids::{Epoch, Life},
    name::LockKey,
};

/// Asks for some of the groups in slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskGroups {
    /// The epoch of the move.
    pub epoch: Epoch,
    /// The slots.
    pub slots: Vec<Slot>,
    /// The state in which the slots must be.
    pub when: When,
}

/// The slots that a request for groups concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Slots that are [`Sealed`](super::Mode::Sealed) or [`Shut`](super::Mode::Shut) at the epoch.
    Sealed,
    /// Slots that no step of the move has reached; of their groups, those with blocks or many open requests. From the
    /// end of the page
    /// before; `None`: from the start.
    Before(Option<Cursor>),
    /// Slots in any state; of their groups, those with a manifest or the first copy of one, without blocks. The epoch does not
    /// matter. From the end of the page before; `None`: from the start.
    Here(Option<Cursor>),
}

/// Some groups. If there is none, and no slot is refused, sealed slots have no group and get none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// About [`GROUPS_PAGE`](crate::limits::GROUPS_PAGE) of them, in no order.
    pub groups: Vec<Group>,
    /// Slots that are in another state. Their groups are not listed.
    pub refused: Vec<Slot>,
    /// The start of the next page. `None`: this was the last page.
    pub next: Option<Cursor>,
    /// Whether no manifest was ever lost at this shard.
    pub complete: bool,
}

/// A group that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The key.
    pub key: LockKey,
    /// When it came to the shard, or was made there. The greater epoch is the later one.
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
    /// The epoch of the move.
    pub epoch: Epoch,
    /// The key of the group.
    pub key: LockKey,
    /// The piece.
    pub what: Excerpt,
}

/// A piece of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excerpt {
    /// About [`COPY_ROWS`](crate::limits::COPY_ROWS) rows other than blocks, of a group whose slot is sealed, or shut,
    /// at the epoch. From the end of the piece before; `None`: from the start.
    Rows(Option<Cursor>),
    /// The same without the open requests.
    Rest(Option<Cursor>),
    /// About as many rows of open requests. From the end of the piece before: first all, then those that changed since
    /// the start. A piece without rows: nothing changed since. The slot may also be one that no step of the move has
    /// reached. No such piece: few requests are open, or not all changes are known; then a copy needs [`Rows`](Self::Rows).
    Open(Option<Cursor>),
    /// These blocks, as far as they exist. The slot may also be one that no step of the move has reached.
    Blocks(Vec<Block>),
}

/// About [`COPY_ROWS`](crate::limits::COPY_ROWS) rows of a group. All pieces together have every row, some of them
/// twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of rows of each kind in the whole group.
    pub sizes: Vec<u64>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The start of the next piece. `None`: this was the last piece.
    pub next: Option<Cursor>,
    /// The stamp of the whole group, in its last piece.
    pub stamp: Stamp,
}

/// A digest of a group's content, the same for a group and its copy. Empty: there is no group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp(pub Vec<u8>);

/// The source of a copied group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOf {
    /// The life that it was copied from.
    pub source: Life,
    /// Its stamp on arrival.
    pub stamp: Stamp,
}

/// A row of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// A manifest, and its version.
    Manifest(u64, String),
    /// A segment without the records of requests and credits.
    Segment(Box<Segment>),
    /// The record of a request.
    Id(RequestId, Entry),
    /// The record of a credit.
    Credit(CreditId, Credit),
    /// A final answer's place in the order in which they became final.
    Final(usize, Final),
    /// An effect, by its number.
    Effect(Effect),
    /// A row as stored on a server. A topology has either shards in memory or shards on servers, never both.
    Stored {
        /// The number of its part, as in the scripts.
        part: u8,
        /// Its field, its member, or its place.
        field: Vec<u8>,
        /// Its value, or its score.
        value: Vec<u8>,
    },
    /// A row that was copied, and is gone from the server now.
    Gone {
        /// The number of its part.
        part: u8,
        /// Its field, or its member.
        field: Vec<u8>,
    },
}

/// Puts a piece of a group aside, if its slot is [`Import`](super::Mode::Import), or open already, at `epoch`, or if no
/// step of the move has reached it. The pieces come in order and may be repeated. A piece that comes too early may be
/// put aside in part. The shard drops what was put aside after [`ASIDE_FOR`](crate::limits::ASIDE_FOR), and when it
/// seals the slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyIn {
    /// The epoch of the move.
    pub epoch: Epoch,
    /// The life from which it was copied. Pieces from different lives do not fit each other.
    pub source: Life,
    /// The group at its source, with the blocks that the mover asks about.
    pub group: Group,
    /// The piece.
    pub rows: Vec<Row>,
}

/// The answer to a [`CopyIn`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutAside {
    /// The piece is put aside. Of the blocks asked about, these are not.
    Lacks(Vec<Block>),
    /// The group, or a later one, has arrived. Nothing was done.
    Arrived,
    /// The slot does not come here by that move. Nothing was done.
    Refused,
}

/// Makes a group of the pieces put aside, if all of them are there. It replaces an older group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrive {
    /// The epoch of the move. It becomes the epoch of the group.
    pub epoch: Epoch,
    /// The life from which it was copied.
    pub source: Life,
    /// The group at its source.
    pub group: Group,
    /// The number of rows of each kind.
    pub sizes: Vec<u64>,
    /// Its stamp.
    pub stamp: Stamp,
}

/// The answer to an [`Arrive`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The group is here, by this call or an earlier one, and as durable as its account requires; or a later group is
    /// here. Its source, if it was copied.
    Here(Option<CopyOf>),
    /// Pieces are missing: copy it again.
    Incomplete,
    /// The content does not match the stamp. Nothing was done, and the pieces are dropped: copy it again.
    Differs,
    /// The slot does not come here by that move.
    Refused,
    /// The account requires every change to be on the disk, and the server does not sync each change. Nothing was done.
    NotOnDisk,
    /// The group is here, but too few replicas have it.
    TooFewReplicas {
        /// The number of replicas that certainly have it.
        replicas: u64,
        /// The required number.
        required: u64,
    },
}

/// Drops groups that have arrived at the next shard, from slots that are sealed, or shut, at `epoch`. A group must
/// still have the content that arrived, or the copy must come from another life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropGroups {
    /// The epoch of the move.
    pub epoch: Epoch,
    /// The keys, about [`GROUPS_PAGE`](crate::limits::GROUPS_PAGE) of them, each with the source of the group that is
    /// at the next shard now.
    pub groups: Vec<(LockKey, Option<CopyOf>)>,
}

/// The answer to a [`DropGroups`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Slots that do not leave by that move. None of their groups was dropped.
    pub refused: Vec<Slot>,
    /// Groups that were not dropped, because the group that arrived is not a copy of them.
    pub differ: Vec<LockKey>,
}

/// Declares that slots which come by `epoch` have all their counters: from now on the shard applies requests for these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admit {
    /// The epoch of the move.
    pub epoch: Epoch,
    /// The slots.
    pub slots: Vec<Slot>,
    /// [`Groups::complete`] at the shard that they come from.
    pub complete: bool,
}
