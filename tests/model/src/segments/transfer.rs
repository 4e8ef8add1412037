//! Transfers, once the money is held at the source: credit, finish, forget. By any task that finds it held.

use super::{
    Ask, Kind, Rule, SegmentsModel, World,
    network::{Answer, Request},
    state::{Credit, Outcome, Phase, Segment},
};

impl SegmentsModel {
    pub(super) fn credit(&self, world: &mut World, task: u8) {
        let to = self.destination(world, task);
        self.send(world, task, Phase::Crediting, [(to, Ask::Credit)]);
    }

    /// A caller that finds no account has its manifest refuse the credit, for good.
    pub(super) fn no_account(&self, world: &mut World, request: &Request) {
        if self.breaks(Rule::NoAccountRefuses) {
            return;
        }
        if self.breaks(Rule::RefusedInTheManifest) {
            return self.credited(world, request.task, false);
        }
        let asks = [(request.segment, Ask::RefuseThere)];
        self.send(world, request.task, Phase::RefusingThere, asks);
    }

    /// One swap of the manifest: iff there is no account still.
    pub(super) fn refuse_there(&self, world: &mut World, request: &Request) -> Answer {
        if world.segment(request.segment).exists {
            return Answer::Exists;
        }
        let time = self.config.operation(request.task).time;
        world.refused = world.refused.max(time);
        Answer::CreditRefused
    }

    /// The account is created.
    pub(super) fn create(&self, world: &mut World, index: u8) {
        let above = self.holds(Rule::CreatedAboveTheRefused);
        let mark = if above { world.refused } else { 0 };
        *world.segment_mut(index) = Segment {
            mark,
            ..Segment::new(true, 0)
        };
    }

    pub(super) fn credit_at(&self, world: &mut World, request: &Request) -> Answer {
        if self.config.absent == Some(request.segment) && !world.segment(request.segment).exists {
            return Answer::NoAccount;
        }
        let number = self.config.caller(request.task).operation;
        let operation = self.config.operation(request.task);
        match world.segment(request.segment).credits[usize::from(number)] {
            Some(Credit::Refused) => return Answer::CreditRefused,
            Some(_) if self.holds(Rule::CreditOnce) => return Answer::Credited,
            _ => {}
        }
        if let Some(answer) = self.unfit(world, request) {
            return answer;
        }
        let segment = world.segment_mut(request.segment);
        if operation.time <= segment.anew && self.holds(Rule::AnewMayHaveCredited) {
            world.ledger.fate(number).in_doubt = true;
            return Answer::Credited;
        }
        if operation.time <= segment.mark && self.holds(Rule::CreditAboveTheMark) {
            return Answer::CreditRefused;
        }
        let closed = self.config.closed == Some(request.segment);
        if !closed && segment.is_frozen_to(request.task) {
            return Answer::Busy;
        }
        if self.holds(Rule::EveryDecisionCounts) {
            segment.decided = segment.decided.max(operation.time);
        }
        let credit = if closed {
            Credit::Refused
        } else {
            Credit::Pinned
        };
        segment.credits[usize::from(number)] = Some(credit);
        if closed {
            return Answer::CreditRefused;
        }
        segment.money.add(operation.amount(0));
        world.ledger.fate(number).ends += 1;
        Answer::Credited
    }

    pub(super) fn credited(&self, world: &mut World, task: u8, credited: bool) {
        let home = self.home(world, task);
        if credited && self.breaks(Rule::ForgottenAfterTheFinish) {
            self.forget_credit(world, task);
        }
        self.send(
            world,
            task,
            Phase::Finishing,
            [(home, Ask::FinishTransfer { credited })],
        );
    }

    pub(super) fn finish_transfer_at(
        &self,
        world: &mut World,
        request: &Request,
        credited: bool,
    ) -> Answer {
        if let Some(answer) = self.unfit_unless_ended(world, request) {
            return answer;
        }
        let operation = self.config.caller(request.task).operation;
        let segment = world.segment_mut(request.segment);
        let Some(entry) = segment.entry(operation) else {
            return Answer::Unknown;
        };
        if entry.outcome != Outcome::Held {
            return Answer::Recorded(entry.outcome);
        }
        let outcome = if credited {
            Outcome::Confirmed
        } else if segment.is_frozen_to(request.task) {
            return Answer::Busy;
        } else {
            segment.money.add(self.amount_of(operation, entry));
            Outcome::Cancelled
        };
        segment.turn(operation, outcome);
        let fate = world.ledger.fate(operation);
        if credited && fate.in_doubt && fate.ends == 0 {
            world.ledger.lost += self.amount_of(operation, entry);
        }
        Answer::Recorded(outcome)
    }

    pub(super) fn forget_credit(&self, world: &mut World, task: u8) {
        let segment = self.destination(world, task);
        let layout = world.task(task).layout;
        world.network.insert(Request {
            task,
            round: 0,
            segment,
            layout,
            ask: Ask::Forget,
        });
    }

    pub(super) fn forget_at(&self, world: &mut World, request: &Request) -> Answer {
        let operation = self.config.caller(request.task).operation;
        let credit = &mut world.segment_mut(request.segment).credits[usize::from(operation)];
        if *credit == Some(Credit::Pinned) {
            *credit = Some(Credit::Unpinned);
        }
        Answer::Nothing
    }

    /// Where a transfer goes, as far as the task knows.
    fn destination(&self, world: &mut World, task: u8) -> u8 {
        let operation = *self.config.operation(task);
        let Kind::Transfer { to } = operation.kind else {
            return operation.homes[0];
        };
        self.home_among(world, task, to)
    }
}
