//! The head of the first account: which segments it has, from which ids on, and the plan of a new layout.

use super::{
    Rule, SegmentsModel, World,
    state::{Phase, Segment},
};

/// The record that lists the layouts. Changed by compare-and-swap.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Head {
    /// Every plan that ever was: somebody may still prepare for it. The first is number 1.
    pub(super) plans: Vec<Plan>,
    /// The one that is not in force yet.
    pub(super) pending: Option<u8>,
    /// Those in force, in their order.
    pub(super) layouts: Vec<u8>,
}

/// A layout with all segments.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Plan {
    /// What was in force as it was planned.
    pub(super) base: u8,
    /// The time of ids from which it is to be in force.
    pub(super) from: u8,
}

impl Head {
    pub(super) fn plan(&self, number: u8) -> Plan {
        self.plans[usize::from(number) - 1]
    }

    pub(super) fn newest(&self) -> u8 {
        self.layouts.last().copied().unwrap_or(0)
    }
}

impl SegmentsModel {
    /// The home of a task's operation, by the layout that it goes by.
    pub(super) fn home(&self, world: &World, task: u8) -> u8 {
        self.home_among(world, task, self.config.operation(task).homes)
    }

    /// Of a home in the first layout and one in the later ones, the one in force at the id's time.
    pub(super) fn home_among(&self, world: &World, task: u8, homes: [u8; 2]) -> u8 {
        let Head { layouts, .. } = &world.head;
        let layout = world.tasks[usize::from(task)].layout;
        let time = self.config.operation(task).time;
        let newest = self.breaks(Rule::HomeByTheIdsTime);
        let later = (layouts.iter())
            .any(|known| *known <= layout && (newest || world.head.plan(*known).from <= time));
        homes[usize::from(later)]
    }

    /// The time of the next plan, if there may be one: nothing is planned, or it cannot come into force.
    pub(super) fn next_plan(&self, world: &World) -> Option<u8> {
        let stuck = |number| {
            let mut parts = self.parts(world);
            parts.any(|(_, segment)| self.is_refused(world, segment, number))
        };
        let may = world.head.pending.is_none_or(stuck);
        let next = self.config.plans.get(world.head.plans.len());
        next.copied().filter(|_| may)
    }

    /// A layout from that time on.
    pub(super) fn plan(&self, world: &mut World, from: u8) {
        let keeps = self.holds(Rule::BaseIsKept);
        let base = if keeps { world.head.newest() } else { 0 };
        world.head.plans.push(Plan { base, from });
        world.head.pending = Some(world.head.plans.len() as u8);
    }

    /// A segment is made, or told, in the name of any plan that somebody may have read.
    pub(super) fn prepare(&self, world: &mut World, number: u8, index: u8) {
        let Plan { base, from } = world.head.plan(number);
        let Segment { exists, layout, .. } = *world.segment(index);
        if layout >= number || self.is_refused(world, world.segment(index), number) {
            return;
        }
        let takes_any = self.breaks(Rule::HomeByTheIdsTime);
        let new = Segment {
            mark: if takes_any { 0 } else { from - 1 },
            ..Segment::new(true, 0)
        };
        let segment = world.segment_mut(index);
        let before = if exists { *segment } else { new };
        *segment = Segment {
            layout: number,
            base,
            from,
            ..before
        };
    }

    /// Whether it would have had to be prepared earlier.
    fn is_refused(&self, world: &World, segment: &Segment, number: u8) -> bool {
        let Plan { from, .. } = world.head.plan(number);
        let decided = segment.decided >= from && self.holds(Rule::PrepareComparesDecided);
        let marked = segment.mark >= from && self.holds(Rule::PrepareComparesTheMark);
        segment.exists && segment.layout < number && (decided || marked)
    }

    /// Whether the plan may come into force.
    pub(super) fn is_prepared(&self, world: &World) -> bool {
        let early = self.breaks(Rule::PreparedBeforeCommit);
        let pending = world.head.pending;
        pending.is_some_and(|number| {
            let mut parts = self.parts(world);
            early || parts.all(|(_, segment)| segment.layout >= number)
        })
    }

    pub(super) fn commit(&self, world: &mut World) {
        if self.is_prepared(world) {
            let pending = world.head.pending.take();
            world.head.layouts.extend(pending);
        }
    }

    /// A task that was told to go by a newer layout has read it.
    pub(super) fn reread(&self, world: &mut World, task: u8) {
        world.task(task).layout = world.head.newest();
        self.begin_anew(world, task, Vec::new());
    }

    pub(super) fn may_reread(&self, world: &World, task: u8) -> bool {
        let task = &world.tasks[usize::from(task)];
        task.phase == Phase::Outdated && world.head.newest() > task.layout
    }

    /// The first account's segments.
    pub(super) fn parts<'a>(&self, world: &'a World) -> impl Iterator<Item = (u8, &'a Segment)> {
        let parts = self.config.segments(0, u8::MAX);
        parts.map(move |index| (index, world.segment(index)))
    }
}
