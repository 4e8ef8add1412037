//! The slots of a shard, by the topology in use.

use ringfence_ring::{ShardId, Slot};

use crate::{ids::MapVersion, topology::Topology};

/// The slots that a shard has and that are not migrating, and the version at which this last
/// changed.
#[derive(Debug)]
pub(crate) struct Map {
    version: MapVersion,
    /// The version at which a namespace was last declared.
    declared: MapVersion,
    /// One bit per slot.
    at_rest: Box<[u64]>,
}

impl Map {
    /// The map of `shard`, a member of `topology`.
    pub(crate) fn of(topology: &Topology, shard: &ShardId) -> Self {
        let words = topology.table.all_slots().len().div_ceil(64);
        let mut at_rest = vec![0; words];
        for slot in topology.slots_at_rest(shard) {
            let (word, bit) = place(slot);
            at_rest[word] |= bit;
        }
        Self {
            version: topology.shard(shard).expect("a member").changed,
            declared: topology.declared,
            at_rest: at_rest.into(),
        }
    }

    /// The version at which a namespace was last declared.
    pub(crate) fn declared(&self) -> MapVersion {
        self.declared
    }

    /// The map version for a request for a key of `slot`; none if the shard may not have the slot
    /// and has to look.
    pub(crate) fn version(&self, slot: Slot) -> MapVersion {
        let (word, bit) = place(slot);
        match self.at_rest[word] & bit {
            0 => MapVersion::UNKNOWN,
            _ => self.version,
        }
    }
}

fn place(slot: Slot) -> (usize, u64) {
    let (word, bit) = (slot.index() / 64, slot.index() % 64);
    (word, 1 << bit)
}
