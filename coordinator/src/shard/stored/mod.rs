//! A group of a slot's counters as a server stores it: a segment, or an account's manifest, in parts.
//!
//! A group's parts lie under `<prefix>:#<key>:<part>`, where `<key>` is the text of its [`LockKey`](crate::name::LockKey),
//! `{slot}:namespace:key`. Every group of a slot is in the index `<prefix>:#{slot}`: a hash of the keys' texts, and of
//! the epoch of the move that each came by, 0 for one that was created there; and, if it came, the life that it was copied from
//! and the stamp that it arrived with, by spaces.
//!
//! The scripts in `redis/lua/counter/segment` write these; movers, audits and tests read and write segments with this.

mod segment;
pub(crate) mod texts;

use std::collections::BTreeMap;

/// What a part is.
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
    /// The end of its name.
    pub name: &'static str,
    /// What it is.
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

/// Every part that a group may have. One that has nothing in it is not there.
pub const PARTS: [Part; 12] = [
    MANIFEST, SEGMENT, IDS, ORDER, BLOCKS, TIMES, OPEN, DUE, SENT, PINNED, OUT, INN,
];

/// An account's manifest: `version`, `text`, the `durability` it was written with, and the `origin` of the last write. One
/// without an origin is in doubt.
pub const MANIFEST: Part = hash("manifest");
/// A segment's numbers, terms and marks, by their names; a copy of the account's `manifest`; and its `origin`, which says
/// by whom it was written last: `synced 0|1 life place`. Where that is another life than the server's, the segment may be told that it came back:
/// whoever moves a group writes the origin of the server it comes to.
pub const SEGMENT: Part = hash("seg");
/// The newest final answers, of requests and credits: the key, which is the id's time in six bytes and twelve of its digest; and the digest of the content in 8 bytes with a
/// letter: `D` done, `I` insufficient, `C` confirmed, `X` cancelled, `Y` cancelled before it came, `E` expired, `V` delivered,
/// `R` returned; of a credit `F` given, `N` refused.
pub const IDS: Part = hash("ids");
/// The same as records of 27 bytes, key and value, in the order in which they became final. Those of a batch are one
/// element, behind their least and their greatest time, of six bytes each.
pub const ORDER: Part = list("order");
/// Older final answers: blocks of thousands of records, each under the SHA-1 of its records, in hexadecimal.
pub const BLOCKS: Part = hash("blocks");
/// The names of blocks, by the ranks up to which they have keys: 2,048 times a time, and 11 bits of the digest. Blocks
/// share no ranks.
pub const TIMES: Part = sorted("times");
/// What is not final: the key, and the digest of the content with `H` and amount and deadline, `S` and amount and account;
/// of a credit `P` pinned.
pub const OPEN: Part = hash("open");
/// Keys of held reservations, by deadline.
pub const DUE: Part = sorted("due");
/// Ids of transfers that are sent, with their keys, in their order: all scores are 0.
pub const SENT: Part = sorted("sent");
/// Ids of credits that are pinned, in their order: all scores are 0.
pub const PINNED: Part = sorted("pinned");
/// A segment's number, and the last loan to it: `seq:amount`.
pub const OUT: Part = hash("out");
/// A segment's number, and that of the last loan that landed from there.
pub const INN: Part = hash("inn");

/// What a part holds: fields and values, or members and scores; or [`place`]s of a list, and what is there.
pub type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

/// A place in a list, as texts that have its order.
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
