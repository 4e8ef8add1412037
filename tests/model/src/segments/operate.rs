//! Operations at their home.

use super::{
    Ask, Kind, Rule, SegmentsModel, World,
    ledger::Told,
    network::{Answer, Request},
    state::{Entry, Land, Outcome, Phase},
};

impl SegmentsModel {
    /// A task's first request, or one of a later round with what it borrowed.
    pub(super) fn operate(&self, world: &mut World, task: u8, mut lands: Vec<Land>) {
        lands.sort_unstable();
        let home = self.home(world, task);
        world.task(task).lands = lands.clone();
        self.send(world, task, Phase::Operating, [(home, Ask::Operate(lands))]);
    }

    pub(super) fn operate_at(
        &self,
        world: &mut World,
        request: &Request,
        lands: &[Land],
    ) -> Answer {
        let Request {
            task,
            segment: home,
            layout,
            ..
        } = *request;
        let refused = self
            .recorded(world, request)
            .filter(|_| self.holds(Rule::IdsAreRemembered))
            .or_else(|| self.unfit(world, request))
            .or_else(|| self.too_old(world, request));
        if let Some(answer) = refused {
            return answer;
        }
        if world.segment(home).is_frozen_to(task) {
            return Answer::Busy;
        }
        for land in lands {
            self.land_at(world, home, *land);
        }
        let operation = self.config.operation(task);
        let caller = self.config.caller(task);
        let amount = operation.amount(caller.content);
        let segment = world.segment_mut(home);
        if operation.takes() && segment.money.value < amount {
            let is_old = layout < segment.layout && self.holds(Rule::ShortByTheLayout);
            return if is_old {
                Answer::Layout
            } else {
                Answer::Short(segment.money)
            };
        }
        let (change, outcome) = match operation.kind {
            Kind::Deposit => (amount, Outcome::Done),
            Kind::Deduct => (-amount, Outcome::Done),
            Kind::Reserve | Kind::Transfer { .. } => (-amount, Outcome::Held),
            Kind::Read => return Answer::Nothing,
        };
        segment.money.add(change);
        let content = Some(caller.content);
        segment.record(caller.operation, operation.time, Entry { outcome, content });
        if outcome == Outcome::Done {
            world.ledger.inside += change;
        }
        world.ledger.takes_effect(caller.operation, caller.content);
        Answer::Recorded(outcome)
    }

    /// The id is recorded, or was just now.
    pub(super) fn learns(&self, world: &mut World, task: u8, outcome: Outcome) {
        let caller = self.config.caller(task);
        let content = caller.content;
        let told = match (self.config.operation(task).kind, outcome) {
            (_, Outcome::Insufficient) => Told::Insufficient(content),
            (Kind::Transfer { .. }, Outcome::Held) => return self.credit(world, task),
            (Kind::Transfer { .. }, Outcome::Cancelled) => Told::Refused,
            (Kind::Transfer { .. }, _) => {
                self.forget_credit(world, task);
                Told::Ok(content)
            }
            (Kind::Reserve, Outcome::Confirmed | Outcome::Cancelled | Outcome::Expired) => {
                Told::Ended
            }
            _ => Told::Ok(content),
        };
        self.answer(world, task, told);
    }
}
