//! The document of the whole shard.

use std::time::Duration;

use super::{end::End, sightings::Sightings, tokens::Tokens};
use crate::{
    clock::Moment,
    ids::{Epoch, Incarnation, MapVersion},
    shard::{Request, ShardError, SlotState},
};

/// The document of the whole shard, in one life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// No request of a lower incarnation takes effect in this life.
    pub(crate) fence: Option<Incarnation>,
    /// Incarnation, version and text of the newest topology record that the shard has seen.
    pub(crate) copy: Option<(Incarnation, u64, String)>,
    /// The greatest epoch that the shard has seen.
    pub(crate) epoch_seen: Epoch,
    /// The arming; `None` until this life is armed.
    pub(crate) armed: Option<Armed>,
}

/// The state of an armed life, apart from its slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Armed {
    /// The epoch of the arming.
    pub(crate) epoch: Epoch,
    pub(crate) tokens: Tokens,
    /// Nothing new is granted before it.
    pub(crate) grace: End,
    /// It concerns the slots that changed at this epoch or later: all of them after an arming, and otherwise those that
    /// were opened by force.
    pub(crate) grace_from: Epoch,
    /// When that grace was seen.
    pub(crate) seen: Sightings,
    /// The last epoch at which slots were opened by force, which began a grace.
    pub(crate) forced: Epoch,
    /// When a namespace was last declared. An acquire by an older view is refused.
    pub(crate) declared: MapVersion,
    /// The map version at which every slot is open and grace is over. Not below `declared`.
    pub(crate) quiet: Option<MapVersion>,
}

impl Head {
    /// The arming.
    pub(crate) fn armed(&self) -> Result<&Armed, ShardError> {
        self.armed.as_ref().ok_or(ShardError::Unarmed)
    }

    /// The arming, to change it.
    pub(crate) fn armed_mut(&mut self) -> Result<&mut Armed, ShardError> {
        self.armed.as_mut().ok_or(ShardError::Unarmed)
    }

    /// Limits the end of grace, as [`End::limit`] does.
    pub(crate) fn limit_grace(&mut self, now_ms: u64, slack_ms: u64) -> bool {
        let armed = self.armed.as_mut();
        armed.is_some_and(|armed| armed.grace.limit(now_ms, slack_ms))
    }

    /// Ends grace if it was seen, until `moment`, for longer than it was to last. Otherwise, with `sees`, it was seen at
    /// `moment`, if it runs at `now_ms`. Returns whether that changes anything.
    pub(crate) fn see_grace(&mut self, moment: &Moment, sees: bool, now_ms: u64) -> bool {
        let armed = self.armed.as_mut();
        armed
            .filter(|armed| armed.grace.runs(now_ms))
            .is_some_and(|armed| {
                if armed.seen.outlast(armed.grace, moment) {
                    armed.grace.end();
                    return true;
                }
                sees && armed.seen.add(moment)
            })
    }

    /// Refuses an incarnation below the fence. Otherwise the fence rises to it, whether the life is armed or not.
    pub(crate) fn raise_fence(&mut self, incarnation: Incarnation) -> Result<(), ShardError> {
        match self.fence {
            Some(fence) if incarnation < fence => Err(ShardError::Stale {
                fence: fence.to_string(),
            }),
            _ => {
                self.fence = Some(incarnation);
                Ok(())
            }
        }
    }

    /// Keeps a copy of a topology record if it is the newest, whether the life is armed or not. Refuses a record as
    /// [`raise_fence`](Self::raise_fence) does.
    pub(crate) fn see_record(
        &mut self,
        incarnation: Incarnation,
        (version, text): &(u64, String),
    ) -> Result<(), ShardError> {
        self.raise_fence(incarnation)?;
        if self.newest() < Some((incarnation, *version)) {
            self.copy = Some((incarnation, *version, text.clone()));
        }
        Ok(())
    }

    /// Incarnation and version of the newest topology record that the shard has seen.
    pub(super) fn newest(&self) -> Option<(Incarnation, u64)> {
        let copy = self.copy.as_ref();
        copy.map(|(incarnation, version, _)| (*incarnation, *version))
    }

    /// The shard has seen `epoch`.
    pub(crate) fn see_epoch(&mut self, epoch: Epoch) {
        self.epoch_seen = self.epoch_seen.max(epoch);
    }
}

impl Armed {
    /// How much is left of the grace that concerns `slot`.
    pub(crate) fn grace_left(&self, slot: SlotState, now_ms: u64) -> Duration {
        match slot.epoch < self.grace_from {
            true => Duration::ZERO,
            false => self.grace.left(now_ms),
        }
    }

    /// Whether records of earlier armings count.
    pub(crate) fn earlier_armings_count(&self, now_ms: u64) -> bool {
        self.grace_from == Epoch::default() && self.grace.runs(now_ms)
    }

    /// Whether a namespace was declared since the view of the sender of `request`. None was since a map at which the shard
    /// is quiet.
    pub(crate) fn is_outdated(&self, request: &Request) -> bool {
        !self.is_quiet(request.map) && request.declared < self.declared
    }

    /// Whether slots need no check for a request with a map of this version.
    pub(crate) fn is_quiet(&self, map: MapVersion) -> bool {
        map != MapVersion::UNKNOWN && self.quiet == Some(map)
    }
}
