//! Every limit of this crate.

/// Fewest slots: one bit of the hash.
pub const SLOTS_MIN: u32 = 2;

/// Most slots, before they are multiplied by the replicas.
pub const SLOTS_MAX: u32 = 65_536;

/// Most shards in a membership. A bootstrap weighs every slot against every shard; at both limits
/// that is 67 million comparisons.
pub const SHARDS_MAX: usize = 1024;

/// Longest shard id, in bytes. Ids become parts of the names of environment variables.
pub const SHARD_ID_LEN_MAX: usize = 32;

/// Greatest weight; the least is 1.
pub const WEIGHT_MAX: u32 = 10_000;

/// Longest name of a zone, in bytes.
pub const ZONE_LEN_MAX: usize = 32;
