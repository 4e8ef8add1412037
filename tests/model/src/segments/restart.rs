//! Restarts that lose something: a segment's last changes, or all of it. A person accepts the rest.

use super::{
    Kind, Rule, SegmentsModel, World,
    state::{Money, Outcome, Phase, SEGMENTS_MAX, Segment},
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

    /// A person has an empty segment made in place of the one that is gone. It has decided every id of before. Which loans
    /// of the others have landed, it does not know yet.
    pub(super) fn replace(&self, world: &mut World, index: u8) {
        let mut money = world.segment(index).money;
        if self.breaks(Rule::AnewVersionFollowsTheClock) {
            money.version = 0;
        }
        *world.segment_mut(index) = Segment {
            money,
            anew: self.begun(world),
            doubtful: true,
            awaits: true,
            ..Segment::new(true, 0)
        };
    }

    /// The greatest time of an id that was ever asked for.
    fn begun(&self, world: &World) -> u8 {
        let callers = self.config.callers.iter().zip(&world.tasks);
        let begun = callers.filter(|(_, task)| task.phase != Phase::Idle);
        let operations =
            begun.map(|(caller, _)| &self.config.operations[usize::from(caller.operation)]);
        operations
            .map(|operation| operation.time)
            .max()
            .unwrap_or(0)
    }

    /// Once all replacements are made.
    pub(super) fn read_versions(&self, world: &mut World) {
        if world.each().any(|(_, segment)| segment.gone) {
            return;
        }
        let mut versions = [0; SEGMENTS_MAX];
        let there = versions.iter_mut().zip(&world.segments);
        there.for_each(|(version, segment)| *version = segment.money.version);
        world.read = Some(versions);
    }

    /// Whether a person may accept the segment: a replacement, iff it is the one that was read.
    pub(super) fn may_accept(&self, world: &World, index: u8) -> bool {
        let segment = world.segment(index);
        let is_as_read = |read: &[u8; SEGMENTS_MAX]| {
            read[usize::from(index)] == segment.money.version
                || self.breaks(Rule::AcceptNamesTheVersion)
        };
        segment.doubtful && (!segment.awaits || world.read.as_ref().is_some_and(is_as_read))
    }

    /// A person takes the segment for what it is. A replacement has decided every id of before, and has had every loan up to
    /// the versions that were read.
    pub(super) fn accept(&self, world: &mut World, index: u8) {
        let (read, begun) = (world.read.unwrap_or_default(), self.begun(world));
        let segment = world.segment_mut(index);
        if segment.awaits && self.holds(Rule::AnewHasHadEveryLoan) {
            segment.money.landed = read;
        }
        if segment.awaits && self.holds(Rule::AnewBeginsAtNow) {
            segment.mark = begun;
        }
        segment.awaits = false;
        segment.doubtful = false;
        segment.money.losses += 1;
    }

    /// A person replaces and accepts every segment.
    pub(super) fn accept_all(&self, world: &mut World) {
        let every = 0..world.segments.len() as u8;
        for index in every.clone() {
            if world.segment(index).gone {
                self.replace(world, index);
            }
        }
        self.read_versions(world);
        for index in every {
            if self.may_accept(world, index) {
                self.accept(world, index);
            }
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
        if now.awaits && !was.awaits {
            lost += in_flight_to(before, index);
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

/// The money that others have lent to the segment, and that has not landed.
fn in_flight_to(world: &World, index: u8) -> i8 {
    let landed = world.segment(index).money.landed;
    let last = world
        .segments
        .iter()
        .map(|other| other.money.lent[usize::from(index)]);
    let loans = last.zip(landed);
    let on_their_way = loans.filter(|(lent, landed)| lent.number > *landed);
    on_their_way.map(|(lent, _)| lent.amount).sum()
}
