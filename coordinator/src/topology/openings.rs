//! Slots that have an owner which has not opened them yet. Pure.

use std::{ops::Not, time::Duration};

use ringfence_ring::{ShardId, Slot};
use serde::{Deserialize, Serialize};

use super::{ShardName, Topology, TopologyError, slots};
use crate::{
    failpoint::{Rule, is_off},
    ids::{Epoch, MapVersion, Token},
    shard::{ForceOpen, Grace, Mode, Step},
};

/// Slots that a shard has to open: those that it has in place of a dead shard, by force; and slots of
/// new ranks. They move no further before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// The epoch of the change that declared the other shard dead, or the ranks new.
    pub epoch: Epoch,
    /// The epoch at which the slots are opened. `None`: as long as some process may use a view that contains the dead
    /// shard, which may confirm a token with any epoch that was allotted before. So this one is allotted later.
    pub opens: Option<Epoch>,
    /// The shard that owns them now.
    pub to: ShardName,
    /// The slots, in order.
    #[serde(with = "slots")]
    pub slots: Vec<Slot>,
    /// No shard had them before: nobody has to wait, and nothing is forced.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub first: bool,
}

impl Topology {
    /// Openings that wait until no process may use a view that contains the dead shard.
    pub fn awaiting_views(&self) -> impl Iterator<Item = &Opening> {
        let openings = self.openings.iter();
        openings.filter(|opening| opening.opens.is_none())
    }

    /// The record that lets the slots of the shard that was declared dead at `declared` be opened; `None` if
    /// nothing waits for that. No process may use a view from before any more: wait for
    /// [`Constants::views_last`](super::Constants::views_last) after the record was read.
    ///
    /// # Errors
    ///
    /// [`TopologyError::NoEpochs`].
    pub fn let_open(&self, declared: Epoch, unix: Duration) -> Result<Option<Self>, TopologyError> {
        let mut next = self.clone();
        (next.version, next.last_epoch) = (self.version + 1, self.next_epoch(unix)?);
        for opening in &mut next.openings {
            if opening.epoch == declared && opening.opens.is_none() {
                opening.opens = Some(match is_off(Rule::EpochAfterViews) {
                    true => declared,
                    false => next.last_epoch,
                });
            }
        }
        Ok((next.openings != self.openings).then_some(next))
    }

    /// The requests that open the slots that `shard` has in place of dead shards. Each has to be
    /// sent until it is answered. A refused slot belongs to another shard by a later record.
    pub fn force_opens(&self, shard: &ShardId) -> Vec<ForceOpen> {
        let force = |(opening, epoch): (&Opening, Epoch)| ForceOpen {
            incarnation: self.incarnation,
            copy: (self.version, self.encode()),
            epoch,
            slots: opening.slots.clone(),
            grace_for: self.constants.grace(),
        };
        self.forced(shard).map(force).collect()
    }

    /// The steps that open the slots of new ranks at `shard`. Each has to be sent until it is
    /// answered.
    pub fn first_opens(&self, shard: &ShardId) -> Vec<Step> {
        let its = self.openings_of(shard).filter(|opening| opening.first);
        its.map(|opening| Step {
            incarnation: self.incarnation,
            copy: (self.version, self.encode()),
            map: MapVersion::UNKNOWN,
            epoch: opening.epoch,
            mode: Mode::Open,
            slots: opening.slots.clone(),
            above: Token::new(opening.epoch, 0),
        })
        .collect()
    }

    /// The record after `shard` has opened its slots at `epoch`; `None` if that was recorded
    /// before.
    pub fn opened(&self, shard: &ShardId, epoch: Epoch) -> Option<Self> {
        let mut next = self.clone();
        next.openings
            .retain(|opening| opening.to.0 != *shard || opening.opens != Some(epoch));
        next.version += 1;
        (next.openings != self.openings).then_some(next)
    }

    /// How `shard` has to be armed while it has slots to open by force.
    pub(super) fn forced_grace(&self, shard: &ShardId) -> Option<Grace> {
        let mut forced = self.forced(shard);
        forced.next().map(|_| Grace::Full(self.constants.grace()))
    }

    /// What `shard` has to open by force, and at which epochs.
    fn forced(&self, shard: &ShardId) -> impl Iterator<Item = (&Opening, Epoch)> {
        let its = self.openings_of(shard).filter(|opening| !opening.first);
        its.filter_map(|opening| Some((opening, opening.opens?)))
    }

    pub(super) fn openings_of(&self, shard: &ShardId) -> impl Iterator<Item = &Opening> {
        let its = move |opening: &&Opening| opening.to.0 == *shard;
        self.openings.iter().filter(its)
    }
}
