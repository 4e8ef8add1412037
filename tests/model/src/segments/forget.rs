//! What can make no difference any more is forgotten, so that states that differ in nothing else
//! are one.

use super::{
    Ask, Request, Rule, SegmentsModel, World,
    state::{Credit, Entry, Outcome, Segment},
};

impl SegmentsModel {
    /// Called after every action.
    pub(super) fn forget(&self, world: &mut World) {
        if world.left.losses == 0 {
            world.earlier.fill(Vec::new());
        }
        let awaits = world.segments.iter().any(|segment| segment.awaits);
        if !awaits && self.holds(Rule::AcceptNamesTheVersion) {
            world.read = None;
        }
        let mut network = std::mem::take(&mut world.network);
        network.retain(|request| self.awaits(world, request) || !self.is_spent(world, request));
        world.network = network;
    }

    /// Whether it changes nothing, now or later. Without a rule, or with the manifest lost, requests may be applied again.
    /// With a tail lost, too: it must have been done in every state that the segment may go back to.
    fn is_spent(&self, world: &World, request: &Request) -> bool {
        if let Ask::Collect { .. } = request.ask {
            return self
                .config
                .freezes_from
                .is_none_or(|from| request.round < from);
        }
        if self.broken.is_some() || self.config.manifest_losses + world.left.vanishings > 0 {
            return false;
        }
        let earlier = &world.earlier[usize::from(request.segment)];
        let mut states = earlier.iter().chain([world.segment(request.segment)]);
        states.all(|segment| !segment.gone && self.is_spent_at(segment, request))
    }

    fn is_spent_at(&self, segment: &Segment, request: &Request) -> bool {
        let operation = self.config.caller(request.task).operation;
        let entry = segment.entry(operation);
        let credit = segment.credits[usize::from(operation)];
        let too_old = self.config.operation(request.task).time <= segment.mark;
        let is_final = |entry: Entry| entry.outcome != Outcome::Held;
        match &request.ask {
            Ask::Lend { to, landed, .. } => segment.money.lent[usize::from(*to)].number > *landed,
            Ask::Land(land) => segment.money.landed[usize::from(land.from)] >= land.lent.number,
            Ask::Operate(_) => entry.is_some() || too_old,
            Ask::Refuse { version } => {
                entry.is_some() || too_old || segment.money.version != *version
            }
            Ask::Credit => credit.is_some() || too_old,
            Ask::RefuseThere => segment.exists,
            Ask::FinishTransfer { .. } => entry.is_none_or(is_final),
            Ask::Forget => credit != Some(Credit::Pinned),
            Ask::Confirm | Ask::Cancel => entry.map_or(too_old, is_final),
            Ask::Collect { .. } => true,
        }
    }
}
