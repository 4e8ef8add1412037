//! The record that takes the place of one whose home lost it.

use std::time::Duration;

use hashbrown::HashMap;

use super::{Home, Status, Topology, TopologyError, motion::moves_of};
use crate::ids::{Epoch, Incarnation, Life};

/// What a member answered when its fence was raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Its present life.
    pub(super) life: Life,
    /// Whether that life is armed.
    pub(super) armed: bool,
    /// The greatest epoch that life was given.
    pub(super) epoch: Epoch,
}

impl Topology {
    /// What follows this record, the newest that is left, in a later incarnation.
    ///
    /// `answers` are the members', by address; those that are attested dead have none, and stay as
    /// they are. Whoever has no state is to be armed with an epoch above every one seen, and every move
    /// under way is planned again with it: a step that somebody took in the name of a version that
    /// nothing is left of is below. `after` is the greatest epoch that anything else is left of.
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
        next.version += 1;
        next.status = Status::Active;
        next.home = home;
        next.last_epoch = epoch;
        let under_way = self.motions.iter().cloned();
        let under_way = under_way.map(|motion| (motion.from, motion.to, motion.slots));
        next.motions = moves_of(epoch, under_way);
        for entry in next.shards.values_mut() {
            let Some(answer) = answers.get(&entry.address) else {
                continue;
            };
            if !answer.armed {
                entry.epoch = epoch;
            } else if answer.life != entry.life {
                // Armed in the name of a version that nothing is left of.
                entry.epoch = answer.epoch;
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
        topology::{Blueprint, Constants, Founder, Motion, ShardName, found::shard_id},
    };

    const UNIX: Duration = Duration::from_secs(1_735_689_600 + 100);

    fn topology() -> Topology {
        let founder = |index| Founder {
            id: shard_id(index),
            address: format!("memory:{index}"),
            life: Life::new(format!("life-{index}")),
            weight: Weight::ONE,
        };
        let blueprint = Blueprint {
            id: 7,
            engine: ClientId(1),
            unix: UNIX,
            after: Epoch::default(),
            constants: Constants::default(),
            slots: SlotCount::default(),
            home: Home {
                address: "memory:0".into(),
                life: Life::new("life-0"),
            },
            founders: (0..3).map(founder).collect(),
        };
        Topology::found(blueprint).unwrap()
    }

    fn answer(index: usize, life: &str, armed: bool, epoch: u64) -> (String, Answer) {
        let (life, epoch) = (Life::new(life), Epoch(epoch));
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
        assert_eq!(after.version, before.version + 1);
        assert!(after.version() > before.version());
        assert_eq!(after.home.address, "memory:1");
        assert_eq!(
            (after.id, after.founded, after.table),
            (before.id, before.founded, before.table)
        );
    }

    #[test]
    fn members_without_state_get_an_epoch_above_every_one_seen() {
        let founded = topology().founded;
        let answers = [
            answer(0, "new-life-0", false, 0),
            answer(1, "life-1", true, 900),
            answer(2, "life-2", false, 0),
        ];
        let topology = recovered(answers, 500);
        assert_eq!(topology.last_epoch, Epoch(901));
        assert_eq!(entry(&topology, 0), ("new-life-0", Epoch(901)));
        assert_eq!(entry(&topology, 1), ("life-1", founded));
        assert_eq!(entry(&topology, 2), ("life-2", Epoch(901)));
        assert_eq!(recovered([], 500).last_epoch, Epoch(501));
        assert_eq!(recovered([], 0).last_epoch.0, founded.0 + 1);
    }

    #[test]
    fn a_life_armed_in_the_name_of_a_lost_version_keeps_its_epoch() {
        let topology = recovered([answer(2, "new-life-2", true, 40)], 0);
        assert_eq!(entry(&topology, 2), ("new-life-2", Epoch(40)));
    }

    #[test]
    fn every_move_under_way_is_planned_again_with_an_epoch_above_every_one_seen() {
        let mut before = topology();
        let motion = |epoch, listed, slots: [u32; 2]| Motion {
            epoch: Epoch(epoch),
            from: ShardName(shard_id(0)),
            to: ShardName(shard_id(1)),
            listed,
            slots: slots
                .map(|slot| SlotCount::default().slot(slot).unwrap())
                .to_vec(),
        };
        before.motions = vec![motion(12, true, [1, 9]), motion(15, false, [2, 4])];
        before.last_epoch = Epoch(15);
        let after = recovered_from(&before, [answer(0, "life-0", true, 700)], 0);
        assert_eq!(after.last_epoch, Epoch(701));
        let [again] = &after.motions[..] else {
            panic!("one from a to b: {:?}", after.motions)
        };
        assert_eq!((again.epoch, again.listed), (Epoch(701), false));
        let slots: Vec<_> = again.slots.iter().map(|slot| slot.index()).collect();
        assert_eq!(slots, [1, 2, 4, 9]);
        assert_eq!(
            (&again.from, &again.to),
            (&before.motions[0].from, &before.motions[0].to)
        );
    }

    #[test]
    fn whoever_is_attested_dead_stays_as_it_was() {
        let founded = topology().founded;
        let topology = recovered([answer(1, "life-1", true, 10)], 0);
        assert_eq!(entry(&topology, 0), ("life-0", founded));
    }
}
