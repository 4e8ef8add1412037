//! Restarts that lose something: a segment's last changes, or all of it. A person accepts the rest.

use super::{
    Kind, Rule, SegmentsModel, World,
    state::{Money, Outcome, Phase, Segment},
};

impl SegmentsModel {
    /// A segment comes back without its last `changes`.
    pub(super) fn lose(&self, world: &mut World, index: u8, changes: u8) {
        let before = world.clone();
        let mut dropped = world.earlier[usize::from(index)].drain(..usize::from(changes));
        let Some(earlier) = dropped.next_back() else {
            return;
        };
        drop(dropped);
        world.left.losses -= 1;
        let segment = world.segment_mut(index);
        let version = segment.money.version;
        *segment = earlier;
        segment.doubtful = true;
        if self.holds(Rule::LossRaisesTheVersion) {
            segment.money.version = version + 1;
        }
        if self.holds(Rule::LostTailIsDoubtful) {
            self.account_for_tail(world, &before, index);
        }
    }

    /// A server comes back without the segment.
    pub(super) fn vanish(&self, world: &mut World, index: u8) {
        let before = world.clone();
        world.left.vanishings -= 1;
        world.earlier[usize::from(index)].clear();
        let segment = world.segment_mut(index);
        *segment = Segment {
            gone: true,
            money: Money {
                version: segment.money.version + 1,
                ..Money::default()
            },
            ..Segment::new(false, 0)
        };
        self.account_for_all(world, &before, index);
    }

    /// A person takes the segment for what it is; one that is gone is made anew, empty.
    pub(super) fn accept(&self, world: &mut World, index: u8) {
        if world.segment(index).gone {
            *world.segment_mut(index) = self.made_anew(world, index);
        } else if world.segment(index).doubtful {
            let segment = world.segment_mut(index);
            segment.doubtful = false;
            segment.money.losses += 1;
        }
    }

    /// It has had every loan that its lenders made, and decided every id of before.
    fn made_anew(&self, world: &World, index: u8) -> Segment {
        let mut money = world.segment(index).money;
        if self.holds(Rule::AnewHasHadEveryLoan) {
            let others = money.landed.iter_mut().zip(&world.segments);
            others.for_each(|(landed, other)| *landed = other.money.version);
        }
        if self.breaks(Rule::AnewVersionFollowsTheClock) {
            money.version = 0;
        }
        money.losses = 1;
        let callers = self.config.callers.iter().zip(&world.tasks);
        let begun = callers.filter(|(_, task)| task.phase != Phase::Idle);
        let times =
            begun.map(|(caller, _)| self.config.operations[usize::from(caller.operation)].time);
        let mark = times.max().filter(|_| self.holds(Rule::AnewBeginsAtNow));
        Segment {
            money,
            mark: mark.unwrap_or(0),
            anew: mark.unwrap_or(0),
            ..Segment::new(true, 0)
        }
    }

    /// Keeps what a restart may bring back.
    pub(super) fn remember(&self, world: &mut World, before: &World) {
        if world.left.losses == 0 {
            return;
        }
        let segments = world.segments.iter().zip(&before.segments);
        for (earlier, (now, before)) in world.earlier.iter_mut().zip(segments) {
            let came_back = (now.doubtful && !before.doubtful) || now.gone || before.gone;
            if now != before && !came_back {
                earlier.insert(0, *before);
                earlier.truncate(usize::from(self.config.tail));
            }
        }
    }

    /// What the account forgets with a tail, it never did: what it lent, deducted or was given. Money that others have of
    /// it, or may yet bring it again, stays.
    fn account_for_tail(&self, world: &mut World, before: &World, index: u8) {
        let (was, now) = (*before.segment(index), *world.segment(index));
        let forgotten = |moved: fn(&Segment) -> i8| moved(&was) - moved(&now);
        let landed = forgotten(|segment| segment.landed_in_all);
        let lent = forgotten(|segment| segment.lent_in_all);
        let (mut regained, mut lost) = (landed, landed + lent);
        for (operation, asked) in (0..).zip(&self.config.operations) {
            let is_transfer = matches!(asked.kind, Kind::Transfer { .. });
            let amount = asked.amount(0);
            let entries = (was.entry(operation), now.entry(operation));
            let place = usize::from(operation);
            let credit_lost = was.credits[place].is_some() && now.credits[place].is_none();
            let fate = world.ledger.fate(operation);
            fate.in_doubt |= is_transfer && (entries.0 != entries.1 || credit_lost);
            if entries.0.is_some() && entries.1.is_none() {
                fate.effects = [0; 2];
                fate.told.clear();
                if is_transfer {
                    // Its destination may be asked for it yet.
                    regained += if fate.ends == 0 { amount } else { 0 };
                    lost += amount;
                }
            }
            if credit_lost {
                fate.ends = 0;
                let mut entries = world
                    .segments
                    .iter()
                    .map(|segment| segment.entry(operation));
                let held =
                    entries.any(|entry| entry.is_some_and(|entry| entry.outcome == Outcome::Held));
                // It may be asked for it again.
                regained += if held { 0 } else { amount };
                lost += amount;
            }
        }
        let change = self.total(world, false) - self.total(before, false);
        world.ledger.inside += change + regained;
        world.ledger.lost += lost;
    }

    /// Of a segment that is gone nothing comes back: neither what it had, nor what was in flight.
    fn account_for_all(&self, world: &mut World, before: &World, index: u8) {
        let was = before.segment(index);
        let mut had = was.money.value;
        for (operation, entry) in (0..).zip(was.entries) {
            let held = entry.filter(|entry| entry.outcome == Outcome::Held);
            let kind = |operation: u8| self.config.operations[usize::from(operation)].kind;
            if let Some(entry) = held.filter(|_| kind(operation) == Kind::Reserve) {
                had += self.amount_of(operation, entry);
            }
        }
        let change = self.total(world, true) - self.total(before, true);
        world.ledger.inside -= had;
        world.ledger.lost += -change - had;
    }
}
