//! The topology record.

use std::collections::BTreeMap;

use ringfence_ring::{ShardId, Slot, Table};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{Constants, FailedShard, Goal, Migration, Namespaces, Opening};
use crate::{
    failpoint::{Rule, is_off},
    ids::{Epoch, Incarnation, Life, MapVersion},
    shard::{Arm, Counters, Grace, MarkQuiet, Mode, SlotState, SlotStates, keeps_counters},
};

/// Orders records: a later incarnation beats every version of an earlier one.
pub type Version = (Incarnation, u64);

/// The state of a topology's founding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Its members are being joined. Arms nothing.
    Creating,
    /// In use.
    Active,
}

/// The place of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Home {
    /// The server's address, without credentials.
    pub address: String,
    /// The life in which the record was written: in another life, the record may be an old copy.
    pub life: Life,
}

/// One shard, as the topology describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardEntry {
    /// Its address, without credentials.
    pub address: String,
    /// The life that may be armed.
    pub life: Life,
    /// The epoch allotted to that life.
    pub epoch: Epoch,
    /// Whether the shard may have been armed with `epoch`: the process that was allotted it arms
    /// the shard with it.
    pub used: bool,
    /// The version of the topology at which its own slots last changed.
    pub changed: MapVersion,
}

/// A process had a shard armed anew, because the shard's clock seemed to step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockAlarm {
    /// The label of the process.
    pub by: String,
    /// The least size of the step, forwards or back.
    pub by_ms: i64,
    /// When that was, by the wall clock of the process: seconds since 1970.
    pub unix_s: u64,
}

/// The topology record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// The topology's name: 32 hex digits, new for every attempt to found one.
    pub id: String,
    /// Its incarnation (`n`).
    pub incarnation: Incarnation,
    /// The number of changes.
    pub version: u64,
    /// The state of its founding.
    pub status: Status,
    /// The place of the record.
    pub home: Home,
    /// The epoch of its founding: every token of the topology is above it.
    pub founded: Epoch,
    /// The last epoch allotted.
    pub last_epoch: Epoch,
    /// Fixed at the founding.
    pub constants: Constants,
    /// Namespaces with a declared number of replicas.
    #[serde(default, skip_serializing_if = "Namespaces::is_empty")]
    pub namespaces: Namespaces,
    /// The namespace that is being declared: its locks are refused until that is done, or undone.
    #[serde(default, skip_serializing_if = "Namespaces::is_empty")]
    pub declaring: Namespaces,
    /// The version at which a declaration last began. A shard that knows it refuses acquires by older views.
    #[serde(default)]
    pub declared: MapVersion,
    /// The members.
    pub shards: BTreeMap<ShardName, ShardEntry>,
    /// The last alarm about the clock of each shard, in its present life.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub alarms: BTreeMap<ShardName, ClockAlarm>,
    /// The owner of each slot of every rank.
    #[serde(serialize_with = "table_to_hex", deserialize_with = "table_from_hex")]
    pub table: Table,
    /// The resize under way.
    pub goal: Option<Goal>,
    /// The migrating slots, by the moves of that resize or of an aborted one.
    pub migrations: Vec<Migration>,
    /// Slots of dead shards, and of ranks that are new, to be opened by the shards that have them now.
    pub openings: Vec<Opening>,
    /// Shards that were declared dead.
    pub failed: Vec<FailedShard>,
}

/// A shard's id, as the record spells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardName(pub ShardId);

impl Serialize for ShardName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for ShardName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        ShardId::new(&text).map(Self).map_err(D::Error::custom)
    }
}

impl Topology {
    /// This record's place in the order of records.
    pub fn version(&self) -> Version {
        (self.incarnation, self.version)
    }

    /// An epoch and an incarnation above this are unknown to this record.
    pub(super) fn greatest(&self) -> Epoch {
        self.last_epoch.max(Epoch(self.incarnation.number))
    }

    /// The entry of `shard`.
    pub fn shard(&self, shard: &ShardId) -> Option<&ShardEntry> {
        self.shards.get(&ShardName(shard.clone()))
    }

    /// A shard that keeps no counters, and its address: while there is one, nobody changes or creates any.
    pub fn locks_only(&self) -> Option<(&ShardId, &str)> {
        let shards = self.shards.iter();
        let mut shards = shards.map(|(name, entry)| (&name.0, &*entry.address));
        shards.find(|(_, address)| !keeps_counters(address))
    }

    /// Whether a [`Mover`](crate::mover::Mover) has work to do.
    pub fn is_under_way(&self) -> bool {
        self.goal.is_some() || !self.migrations.is_empty() || !self.openings.is_empty()
    }

    /// The move of `slot`, if it is migrating.
    pub fn migration_of(&self, slot: Slot) -> Option<&Migration> {
        let has = |migration: &&Migration| migration.slots.binary_search(&slot).is_ok();
        self.migrations.iter().find(has)
    }

    /// The opening of `slot`, if one is due.
    pub fn opening_of(&self, slot: Slot) -> Option<&Opening> {
        let has = |opening: &&Opening| opening.slots.binary_search(&slot).is_ok();
        self.openings.iter().find(has)
    }

    /// The record as text.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("strings, numbers and maps with text keys")
    }

    /// Reads a record's text.
    ///
    /// # Errors
    ///
    /// The error, in words.
    pub fn decode(text: &str) -> Result<Self, String> {
        let topology: Self =
            serde_json::from_str(text).map_err(|error| format!("topology record: {error}"))?;
        let refused = |reason| format!("topology record: {reason}");
        topology.check().map_err(refused)?;
        Ok(topology)
    }

    /// The request that arms `shard`'s life; with `grace`, unless it has slots to open by force.
    ///
    /// # Panics
    ///
    /// `shard` is not a member.
    pub fn arm(&self, shard: &ShardId, grace: Grace) -> Arm {
        let entry = self.shard(shard).expect("a member");
        // No change that this record knows may come late: the steps under way are taken from it.
        let mut slots = SlotStates::new(self.table.all_slots(), |slot| SlotState {
            mode: match self.table.owner(slot) == shard {
                true => Mode::Open,
                false => Mode::Shut,
            },
            epoch: self.last_epoch,
        });
        for migration in &self.migrations {
            let mode = match shard {
                shard if *shard == migration.from.0 => Mode::Sealed,
                shard if *shard == migration.to.0 => Mode::Import,
                _ => continue,
            };
            let epoch = migration.epoch;
            for &slot in &migration.slots {
                slots.set(slot, SlotState { mode, epoch });
            }
        }
        for Opening {
            opens, slots: its, ..
        } in self.openings_of(shard)
        {
            // Not before no view has the dead shard: its holders would come, and others might still get its locks.
            let mode = opens.map_or(Mode::Shut, |_| Mode::Open);
            let epoch = opens.unwrap_or(self.last_epoch);
            for &slot in its {
                slots.set(slot, SlotState { mode, epoch });
            }
        }
        Arm {
            declared: self.declared,
            topology: self.id.clone(),
            incarnation: self.incarnation,
            epoch: entry.epoch,
            token_epoch: match is_off(Rule::FreshTokens) {
                true => self.founded,
                false => self.last_epoch,
            },
            slots,
            counters: match (self.forced_grace(shard), grace) {
                (Some(_), _) => Counters::Lost,
                (None, Grace::Full(_)) => Counters::Kept,
                (None, Grace::LessUptime(_) | Grace::None) => Counters::Never,
            },
            grace: self.forced_grace(shard).unwrap_or(grace),
            copy: (self.version, self.encode()),
        }
    }

    /// The slots of `shard` that are not migrating.
    pub fn slots_at_rest(&self, shard: &ShardId) -> impl Iterator<Item = Slot> {
        let migrating = self.migrating();
        let slots = self.table.slots_of(shard);
        slots.filter(move |slot| !migrating[slot.index()])
    }

    /// The request that marks `shard` quiet at this version of its slots.
    ///
    /// # Panics
    ///
    /// `shard` is not a member.
    pub fn mark_quiet(&self, shard: &ShardId) -> MarkQuiet {
        let entry = self.shard(shard).expect("a member");
        MarkQuiet {
            incarnation: self.incarnation,
            copy: (self.version, self.encode()),
            map: entry.changed,
            slots: self.slots_at_rest(shard).collect(),
        }
    }
}

fn table_to_hex<S: Serializer>(table: &Table, serializer: S) -> Result<S::Ok, S::Error> {
    let digits = table.encode().into_iter().map(|byte| format!("{byte:02x}"));
    serializer.serialize_str(&digits.collect::<String>())
}

fn table_from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Table, D::Error> {
    let hex = String::deserialize(deserializer)?;
    let bytes = (0..hex.len()).step_by(2).map(|at| {
        hex.get(at..at + 2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
    });
    let bytes: Option<Vec<u8>> = bytes.collect();
    let bytes = bytes.ok_or_else(|| D::Error::custom("table: not pairs of hex digits"))?;
    Table::decode(&bytes).map_err(D::Error::custom)
}
