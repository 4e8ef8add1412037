//! Looks: how much there is in the whole account, at one instant.
//!
//! A first look at each, and a second one after the last of those was answered: where nothing has changed in
//! between, all was as it was seen at any instant between the two.

use super::{
    Ask, Kind, Rule, SegmentsModel, World,
    ledger::Told,
    network::{Answer, Request},
    state::{Money, Phase},
};

impl SegmentsModel {
    /// First looks at every segment that has not shown itself yet.
    pub(super) fn look(&self, world: &mut World, task: u8) {
        let looks = world.task(task).looks;
        let layout = world.task(task).layout;
        let account = self.config.operation(task).account;
        let all = self.config.segments(account, layout);
        let unseen = all.filter(|segment| looks[usize::from(*segment)].is_none());
        let asks = unseen.map(|segment| (segment, Ask::Look { again: false }));
        self.send(world, task, Phase::LookingFirst, asks);
        if world.task(task).awaits == 0 {
            self.has_looked(world, task);
        }
    }

    pub(super) fn look_at(&self, world: &mut World, request: &Request) -> Answer {
        let freezes = (self.config.freezes_from).is_some_and(|from| request.round >= from);
        let segment = world.segment_mut(request.segment);
        if segment.doubtful && self.holds(Rule::LostTailIsDoubtful) {
            return Answer::Doubtful;
        }
        let is_old = request.layout < segment.layout && self.holds(Rule::LookByTheLayout);
        if !segment.exists || is_old {
            return Answer::Layout;
        }
        if freezes {
            if segment.is_frozen_to(request.task) {
                return Answer::Busy;
            }
            segment.frozen = Some(request.task);
        }
        Answer::Shown(segment.money)
    }

    /// An answer to a first look.
    pub(super) fn shown(&self, world: &mut World, request: &Request, money: Money) {
        let task = world.task(request.task);
        task.looks[usize::from(request.segment)] = Some(money);
        if self.breaks(Rule::SecondLooksFollowEveryFirst) {
            // Still awaited, for its second.
            let ask = Ask::Look { again: true };
            world.network.insert(Request {
                ask,
                ..request.clone()
            });
            return;
        }
        task.awaits &= !(1 << request.segment);
        if task.awaits == 0 {
            self.has_looked(world, request.task);
        }
    }

    /// An answer to a second look.
    pub(super) fn shown_again(&self, world: &mut World, request: &Request, money: Money) {
        let task = world.task(request.task);
        let first = task.looks[usize::from(request.segment)];
        if first.is_none_or(|first| first.version != money.version) {
            return self.begin_anew(world, request.task, Vec::new());
        }
        task.awaits &= !(1 << request.segment);
        if task.awaits > 0 {
            return;
        }
        if self.breaks(Rule::SecondLooksFollowEveryFirst) && self.suffices(world, request.task) {
            return self.borrow(world, request.task);
        }
        self.conclude(world, request.task);
    }

    /// Every first look is answered.
    fn has_looked(&self, world: &mut World, task: u8) {
        let operation = self.config.operation(task);
        let reads = operation.kind == Kind::Read;
        if !reads && self.suffices(world, task) {
            return self.borrow(world, task);
        }
        let (layout, round) = (world.task(task).layout, world.task(task).round);
        let frozen = self.config.freezes_from.is_some_and(|from| round >= from);
        let enough = if reads {
            self.breaks(Rule::ExactTakesTwoLooks)
        } else {
            self.breaks(Rule::InsufficientTakesTwoLooks)
                || self.breaks(Rule::OthersAreLookedAtAgain)
                || (self.breaks(Rule::FreezeProvesNothing) && frozen)
        };
        // Home is compared by refuse.
        let home = (!reads).then(|| self.home(world, task));
        let all = self.config.segments(operation.account, layout);
        let asked = all.filter(|segment| Some(*segment) != home && !enough);
        let asks = asked.map(|segment| (segment, Ask::Look { again: true }));
        self.send(world, task, Phase::LookingAgain, asks);
        if world.task(task).awaits == 0 {
            self.conclude(world, task);
        }
    }

    /// What was seen was so.
    fn conclude(&self, world: &mut World, task: u8) {
        if self.config.operation(task).kind != Kind::Read {
            return self.refuse(world, task);
        }
        let balance = self.seen(world, task);
        world.ledger.untrue |= !world.ledger.seen[usize::from(task)].has(balance);
        self.answer(world, task, Told::Exact);
    }

    /// Whether the whole account, as it was seen, has as much as the task needs.
    fn suffices(&self, world: &World, task: u8) -> bool {
        let content = self.config.caller(task).content;
        self.seen(world, task) >= self.config.operation(task).amount(content)
    }

    /// What the first looks sum up to.
    fn seen(&self, world: &World, task: u8) -> i8 {
        let looks = &world.tasks[usize::from(task)].looks;
        let each = (0..).zip(looks);
        let shown = each.filter_map(|(segment, look)| Some((segment, look.as_ref()?)));
        self.sum(shown, self.holds(Rule::InFlightIsSummed))
    }

    /// What an account has in truth.
    pub(super) fn whole(&self, world: &World, account: u8) -> i8 {
        let segments = self.config.segments(account, u8::MAX);
        let there = segments.filter(|segment| !world.segment(*segment).gone);
        let each = there.map(|segment| (segment, &world.segment(segment).money));
        self.sum(each, true)
    }
}
