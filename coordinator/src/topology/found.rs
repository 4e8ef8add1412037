//! The first record of a topology.

use std::{collections::BTreeMap, time::Duration};

use ringfence_ring::{Membership, RingError, ShardId, SlotCount, Table, Weight, Zone};

use super::{Constants, Home, Namespaces, ShardEntry, ShardName, Status, Topology, TopologyError};
use crate::ids::{ClientId, Epoch, Incarnation, Life, MapVersion};

/// The version of a topology's first record. It is the version at which every shard's slots last
/// changed.
const FIRST: u64 = 1;

/// A shard of a topology to be founded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founder {
    /// Its name.
    pub id: ShardId,
    /// Its address, without credentials.
    pub address: String,
    /// Its present life.
    pub life: Life,
    /// Its weight, relative to the other shards.
    pub weight: Weight,
    /// Its zone: two replicas of a lock are in distinct ones.
    pub zone: Option<Zone>,
}

/// The input of a founding.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// The topology's name: 128 random bits, new for every attempt.
    pub id: u128,
    /// The founding process.
    pub engine: ClientId,
    /// Wall time since 1970: epoch and incarnation follow it.
    pub unix: Duration,
    /// The greatest epoch with any trace left; [`Epoch::default`] for none.
    pub after: Epoch,
    /// The constants, which never change.
    pub constants: Constants,
    /// The number of slots.
    pub slots: SlotCount,
    /// Namespaces with a declared number of replicas.
    pub namespaces: Namespaces,
    /// The place of the record.
    pub home: Home,
    /// The members.
    pub founders: Vec<Founder>,
}

impl Topology {
    /// The first record of an active topology. One epoch arms all its shards.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Founding`]: no members, two members of one name, fewer members or zones than
    /// replicas, or constants out of range.
    /// [`TopologyError::NoEpochs`].
    pub fn found(blueprint: Blueprint) -> Result<Self, TopologyError> {
        let Blueprint {
            id,
            engine,
            unix,
            after,
            constants,
            slots,
            namespaces,
            home,
            founders,
        } = blueprint;
        constants.check().map_err(TopologyError::Founding)?;
        let epoch = Epoch::after(after, unix).ok_or(TopologyError::NoEpochs)?;
        let table = table(slots, &namespaces, &founders)?;
        let shards = founders
            .into_iter()
            .map(|founder| founder.enters(epoch))
            .collect();
        Ok(Self {
            id: format!("{id:032x}"),
            incarnation: Incarnation {
                number: epoch.0,
                engine,
            },
            version: FIRST,
            status: Status::Active,
            home,
            founded: epoch,
            last_epoch: epoch,
            constants,
            namespaces,
            declaring: Namespaces::default(),
            declared: MapVersion::UNKNOWN,
            shards,
            alarms: BTreeMap::new(),
            table,
            goal: None,
            migrations: Vec::new(),
            openings: Vec::new(),
            failed: Vec::new(),
        })
    }
}

impl Founder {
    /// Its entry, in a topology founded with `epoch`.
    fn enters(self, epoch: Epoch) -> (ShardName, ShardEntry) {
        let Self {
            id, address, life, ..
        } = self;
        (
            ShardName(id),
            ShardEntry {
                address,
                life,
                epoch,
                used: false,
                changed: MapVersion(FIRST),
            },
        )
    }
}

fn table(
    slots: SlotCount,
    namespaces: &Namespaces,
    founders: &[Founder],
) -> Result<Table, TopologyError> {
    if founders.is_empty() {
        return Err(TopologyError::Founding(
            "a topology has at least one shard".into(),
        ));
    }
    let refused = |error: RingError| TopologyError::Founding(error.to_string());
    let weights = founders
        .iter()
        .map(|founder| (founder.id.clone(), founder.weight));
    let zone_of = |id: &ShardId| {
        let mut founders = founders.iter();
        founders.find(|founder| founder.id == *id)?.zone.clone()
    };
    let membership = Membership::new(slots, weights)
        .and_then(|members| members.replicated(namespaces.most(), zone_of))
        .map_err(refused)?;
    Ok(Table::bootstrap(&membership))
}

/// The `index`th shard's id: a to z, then aa, ab and so on.
pub fn shard_id(index: usize) -> ShardId {
    let mut letters = Vec::new();
    let mut left = index + 1;
    while left > 0 {
        left -= 1;
        letters.push(char::from(b'a' + (left % 26) as u8));
        left /= 26;
    }
    let id: String = letters.into_iter().rev().collect();
    ShardId::new(&id).expect("1 to 14 letters")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blueprint(shards: usize) -> Blueprint {
        let founder = |index| Founder {
            id: shard_id(index),
            address: format!("memory:{index}"),
            life: Life::new(format!("life-{index}")),
            weight: Weight::ONE,
            zone: None,
        };
        Blueprint {
            id: 7,
            engine: ClientId(1),
            unix: Duration::from_secs(1_735_689_600 + 100),
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::default(),
            namespaces: Namespaces::default(),
            home: Home {
                address: "memory".into(),
                life: Life::new("home"),
            },
            founders: (0..shards).map(founder).collect(),
        }
    }

    #[test]
    fn shards_are_called_by_letters() {
        let names = [
            (0, "a"),
            (25, "z"),
            (26, "aa"),
            (27, "ab"),
            (701, "zz"),
            (702, "aaa"),
        ];
        for (index, name) in names {
            assert_eq!(shard_id(index).as_str(), name);
        }
    }

    #[test]
    fn one_epoch_of_the_clock_arms_all() {
        let topology = Topology::found(blueprint(3)).unwrap();
        assert_eq!(topology.last_epoch, Epoch(10));
        assert_eq!(topology.incarnation.number, 10);
        assert!(
            topology
                .shards
                .values()
                .all(|entry| entry.epoch == Epoch(10))
        );
        assert!(
            topology
                .shards
                .values()
                .all(|entry| entry.changed == MapVersion(1))
        );
        assert_eq!(Topology::decode(&topology.encode()).unwrap(), topology);
    }

    #[test]
    fn an_epoch_that_something_is_left_of_is_not_used_again() {
        let topology = Topology::found(Blueprint {
            after: Epoch(10),
            ..blueprint(1)
        })
        .unwrap();
        assert_eq!(
            (topology.last_epoch, topology.incarnation.number),
            (Epoch(11), 11)
        );
    }

    #[test]
    fn invalid_foundings_are_refused() {
        let shortest = Constants {
            max_lease_ms: 0,
            ..Constants::default()
        };
        let refused = [
            blueprint(0),
            Blueprint {
                constants: shortest,
                ..blueprint(1)
            },
        ];
        for blueprint in refused {
            let refused = Topology::found(blueprint);
            assert!(
                matches!(refused, Err(TopologyError::Founding(_))),
                "{refused:?}"
            );
        }
        let refused = Topology::found(Blueprint {
            after: Epoch(1 << 28),
            ..blueprint(1)
        });
        assert!(
            matches!(refused, Err(TopologyError::NoEpochs)),
            "{refused:?}"
        );
    }
}
