//! The stored form of a group of a slot's counters (a segment, or an account's manifest), in parts.
//!
//! A group's parts have the names `<prefix>:#<key>:<part>`, where `<key>` is the text of its
//! [`LockKey`](crate::name::LockKey), `{slot}:namespace:key`. Every group of a slot is in the index `<prefix>:#{slot}`.
//! This hash has the key's text, and with it the epoch of the move by which the group came, 0 for a group that was
//! created there. After the epoch, separated by spaces: the life from which it was copied, and its stamp on arrival.
//!
//! The scripts in `redis/lua/counter/segment` write these parts. Movers, audits and tests read and write segments with
//! this module.

mod effects;
mod segment;
pub(crate) mod texts;

use std::collections::BTreeMap;

pub use effects::{chunk, effects};
pub(crate) use effects::{push_change, reference_text};
pub use segment::is_always_said;

/// The type of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A hash.
    Hash,
    /// A list.
    List,
    /// A sorted set.
    Sorted,
}

/// A part of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The last piece of its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
}

const fn hash(name: &'static str) -> Part {
    let kind = Kind::Hash;
    Part { name, kind }
}

const fn list(name: &'static str) -> Part {
    let kind = Kind::List;
    Part { name, kind }
}

const fn sorted(name: &'static str) -> Part {
    let kind = Kind::Sorted;
    Part { name, kind }
}

/// Every part that a group may have. An empty part does not exist.
pub const PARTS: [Part; 14] = [
    MANIFEST, SEGMENT, IDS, ORDER, BLOCKS, TIMES, OPEN, DUE, SENT, PINNED, OUT, INN, LOG, PAGES,
];

/// An account's manifest: `version`, `text` in pieces, the `durability` with which it was written if it is not memory, and
/// the `origin` of the last write. A manifest without an origin is in doubt.
pub const MANIFEST: Part = hash("manifest");
/// A segment's numbers, terms and marks, by their names (one that is not there is 0 or empty, but see [`is_always_said`]); a copy of the account's `manifest`, in pieces; and the `origin` of the
/// last write: `synced 0|1 life place`. If that names another life than the server's, the server may have come back
/// with an older copy. So a mover that moves a group writes the origin of the server to which the group comes.
pub const SEGMENT: Part = hash("seg");
/// The newest final answers to requests and credits. The key has six bytes of the id's time and twelve of its digest.
/// The value has 8 bytes of the content's digest and a letter: `D` done, `I` insufficient, `C` confirmed, `X`
/// cancelled, `Y` cancelled before it came, `E` expired, `V` delivered, `R` returned; of a credit: `F` given, `N`
/// refused.
pub const IDS: Part = hash("ids");
/// The same as records of 27 bytes, key and value, in the order in which they became final. The records of a batch are
/// one element, which begins with their least and greatest times, six bytes each.
pub const ORDER: Part = list("order");
/// Older final answers and effects: blocks of thousands of records, each under the SHA-1 of its records, in hexadecimal.
pub const BLOCKS: Part = hash("blocks");
/// The names of blocks. The score is the greatest rank of a block's keys: 2,048 times a time, and 11 bits of the
/// digest. No two blocks share a rank.
pub const TIMES: Part = sorted("times");
/// Requests and credits that are not final: the key; and the digest of the content with `H`, amount and deadline; with
/// `S`, amount and account; or with `K`, the capture's id and the legs. Of a credit: `P` pinned; `Q` promised, amount and
/// time.
pub const OPEN: Part = hash("open");
/// Ids of held reservations, with their keys, by deadline.
pub const DUE: Part = sorted("due");
/// Ids of transfers and captures that are not finished, with their keys, in order. All scores are 0.
pub const SENT: Part = sorted("sent");
/// Ids of credits that are promised or pinned, with their keys, in their order: all scores are 0.
pub const PINNED: Part = sorted("pinned");
/// Per borrower segment: the last loan to it, `seq:amount`.
pub const OUT: Part = hash("out");
/// Per lender segment: the number of the last loan that landed from it.
pub const INN: Part = hash("inn");

/// The newest effects: chunks, which [`effects`] reads. The effects of a batch are one chunk.
pub const LOG: Part = list("log");
/// The names of the blocks of older effects, by the number of the first. A line with their number and the time of the
/// last one stands before the chunks.
pub const PAGES: Part = sorted("pages");

/// The content of a part: fields and values, members and scores, or [`place`]s of a list and their elements.
pub type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

/// A place in a list, as a text. The texts sort as the places do.
pub fn place(nth: usize) -> Vec<u8> {
    format!("{nth:010}").into_bytes()
}

/// A group, by the names of its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored(pub BTreeMap<&'static str, Fields>);

impl Stored {
    fn put(&mut self, part: Part, field: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        let fields = self.0.entry(part.name).or_default();
        fields.insert(field.into(), value.into());
    }
}
