//! Borrowing: money that is elsewhere in the account goes home, through a channel between each two segments.

use super::{
    Ask, Land, Rule, SegmentsModel, World,
    network::{Answer, Request},
    state::{Lent, Money, Phase},
};

/// What the reads have shown, by segment.
type Shown = Vec<(u8, Money)>;

impl SegmentsModel {
    /// There is enough in the whole, and home is short.
    pub(super) fn borrow(&self, world: &mut World, task: u8) {
        let home = self.home(world, task);
        let views = std::mem::take(&mut world.task(task).views);
        let each = (0..).zip(views);
        let shown: Shown = each
            .filter_map(|(segment, collect)| Some((segment, collect?)))
            .collect();
        let Some((_, at_home)) = shown.iter().find(|(segment, _)| *segment == home).copied() else {
            return self.begin_anew(world, task, Vec::new());
        };
        let to_home = self.flights(&shown).filter(|(to, _)| *to == home);
        let lands: Vec<_> = to_home.map(|(_, land)| land).collect();
        let landing: i8 = lands.iter().map(|land| land.lent.amount).sum();
        let content = self.config.caller(task).content;
        let amount = self.config.operation(task).amount(content);
        let missing = amount - at_home.value - landing;
        let asks = self.lenders(&shown, (home, &at_home), missing);
        let nothing_home = asks.is_empty() && lands.is_empty();
        if nothing_home
            && self.holds(Rule::StrandedIsLanded)
            && let Some((to, land)) = self.flights(&shown).next()
        {
            return self.send(world, task, Phase::Landing, [(to, Ask::Land(land))]);
        }
        if asks.is_empty() {
            return self.begin_anew(world, task, lands);
        }
        world.task(task).lands = lands;
        self.send(world, task, Phase::Borrowing, asks);
    }

    /// The lenders, each with the number of the last loan that landed from it, and the amounts, so that home has the missing
    /// money. No lender with a loan that has not landed.
    fn lenders(
        &self,
        shown: &Shown,
        (home, at_home): (u8, &Money),
        mut missing: i8,
    ) -> Vec<(u8, Ask)> {
        let mut asks = Vec::new();
        for (segment, money) in shown.iter().filter(|(segment, _)| *segment != home) {
            let lent = money.lent[usize::from(home)].number;
            let landed = if self.breaks(Rule::LendFollowsTheLanded) {
                lent
            } else {
                at_home.landed[usize::from(*segment)]
            };
            let want = missing.min(money.value);
            let believes = self.holds(Rule::LenderBelievesTheLanded);
            if want > 0 && (lent == landed || (lent < landed && believes)) {
                missing -= want;
                let to = home;
                asks.push((*segment, Ask::Lend { to, landed, want }));
            }
        }
        asks
    }

    pub(super) fn lend_at(
        &self,
        world: &mut World,
        request: &Request,
        (to, landed, want): (u8, u8, i8),
    ) -> Answer {
        let segment = world.segment_mut(request.segment);
        if segment.doubtful && self.holds(Rule::LostTailIsDoubtful) {
            return Answer::Doubtful;
        }
        let last = segment.money.lent[usize::from(to)];
        if landed < last.number && self.holds(Rule::LendRepeatsItsAnswer) {
            return Answer::Lent(last);
        }
        if landed > last.number && self.breaks(Rule::LenderBelievesTheLanded) {
            return Answer::NotLent;
        }
        if segment.is_frozen_to(request.task) {
            return Answer::Busy;
        }
        let amount = want.min(segment.money.value);
        if amount <= 0 {
            return Answer::NotLent;
        }
        let version = segment.money.version;
        segment.money.add(-amount);
        let number = if self.holds(Rule::NumbersNeverRepeat) {
            segment.money.version
        } else {
            landed + 1
        };
        let lent = Lent { number, amount };
        segment.money.lent[usize::from(to)] = lent;
        if self.config.loses() {
            segment.lent_in_all += amount;
        }
        if self.breaks(Rule::LendRaisesTheVersion) {
            segment.money.version = version;
        }
        if !world.segment(to).is_there() {
            world.ledger.lost += amount;
        }
        Answer::Lent(lent)
    }

    /// An answer to lend; without money, the task goes on with what the others have lent.
    pub(super) fn lent(&self, world: &mut World, request: &Request, lent: Option<Lent>) {
        let task = world.task(request.task);
        task.awaits &= !(1 << request.segment);
        let from = request.segment;
        task.lands.extend(lent.map(|lent| Land { from, lent }));
        task.lands.sort_unstable();
        if task.awaits == 0 {
            let lands = std::mem::take(&mut task.lands);
            self.begin_anew(world, request.task, lands);
        }
    }

    /// By anyone, at any time.
    pub(super) fn land_alone(&self, world: &mut World, request: &Request, land: Land) -> Answer {
        let segment = world.segment(request.segment);
        if segment.doubtful && self.holds(Rule::LostTailIsDoubtful) {
            return Answer::Doubtful;
        }
        if segment.is_frozen_to(request.task) {
            return Answer::Busy;
        }
        self.land_at(world, request.segment, land);
        Answer::Landed
    }

    /// Lands it, if it is new in its channel.
    pub(super) fn land_at(&self, world: &mut World, segment: u8, Land { from, lent }: Land) {
        if !lands(&world.segment(segment).money, from, lent.number) && self.holds(Rule::LandOnce) {
            return;
        }
        let lender = world.segment(from).money;
        let in_flight = |world: &World| {
            self.in_flight((from, &lender), (segment, &world.segment(segment).money))
        };
        let before = in_flight(world);
        let loses = self.config.loses();
        let here = world.segment_mut(segment);
        let version = here.money.version;
        here.money.landed[usize::from(from)] = lent.number;
        here.money.add(lent.amount);
        if self.breaks(Rule::LandRaisesTheVersion) {
            here.money.version = version;
        }
        if loses {
            here.landed_in_all += lent.amount;
            // One that the lender forgot lands in the place of one that it made since.
            world.ledger.lost += (before - in_flight(world) - lent.amount).max(0);
        }
    }

    /// The money in flight from one segment to another.
    fn in_flight(&self, (from, lender): (u8, &Money), (to, borrower): (u8, &Money)) -> i8 {
        let lent = lender.lent[usize::from(to)];
        if lands(borrower, from, lent.number) {
            lent.amount
        } else {
            0
        }
    }

    /// The money in flight, and its destination.
    fn flights(&self, shown: &Shown) -> impl Iterator<Item = (u8, Land)> {
        let pairs = shown
            .iter()
            .flat_map(move |from| shown.iter().map(move |to| (from, to)));
        pairs.filter_map(|((from, lender), (to, borrower))| {
            let lent = lender.lent[usize::from(*to)];
            let amount = self.in_flight((*from, lender), (*to, borrower));
            (amount > 0).then_some((*to, Land { from: *from, lent }))
        })
    }

    /// The money at segments, and in flight between them.
    pub(super) fn sum<'a>(
        &self,
        of: impl Iterator<Item = (u8, &'a Money)> + Clone,
        in_flight: bool,
    ) -> i8 {
        let pairs = |here| of.clone().map(move |there| (here, there));
        let flying = |here: (u8, &'a Money)| -> i8 {
            let flights = pairs(here).filter(|_| in_flight);
            flights
                .map(|(here, there)| self.in_flight(here, there))
                .sum()
        };
        of.clone().map(|here| here.1.value + flying(here)).sum()
    }
}

/// Whether a loan of that number lands: if it is greater than the last one's.
fn lands(borrower: &Money, from: u8, number: u8) -> bool {
    number > borrower.landed[usize::from(from)]
}
