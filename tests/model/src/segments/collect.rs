//! Reads: how much there is in the whole account, at one instant.
//!
//! A first read of each, and a second one after the last of those was answered: where nothing has changed in
//! between, all was as it was seen at any instant between the two.

use super::{
    Ask, Kind, Rule, SegmentsModel, World,
    ledger::Told,
    network::{Answer, Request},
    state::{Money, Phase},
};

impl SegmentsModel {
    /// First reads of every segment that has not shown itself yet.
    pub(super) fn collect(&self, world: &mut World, task: u8) {
        let views = world.task(task).views;
        let layout = world.task(task).layout;
        let account = self.config.operation(task).account;
        let all = self.config.segments(account, layout);
        let unseen = all.filter(|segment| views[usize::from(*segment)].is_none());
        let asks = unseen.map(|segment| (segment, Ask::Collect { again: false }));
        self.send(world, task, Phase::CollectingFirst, asks);
        if world.task(task).awaits == 0 {
            self.has_collected(world, task);
        }
    }

    pub(super) fn collect_at(&self, world: &mut World, request: &Request) -> Answer {
        let freezes = (self.config.freezes_from).is_some_and(|from| request.round >= from);
        let segment = world.segment_mut(request.segment);
        if segment.doubtful && self.holds(Rule::LostTailIsDoubtful) {
            return Answer::Doubtful;
        }
        let is_old = request.layout < segment.layout && self.holds(Rule::CollectByTheLayout);
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

    /// An answer to a first read.
    pub(super) fn shown(&self, world: &mut World, request: &Request, money: Money) {
        let task = world.task(request.task);
        task.views[usize::from(request.segment)] = Some(money);
        if self.breaks(Rule::SecondReadsFollowEveryFirst) {
            // Still awaited, for its second.
            let ask = Ask::Collect { again: true };
            world.network.insert(Request {
                ask,
                ..request.clone()
            });
            return;
        }
        task.awaits &= !(1 << request.segment);
        if task.awaits == 0 {
            self.has_collected(world, request.task);
        }
    }

    /// An answer to a second read.
    pub(super) fn shown_again(&self, world: &mut World, request: &Request, money: Money) {
        let task = world.task(request.task);
        let first = task.views[usize::from(request.segment)];
        if first.is_none_or(|first| first.version != money.version) {
            return self.begin_anew(world, request.task, Vec::new());
        }
        task.awaits &= !(1 << request.segment);
        if task.awaits > 0 {
            return;
        }
        if self.breaks(Rule::SecondReadsFollowEveryFirst) && self.suffices(world, request.task) {
            return self.borrow(world, request.task);
        }
        self.conclude(world, request.task);
    }

    /// Every first read is answered.
    fn has_collected(&self, world: &mut World, task: u8) {
        let operation = self.config.operation(task);
        let reads = operation.kind == Kind::Read;
        if !reads && self.suffices(world, task) {
            return self.borrow(world, task);
        }
        let (layout, round) = (world.task(task).layout, world.task(task).round);
        let frozen = self.config.freezes_from.is_some_and(|from| round >= from);
        let enough = if reads {
            self.breaks(Rule::ExactTakesTwoReads)
        } else {
            self.breaks(Rule::InsufficientTakesTwoReads)
                || self.breaks(Rule::OthersAreReadAgain)
                || (self.breaks(Rule::FreezeProvesNothing) && frozen)
        };
        // Home is compared by refuse.
        let home = (!reads).then(|| self.home(world, task));
        let all = self.config.segments(operation.account, layout);
        let asked = all.filter(|segment| Some(*segment) != home && !enough);
        let asks = asked.map(|segment| (segment, Ask::Collect { again: true }));
        self.send(world, task, Phase::CollectingAgain, asks);
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

    /// What the first reads sum up to.
    fn seen(&self, world: &World, task: u8) -> i8 {
        let views = &world.tasks[usize::from(task)].views;
        let each = (0..).zip(views);
        let shown = each.filter_map(|(segment, collect)| Some((segment, collect.as_ref()?)));
        self.sum(shown, self.holds(Rule::InFlightIsSummed))
    }

    /// What an account has in truth.
    pub(super) fn whole(&self, world: &World, account: u8) -> i8 {
        let segments = self.config.segments(account, u8::MAX);
        let there = segments.filter(|segment| world.segment(*segment).is_there());
        let each = there.map(|segment| (segment, &world.segment(segment).money));
        self.sum(each, true)
    }
}
