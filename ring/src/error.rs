use crate::limits::{SHARD_ID_LEN_MAX, ZONE_LEN_MAX};
use crate::{Replicas, ShardId};

/// An error in an id, a number, a membership or an encoding. A repeat of the call cannot succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// Not `[a-z][a-z0-9_]*`, or with two underscores in a row, or too long.
    #[error(
        "shard id {value:?} must be [a-z][a-z0-9_]*, without \"__\", \
        of at most {SHARD_ID_LEN_MAX} bytes"
    )]
    ShardId {
        /// The refused id, cut off soon after the limit.
        value: String,
    },
    /// Not the name of a zone.
    #[error("zone {value:?} must be 1 to {ZONE_LEN_MAX} of a-z, 0-9, '-' and '_', a letter first")]
    Zone {
        /// The refused name, cut off soon after the limit.
        value: String,
    },
    /// Not a number of replicas.
    #[error("replicas is {value}, must be 1, 3 or 5")]
    Replicas {
        /// The refused number.
        value: u32,
    },
    /// Two replicas of a lock would be at one shard.
    #[error("shards is {shards}, must be at least the number of replicas, {replicas}")]
    FewerShardsThanReplicas {
        /// How many shards there are.
        shards: usize,
        /// How many replicas some namespace has.
        replicas: Replicas,
    },
    /// Two replicas of a lock would be in one zone. A shard without a zone counts as a zone.
    #[error("zones is {zones}, must be at least the number of replicas, {replicas}")]
    FewerZonesThanReplicas {
        /// How many zones there are.
        zones: usize,
        /// How many replicas some namespace has.
        replicas: Replicas,
    },
    /// A plan between tables with different numbers of replicas, or fewer replicas than before.
    #[error("replicas is {target} in the target, must be {table} as in the table")]
    ReplicasChanged {
        /// Replicas of the table.
        table: Replicas,
        /// Replicas of the target membership.
        target: Replicas,
    },
    /// A number outside its range.
    #[error("{field} is {value}, must be {min} to {max}")]
    OutOfRange {
        /// The name of the number.
        field: &'static str,
        /// The refused number.
        value: u64,
        /// The least allowed.
        min: u64,
        /// The greatest allowed.
        max: u64,
    },
    /// The number of slots is in range but not a power of two.
    #[error("slots is {value}, must be a power of two")]
    SlotsNotPowerOfTwo {
        /// The refused number.
        value: u32,
    },
    /// One id is given twice.
    #[error("shard id {id:?} is given twice, must be unique", id = id.as_str())]
    DuplicateShard {
        /// The id given twice.
        id: ShardId,
    },
    /// A shard would be left without a slot.
    #[error("shards is {shards}, must be at most the number of slots, {slots}")]
    MoreShardsThanSlots {
        /// How many shards were given.
        shards: usize,
        /// How many slots there are.
        slots: u32,
    },
    /// A plan between tables with different numbers of slots. The number is fixed for the life of a
    /// table.
    #[error("slots is {target} in the target, must be {table} as in the table")]
    SlotsChanged {
        /// Slots of the stored table.
        table: u32,
        /// Slots of the target membership.
        target: u32,
    },
    /// A shard is left out although it still owns slots.
    #[error("shard {id:?} owns {slots} slots, must be a member until it owns none", id = id.as_str())]
    OwnerLeft {
        /// The shard.
        id: ShardId,
        /// How many slots it owns.
        slots: u32,
    },
    /// A slot given to a shard that is not a member.
    #[error("shard {id:?} is not a member", id = id.as_str())]
    UnknownShard {
        /// The shard.
        id: ShardId,
    },
    /// The first bytes are not those of a slot table.
    #[error("encoding begins with {value:02x?}, must begin with {expected:02x?}")]
    Magic {
        /// The bytes found.
        value: [u8; 4],
        /// The bytes every slot table begins with.
        expected: [u8; 4],
    },
    /// Written by a newer release, or corrupt.
    #[error("encoding version is {value}, must be 1 to {newest}: written by a newer release?")]
    Version {
        /// The version found.
        value: u8,
        /// The newest version this release reads.
        newest: u8,
    },
    /// The encoding ends early.
    #[error("encoding ends after {len} bytes, {field} needs at least {needed}")]
    Truncated {
        /// The field that was being read.
        field: &'static str,
        /// Length of the encoding, in bytes.
        len: usize,
        /// Least length that holds the field, in bytes.
        needed: usize,
    },
    /// The encoding continues after its expected end.
    #[error("encoding is {len} bytes long, must be {expected}")]
    TrailingBytes {
        /// Length of the encoding, in bytes.
        len: usize,
        /// The length that its header and shards require, in bytes.
        expected: usize,
    },
    /// Some byte has changed since the table was encoded.
    #[error("digest is {value:016x}, must be {expected:016x}: corrupt encoding")]
    Digest {
        /// The digest stored.
        value: u64,
        /// The digest of the bytes before it.
        expected: u64,
    },
    /// Encoded ids out of order.
    #[error("shard id {id:?} is out of order, must be after {previous:?}",
        id = id.as_str(), previous = previous.as_str())]
    ShardOrder {
        /// The id out of order.
        id: ShardId,
        /// The id before it.
        previous: ShardId,
    },
    /// A slot that belongs to no shard of the table.
    #[error("owner of slot {slot} is {value}, must be less than the number of shards, {shards}")]
    Owner {
        /// The slot.
        slot: usize,
        /// Its owner's index.
        value: u16,
        /// How many shards there are.
        shards: usize,
    },
    /// Two replicas of a slot at one shard.
    #[error("slot {slot} is at shard {id:?}, as another replica of it is", id = id.as_str())]
    ReplicasTogether {
        /// The slot of the replica of higher rank.
        slot: usize,
        /// The shard.
        id: ShardId,
    },
    /// Bits after the last slot are set.
    #[error("padding after the last slot is {value:#04x}, must be 0")]
    Padding {
        /// The bits, lowest first.
        value: u8,
    },
}

impl RingError {
    /// Refuses `value` unless `min <= value <= max`.
    pub(crate) fn check(field: &'static str, value: u64, min: u64, max: u64) -> Result<(), Self> {
        match (min..=max).contains(&value) {
            true => Ok(()),
            false => Err(Self::OutOfRange {
                field,
                value,
                min,
                max,
            }),
        }
    }
}
