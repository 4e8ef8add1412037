//! Not enough in the whole account: recorded at home, like any other answer.

use super::{
    Ask, Rule, SegmentsModel, World,
    network::{Answer, Request},
    state::{Entry, Outcome, Phase},
};

impl SegmentsModel {
    pub(super) fn refuse(&self, world: &mut World, task: u8) {
        let home = self.home(world, task);
        let views = std::mem::take(&mut world.task(task).views);
        let version = views[usize::from(home)].map_or(0, |collect| collect.version);
        self.send(
            world,
            task,
            Phase::Refusing,
            [(home, Ask::Refuse { version })],
        );
    }

    pub(super) fn refuse_at(&self, world: &mut World, request: &Request, version: u8) -> Answer {
        let caller = self.config.caller(request.task);
        let stays = self.holds(Rule::RecordedStays);
        let recorded = self.recorded(world, request).filter(|_| stays);
        let refused = recorded
            .or_else(|| self.unfit(world, request))
            .or_else(|| self.outdated(world, request))
            .or_else(|| self.too_old(world, request));
        if let Some(answer) = refused {
            return answer;
        }
        let segment = world.segment_mut(request.segment);
        let compare = [
            Rule::InsufficientTakesTwoReads,
            Rule::HomesVersionIsCompared,
            Rule::FreezeProvesNothing,
        ];
        let compares = compare.into_iter().all(|rule| self.holds(rule));
        if compares && segment.money.version != version {
            return Answer::Changed;
        }
        let outcome = Outcome::Insufficient;
        if self.holds(Rule::InsufficientIsRecorded) {
            let time = self.config.operation(request.task).time;
            let content = Some(caller.content);
            segment.record(caller.operation, time, Entry { outcome, content });
        }
        world.ledger.untrue |= !world.ledger.seen[usize::from(request.task)].short;
        Answer::Recorded(outcome)
    }

    /// By an older layout no task knows all segments, at any time of the id.
    fn outdated(&self, world: &World, request: &Request) -> Option<Answer> {
        let is_old = request.layout < world.segment(request.segment).layout;
        (is_old && self.holds(Rule::ShortByTheLayout)).then_some(Answer::Layout)
    }
}
