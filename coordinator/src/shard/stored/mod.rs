//! A group of a slot's counters as a server stores it: a segment, or an account's head, in parts.
//!
//! A group's parts lie under `<prefix>:#<key>:<part>`, where `<key>` is the text of its [`LockKey`](crate::name::LockKey),
//! `{slot}:namespace:key`. Every group of a slot is in the index `<prefix>:#{slot}`: a hash of the keys' texts, and of
//! the epoch of the move that each came by, 0 for one that was created there.
//!
//! The scripts in `redis/lua/segment` write these; this is what whoever moves, audits or tests a segment reads and writes.

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
pub const PARTS: [Part; 11] = [
    HEAD,
    SEGMENT,
    IDS,
    ORDER,
    CREDITS,
    CREDIT_ORDER,
    DUE,
    SENT,
    PINNED,
    OUT,
    INN,
];

/// An account's head: `version`, `text`, the `durability` it was written with, and the `origin` of the last write. One
/// without an origin is in doubt.
pub const HEAD: Part = hash("head");
/// A segment's numbers, terms and marks, by their names; a copy of the account's `head`; and its `origin`, which says
/// by whom it was written last: `synced 0|1 life place`. Where that is another life than the server's, the segment may be told that it came back:
/// whoever moves a group writes the origin of the server it comes to.
pub const SEGMENT: Part = hash("seg");
/// An id, and what became of it: its content's digest in 16 digits, or as many `-`; and its state.
pub const IDS: Part = hash("ids");
/// The same ids, as they came.
pub const ORDER: Part = list("order");
/// A credit's id, and what became of it: 16 digits, and `P` pinned, `F` forgettable, `N` refused.
pub const CREDITS: Part = hash("credits");
/// The same, as they came.
pub const CREDIT_ORDER: Part = list("credit_order");
/// Ids of held reservations, by deadline.
pub const DUE: Part = sorted("due");
/// Ids of transfers that are sent, in their order: all scores are 0.
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
    fn part(&self, part: Part) -> impl Iterator<Item = (&[u8], &[u8])> {
        let fields = self.0.get(part.name).into_iter().flatten();
        fields.map(|(field, value)| (&field[..], &value[..]))
    }

    fn value(&self, part: Part, field: &str) -> Option<&[u8]> {
        let value = self.0.get(part.name)?.get(field.as_bytes())?;
        Some(&value[..])
    }

    fn put(&mut self, part: Part, field: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        let fields = self.0.entry(part.name).or_default();
        fields.insert(field.into(), value.into());
    }
}
