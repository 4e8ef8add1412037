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

    /// The lenders, and their amounts, so that home has the missing money. No lender with a loan that has not landed. One that
    /// forgot loans that have landed is asked for the number after those.
    fn lenders(
        &self,
        shown: &Shown,
        (home, at_home): (u8, &Money),
        mut missing: i8,
    ) -> Vec<(u8, Ask)> {
        let mut asks = Vec::new();
        for (segment, money) in shown.iter().filter(|(segment, _)| *segment != home) {
            let landed = at_home.landed[usize::from(*segment)];
            let lent = money.lent[usize::from(home)].number;
            let overwrites = self.breaks(Rule::LendFollowsTheLanded);
            let last = if overwrites { lent } else { landed };
            let want = missing.min(money.value);
            let believes = self.holds(Rule::LenderBelievesTheLanded);
            if want > 0 && (lent == last || (lent < last && believes)) {
                missing -= want;
                let (to, number) = (home, last + 1);
                asks.push((*segment, Ask::Lend { to, number, want }));
            }
        }
        asks
    }

    pub(super) fn lend_at(
        &self,
        world: &mut World,
        request: &Request,
        (to, number, want): (u8, u8, i8),
    ) -> Answer {
        let segment = world.segment_mut(request.segment);
        if segment.doubtful && self.holds(Rule::LostTailIsDoubtful) {
            return Answer::Doubtful;
        }
        let last = segment.money.lent[usize::from(to)];
        let repeats = last.number == number;
        if repeats && self.holds(Rule::LendRepeatsItsAnswer) {
            return Answer::Lent(last);
        }
        let is_behind = last.number < number && segment.money.losses > 0;
        let believes = is_behind && self.holds(Rule::LenderBelievesTheLanded);
        if !repeats && last.number + 1 != number && !believes {
            return Answer::NotLent;
        }
        if segment.is_frozen_to(request.task) {
            return Answer::Busy;
        }
        let amount = want.min(segment.money.value);
        if amount <= 0 {
            return Answer::NotLent;
        }
        let lent = Lent { number, amount };
        let version = segment.money.version;
        segment.money.add(-amount);
        segment.money.lent[usize::from(to)] = lent;
        if self.config.loses() {
            segment.lent_in_all += amount;
        }
        if self.breaks(Rule::LendRaisesTheVersion) {
            segment.money.version = version;
        }
        let borrower = world.segment(to);
        // A request of before the loss: it landed, and the lender has forgotten that it lent it.
        let forgets = self.config.losses > 0 || self.config.vanishings > 1;
        let late = forgets && borrower.money.landed[usize::from(request.segment)] >= number;
        if borrower.gone || late {
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

    /// Lands it, if it is the next of its channel.
    pub(super) fn land_at(&self, world: &mut World, segment: u8, Land { from, lent }: Land) {
        if !self.lands(&world.segment(segment).money, from, lent.number)
            && self.holds(Rule::LandOnce)
        {
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

    /// Whether a loan of that number lands: the next one; where changes were lost, any greater one, since those in between
    /// may be what was lost.
    fn lands(&self, borrower: &Money, from: u8, number: u8) -> bool {
        let landed = borrower.landed[usize::from(from)];
        let skips = borrower.losses > 0 && self.holds(Rule::BorrowerSkipsTheLost);
        number == landed + 1 || (number > landed && skips)
    }

    /// The money in flight from one segment to another.
    fn in_flight(&self, (from, lender): (u8, &Money), (to, borrower): (u8, &Money)) -> i8 {
        let lent = lender.lent[usize::from(to)];
        if self.lands(borrower, from, lent.number) {
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
