//! The topology's record, and the order of records.

use crate::words::Token;

/// An epoch. Only its number is ever compared.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Epoch {
    pub(super) number: u8,
    /// Its purpose, which no participant knows.
    pub(super) meaning: Meaning,
}

/// What an epoch was allotted for.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    Founding,
    Move { from: u8, to: u8 },
    Life { shard: u8, life: u8 },
    Recovery(Incarnation),
}

/// Of a record: the greater beats every version of a lesser one.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Incarnation {
    pub(super) number: u8,
    /// Which engine chose it.
    pub(super) engine: u8,
}

/// A record's place in the order of records.
pub(super) type Version = (Incarnation, u8);

/// The topology's record.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    pub(super) incarnation: Incarnation,
    pub(super) number: u8,
    /// Which shard keeps it.
    pub(super) home: u8,
    /// In which life it was written there.
    pub(super) home_life: u8,
    /// The last epoch allotted.
    pub(super) last_epoch: u8,
    /// The owner of the slot.
    pub(super) owner: u8,
    pub(super) migration: Option<Migration>,
    pub(super) members: [Member; MEMBERS_MAX],
}

pub(super) const MEMBERS_MAX: usize = 3;

/// What the record says of a shard.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    pub(super) life: u8,
    /// Allotted to that life.
    pub(super) epoch: Epoch,
}

/// The slot on its way.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Migration {
    pub(super) from: u8,
    pub(super) to: u8,
    pub(super) epoch: Epoch,
}

/// A move as its movers know it. Each of them knows some of it: one that knows all is as many as
/// there can be.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mover {
    pub(super) migration: Migration,
    /// The record that its steps are done for: the first that has the move.
    pub(super) record: Record,
    /// The former shard is sealed, and had granted this last.
    pub(super) sealed: Option<Token>,
    pub(super) imported: bool,
    pub(super) empty: bool,
    pub(super) opened: bool,
    /// The version read before that, if it was the one in force.
    pub(super) opened_at: Option<Version>,
    pub(super) shut: bool,
}

impl Epoch {
    pub(super) const FOUNDING: Self = Self {
        number: 1,
        meaning: Meaning::Founding,
    };
}

impl Record {
    /// What the first shard keeps, once every member is armed.
    pub(super) fn founded(owner: u8) -> Self {
        let member = Member {
            life: 1,
            epoch: Epoch::FOUNDING,
        };
        Self {
            incarnation: Incarnation::default(),
            number: 1,
            home: 0,
            home_life: 1,
            last_epoch: 1,
            owner,
            migration: None,
            members: [member; MEMBERS_MAX],
        }
    }

    pub(super) fn version(&self) -> Version {
        (self.incarnation, self.number)
    }

    pub(super) fn member(&self, shard: u8) -> Member {
        self.members[usize::from(shard)]
    }

    /// The next version, which allots an epoch.
    pub(super) fn allot(&mut self, number: u8, meaning: Meaning) -> Epoch {
        self.last_epoch = number;
        Epoch { number, meaning }
    }
}

/// The newer of two.
pub(super) fn newest(one: Option<Record>, other: Option<Record>) -> Option<Record> {
    let records = [one, other].into_iter().flatten();
    records.max_by_key(Record::version)
}

impl Mover {
    pub(super) fn new(migration: Migration, record: Record) -> Self {
        Self {
            migration,
            record,
            sealed: None,
            imported: false,
            empty: false,
            opened: false,
            opened_at: None,
            shut: false,
        }
    }
}
