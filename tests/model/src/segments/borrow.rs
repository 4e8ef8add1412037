//! Borrowing: money that is elsewhere in the account goes home, through a channel between each two segments.

use super::{
    Ask, Land, Rule, SegmentsModel, World,
    network::{Answer, Request},
    state::{Lent, Money, Phase},
};

/// What the looks have shown, by segment.
type Shown = Vec<(u8, Money)>;

impl SegmentsModel {
    /// There is enough in the whole, and home is short.
    pub(super) fn borrow(&self, world: &mut World, task: u8) {
        let home = self.home(world, task);
        let looks = std::mem::take(&mut world.task(task).looks);
        let each = (0..).zip(looks);
        let shown: Shown = each
            .filter_map(|(segment, look)| Some((segment, look?)))
            .collect();
        let Some((_, at_home)) = shown.iter().find(|(segment, _)| *segment == home).copied() else {
            return self.begin_anew(world, task, Vec::new());
        };
        let to_home = in_flight(&shown).filter(|(to, _)| *to == home);
        let lands: Vec<_> = to_home.map(|(_, land)| land).collect();
        let landing: i8 = lands.iter().map(|land| land.lent.amount).sum();
        let content = self.config.caller(task).content;
        let amount = self.config.operation(task).amount(content);
        let missing = amount - at_home.value - landing;
        let asks = self.lenders(&shown, (home, &at_home), missing);
        let nothing_home = asks.is_empty() && lands.is_empty();
        if nothing_home
            && self.holds(Rule::StrandedIsLanded)
            && let Some((to, land)) = in_flight(&shown).next()
        {
            return self.send(world, task, Phase::Landing, [(to, Ask::Land(land))]);
        }
        if asks.is_empty() {
            return self.begin_anew(world, task, lands);
        }
        world.task(task).lands = lands;
        self.send(world, task, Phase::Borrowing, asks);
    }

    /// Who is asked to lend, and how much, for home to have what is missing. Nobody, whose last has not landed.
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
            if want > 0 && lent == last {
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
        if !repeats && last.number + 1 != number {
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
        if self.breaks(Rule::LendRaisesTheVersion) {
            segment.money.version = version;
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
        let money = &mut world.segment_mut(segment).money;
        let landed = &mut money.landed[usize::from(from)];
        if *landed + 1 == lent.number || self.breaks(Rule::LandOnce) {
            *landed = lent.number;
            let version = money.version;
            money.add(lent.amount);
            if self.breaks(Rule::LandRaisesTheVersion) {
                money.version = version;
            }
        }
    }
}

/// What is on its way, and where to.
fn in_flight(shown: &Shown) -> impl Iterator<Item = (u8, Land)> {
    let pairs = shown
        .iter()
        .flat_map(move |from| shown.iter().map(move |to| (from, to)));
    pairs.filter_map(|((from, lender), (to, borrower))| {
        let amount = lender.in_flight(*from, *to, borrower);
        let number = borrower.landed[usize::from(*from)] + 1;
        let land = Land {
            from: *from,
            lent: Lent { number, amount },
        };
        (amount > 0).then_some((*to, land))
    })
}
