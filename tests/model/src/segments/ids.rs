//! What every script about an id checks before it does anything, in this order.

use super::{
    Rule, SegmentsModel, World,
    network::{Answer, Request},
    state::Outcome,
};

impl SegmentsModel {
    /// Second: the money is not in doubt, and the segment knows the request's layout, as far as an id
    /// of that time goes.
    pub(super) fn unfit(&self, world: &World, request: &Request) -> Option<Answer> {
        let segment = world.segment(request.segment);
        let time = self.config.operation(request.task).time;
        let is_old = request.layout < segment.layout;
        let stays_home = request.layout >= segment.base && time < segment.from;
        if segment.doubtful && self.holds(Rule::LostTailIsDoubtful) {
            Some(Answer::Doubtful)
        } else if !segment.exists
            || (is_old && !stays_home && self.holds(Rule::PreparedRefusesNewIds))
        {
            Some(Answer::Layout)
        } else {
            None
        }
    }

    /// The same, unless the end of the request's reservation is recorded.
    pub(super) fn unfit_unless_ended(&self, world: &World, request: &Request) -> Option<Answer> {
        let operation = self.config.caller(request.task).operation;
        let entry = world.segment(request.segment).entry(operation);
        match entry {
            Some(entry) if entry.outcome != Outcome::Held => None,
            _ => self.unfit(world, request),
        }
    }

    /// First: a recorded answer comes before every refusal of the segment. In doubt only what is
    /// final: the end of anything else may be lost.
    pub(super) fn recorded(&self, world: &World, request: &Request) -> Option<Answer> {
        let caller = self.config.caller(request.task);
        let segment = world.segment(request.segment);
        let entry = segment.entry(caller.operation)?;
        let doubtful = segment.doubtful && self.holds(Rule::LostTailIsDoubtful);
        if doubtful && entry.outcome == Outcome::Held {
            return Some(Answer::Doubtful);
        }
        let same = entry
            .content
            .is_none_or(|content| content == caller.content);
        Some(if same || self.breaks(Rule::ContentIsCompared) {
            Answer::Recorded(entry.outcome)
        } else {
            Answer::Conflict
        })
    }

    /// Then: an id that is not recorded may have been recorded once.
    pub(super) fn too_old(&self, world: &World, request: &Request) -> Option<Answer> {
        let time = self.config.operation(request.task).time;
        let mark = world.segment(request.segment).mark;
        (time <= mark && self.holds(Rule::PurgeRaisesTheMark)).then_some(Answer::TooOld)
    }
}
