//! The record that replaces one that its home has lost.

use std::time::Duration;

use hashbrown::HashMap;

use super::{Home, Status, Topology, TopologyError, migration::moves_of};
use crate::ids::{Epoch, Incarnation, Life, MapVersion};

/// More versions than all members together can lose.
pub(super) const LOST_VERSIONS: u64 = 1 << 20;

/// A member's answer when its fence was raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Its present life.
    pub(super) life: Life,
    /// The epoch that life is armed with, if it is.
    pub(super) armed: Option<Epoch>,
    /// The greatest epoch that life was given.
    pub(super) epoch: Epoch,
}

impl Topology {
    /// The record that follows this one, the newest remaining, in a later incarnation.
    ///
    /// `answers` are the members', by address. Members that are attested dead have none, and keep
    /// their entries. A member that is not in the life that this record names, armed with the epoch
    /// that it names, has to be armed with an epoch above every one seen: a lost version may have
    /// replaced its life. Every move under way is planned again with that epoch, so that a step in
    /// the name of a lost version is below it. `after` is the greatest epoch of any other trace.
    ///
    /// The version skips [`LOST_VERSIONS`], so that it is above every lost version: shards and
    /// engines take equal versions of a shard's slots for equal slots.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NoEpochs`].
    pub(super) fn recovered(
        &self,
        incarnation: Incarnation,
        home: Home,
        answers: &HashMap<String, Answer>,
        after: Epoch,
        unix: Duration,
    ) -> Result<Self, TopologyError> {
        let seen = answers.values().map(|answer| answer.epoch);
        let seen = seen.max().unwrap_or_default().max(after);
        let epoch = Epoch::after(self.last_epoch.max(seen), unix).ok_or(TopologyError::NoEpochs)?;
        let mut next = self.clone();
        next.incarnation = incarnation;
        next.version += LOST_VERSIONS;
        // Shards may know of a declaration that began in a lost version.
        next.declared = MapVersion(next.version);
        next.status = Status::Active;
        next.home = home;
        next.last_epoch = epoch;
        let under_way = self.migrations.iter().cloned();
        let under_way = under_way.map(|migration| (migration.from, migration.to, migration.slots));
        next.migrations = moves_of(epoch, under_way);
        for entry in next.shards.values_mut() {
            let Some(answer) = answers.get(&entry.address) else {
                continue;
            };
            let is_as_it_was = answer.life == entry.life && answer.armed == Some(entry.epoch);
            if !is_as_it_was {
                (entry.epoch, entry.used) = (epoch, true);
            }
            entry.life = answer.life.clone();
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use ringfence_ring::{SlotCount, Weight};

    use super::*;
    use crate::{
        ids::ClientId,
        topology::{
            Blueprint, Constants, Founder, Migration, Namespaces, ShardName, found::shard_id,
        },
    };

    const UNIX: Duration = Duration::from_secs(1_735_689_600 + 100);

    fn topology() -> Topology {
        let founder = |index| Founder {
            id: shard_id(index),
            address: format!("memory:{index}"),
            life: Life::new(format!("life-{index}")),
            weight: Weight::ONE,
            zone: None,
        };
        let blueprint = Blueprint {
            id: 7,
            engine: ClientId(1),
            unix: UNIX,
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::default(),
            namespaces: Namespaces::default(),
            home: Home {
                address: "memory:0".into(),
                life: Life::new("life-0"),
            },
            founders: (0..3).map(founder).collect(),
        };
        Topology::found(blueprint).unwrap()
    }

    fn answer(index: usize, life: &str, armed: Option<u64>, epoch: u64) -> (String, Answer) {
        let (life, armed, epoch) = (Life::new(life), armed.map(Epoch), Epoch(epoch));
        (format!("memory:{index}"), Answer { life, armed, epoch })
    }

    fn recovered(answers: impl IntoIterator<Item = (String, Answer)>, after: u64) -> Topology {
        recovered_from(&topology(), answers, after)
    }

    fn recovered_from(
        topology: &Topology,
        answers: impl IntoIterator<Item = (String, Answer)>,
        after: u64,
    ) -> Topology {
        let incarnation = Incarnation {
            number: 11,
            engine: ClientId(2),
        };
        let home = Home {
            address: "memory:1".into(),
            life: Life::new("life-1"),
        };
        let answers = answers.into_iter().collect();
        let recovered = topology.recovered(incarnation, home, &answers, Epoch(after), UNIX);
        recovered.unwrap()
    }

    fn entry(topology: &Topology, index: usize) -> (&str, Epoch) {
        let entry = topology.shard(&shard_id(index)).unwrap();
        (entry.life.as_str(), entry.epoch)
    }

    #[test]
    fn it_is_the_next_version_in_a_later_incarnation() {
        let (before, after) = (topology(), recovered([], 0));
        assert_eq!(after.version, before.version + LOST_VERSIONS);
        assert!(after.version() > before.version());
        assert_eq!(after.home.address, "memory:1");
        assert_eq!((after.id, after.table), (before.id, before.table));
    }

    #[test]
    fn members_without_state_get_an_epoch_above_every_one_seen() {
        let founded = topology().last_epoch;
        let answers = [
            answer(0, "new-life-0", None, 0),
            answer(1, "life-1", Some(founded.0), 900),
            answer(2, "life-2", None, 0),
        ];
        let topology = recovered(answers, 500);
        assert_eq!(topology.last_epoch, Epoch(901));
        assert_eq!(entry(&topology, 0), ("new-life-0", Epoch(901)));
        assert_eq!(entry(&topology, 1), ("life-1", founded));
        assert_eq!(entry(&topology, 2), ("life-2", Epoch(901)));
        assert_eq!(recovered([], 500).last_epoch, Epoch(501));
        assert_eq!(recovered([], 0).last_epoch.0, founded.0 + 1);
    }

    /// It may be a life that was replaced in a lost version, or the life that replaced it: the
    /// answers cannot tell which.
    #[test]
    fn a_life_that_is_not_armed_as_named_gets_an_epoch_above_every_one_seen() {
        let founded = topology().last_epoch;
        let epochs = [founded.0 - 1, founded.0, founded.0 + 20];
        let other_lives = epochs.map(|armed| answer(2, "another-life", Some(armed), 40));
        let same_life =
            [founded.0 - 1, founded.0 + 1].map(|armed| answer(2, "life-2", Some(armed), 40));
        for answer in other_lives.into_iter().chain(same_life) {
            let life = answer.1.life.clone();
            let topology = recovered([answer], 0);
            assert_eq!(entry(&topology, 2), (life.as_str(), topology.last_epoch));
            assert!(topology.last_epoch > Epoch(40));
        }
    }

    #[test]
    fn every_move_under_way_is_planned_again_with_an_epoch_above_every_one_seen() {
        let mut before = topology();
        let migration = |epoch, listed, slots: [u32; 2]| Migration {
            epoch: Epoch(epoch),
            from: ShardName(shard_id(0)),
            to: ShardName(shard_id(1)),
            listed,
            slots: slots
                .map(|slot| SlotCount::default().slot(slot).unwrap())
                .to_vec(),
        };
        before.migrations = vec![migration(12, true, [1, 9]), migration(15, false, [2, 4])];
        before.last_epoch = Epoch(15);
        let after = recovered_from(&before, [answer(0, "life-0", Some(1), 700)], 0);
        assert_eq!(after.last_epoch, Epoch(701));
        let [again] = &after.migrations[..] else {
            panic!("one from a to b: {:?}", after.migrations)
        };
        assert_eq!((again.epoch, again.listed), (Epoch(701), false));
        let slots: Vec<_> = again.slots.iter().map(|slot| slot.index()).collect();
        assert_eq!(slots, [1, 2, 4, 9]);
        assert_eq!(
            (&again.from, &again.to),
            (&before.migrations[0].from, &before.migrations[0].to)
        );
    }

    #[test]
    fn a_member_attested_dead_stays_as_it_was() {
        let founded = topology().last_epoch;
        let topology = recovered([answer(1, "life-1", None, 10)], 0);
        assert_eq!(entry(&topology, 0), ("life-0", founded));
    }
}
