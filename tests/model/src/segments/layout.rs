//! The manifest of the first account: which segments it has, from which ids on, and the plan of a new layout.

use super::{
    Rule, SegmentsModel, World,
    state::{Phase, Segment},
};

/// The record that lists the layouts. Changed by compare-and-swap.
#[derive(Clone, Debug, Default, Hash, PartialEq, Eq)]
pub(super) struct Manifest {
    /// Every plan that ever was: a task may still prepare for it. The first is number 1.
    pub(super) plans: Vec<Plan>,
    /// The one that is not in force yet.
    pub(super) pending: Option<u8>,
    /// Those in force, in their order.
    pub(super) layouts: Vec<u8>,
    /// It went back in time, and its reader knows.
    pub(super) in_doubt: bool,
    /// The plan comes from a copy: it may have been in force.
    pub(super) restored: bool,
    /// The newest layout was such a plan. No task uses it before the plan in its place is in force.
    pub(super) presumed: bool,
}

/// A layout with all segments.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct Plan {
    /// What was in force as it was planned.
    pub(super) base: u8,
    /// The same, as the segments' copies of the manifest say.
    pub(super) upon: u8,
    /// Ids of this time and older are too old, if they are not recorded.
    pub(super) mark: u8,
    /// The time of ids from which it is to be in force.
    pub(super) from: u8,
}

impl Manifest {
    pub(super) fn plan(&self, number: u8) -> Plan {
        self.plans[usize::from(number) - 1]
    }

    pub(super) fn newest(&self) -> u8 {
        self.layouts.last().copied().unwrap_or(0)
    }

    /// Those that a task may go by.
    pub(super) fn in_use(&self) -> &[u8] {
        &self.layouts[..self.layouts.len() - usize::from(self.presumed)]
    }

    /// The layouts that a task with `layout` knows, in their order.
    fn known(&self, layout: u8) -> Vec<u8> {
        let later = |number: &u8| Some(self.plan(*number).upon).filter(|upon| *upon > 0);
        let first = Some(layout).filter(|layout| *layout > 0);
        let mut known: Vec<u8> = std::iter::successors(first, later).collect();
        known.reverse();
        known
    }
}

impl SegmentsModel {
    /// The home of a task's operation, by the layout that it goes by.
    pub(super) fn home(&self, world: &World, task: u8) -> u8 {
        self.home_among(world, task, self.config.operation(task).homes)
    }

    /// Of a home in the first layout and one in the later ones, the one in force at the id's time.
    pub(super) fn home_among(&self, world: &World, task: u8, homes: [u8; 2]) -> u8 {
        let layout = world.tasks[usize::from(task)].layout;
        let time = self.config.operation(task).time;
        let newest = self.breaks(Rule::HomeByTheIdsTime);
        let layouts = world.manifest.known(layout);
        let later =
            (layouts.iter()).any(|known| newest || world.manifest.plan(*known).from <= time);
        homes[usize::from(later)]
    }

    /// The time of the next plan, if there may be one: nothing is planned, or it cannot come into force.
    pub(super) fn next_plan(&self, world: &World) -> Option<u8> {
        let stuck = |number| {
            let mut parts = self.parts(world);
            parts.any(|(_, segment)| self.is_refused(world, segment, number))
        };
        let may = world.manifest.pending.is_none_or(stuck) && !self.must_restore(world);
        let next = self.config.plans.get(world.manifest.plans.len());
        next.copied().filter(|_| may)
    }

    /// A layout from that time on.
    pub(super) fn plan(&self, world: &mut World, from: u8) {
        let keeps = self.holds(Rule::BaseIsKept);
        let manifest = &mut world.manifest;
        // It may have decided what another one now decides.
        let replaced = manifest.pending.filter(|_| manifest.restored);
        manifest.layouts.extend(replaced);
        manifest.presumed |= replaced.is_some();
        let upon = manifest.newest();
        let base = if keeps { upon } else { 0 };
        let marks = replaced.is_some() && self.holds(Rule::RestoredPlanMarks);
        let mark = if marks { from - 1 } else { 0 };
        manifest.plans.push(Plan {
            base,
            upon,
            mark,
            from,
        });
        manifest.pending = Some(manifest.plans.len() as u8);
    }

    /// What the manifest may go back to: a plan less, or a layout less, and the plan for it there or not.
    pub(super) fn earlier_manifests(&self, world: &World) -> Vec<Manifest> {
        let Manifest {
            layouts, pending, ..
        } = &world.manifest;
        let to = |count: usize, pending| Manifest {
            layouts: layouts[..count].to_vec(),
            pending,
            in_doubt: true,
            restored: pending.is_some(),
            ..world.manifest.clone()
        };
        let unplanned = pending.map(|_| to(layouts.len(), None));
        let lost = (1..=layouts.len()).rev();
        let shorter =
            lost.flat_map(|count| [Some(layouts[count - 1]), None].map(|plan| to(count - 1, plan)));
        unplanned.into_iter().chain(shorter).collect()
    }

    /// Whether nothing may be done with the manifest as it is.
    pub(super) fn must_restore(&self, world: &World) -> bool {
        world.manifest.in_doubt && self.holds(Rule::LostManifestIsRestored)
    }

    /// The newest copy at a segment, of a plan that the manifest does not know.
    fn unknown_copy(&self, world: &World) -> Option<u8> {
        let known = world
            .manifest
            .newest()
            .max(world.manifest.pending.unwrap_or(0));
        let copies = self.parts(world).map(|(_, segment)| segment.layout);
        copies.max().filter(|copy| *copy > known)
    }

    /// Whether the manifest is in doubt, or a segment was prepared for a plan that it does not know.
    pub(super) fn may_restore(&self, world: &World) -> bool {
        let is_older = world.manifest.in_doubt || self.unknown_copy(world).is_some();
        is_older && self.holds(Rule::LostManifestIsRestored)
    }

    /// The newest copy at a segment is put in the manifest's place.
    pub(super) fn restore(&self, world: &mut World) {
        world.manifest.in_doubt = false;
        let Some(newest) = self.unknown_copy(world) else {
            return;
        };
        if self.breaks(Rule::RestoredFromTheCopy) {
            world.manifest.pending = None;
            return self.plan(world, self.after_all(world));
        }
        world.manifest.layouts = world.manifest.known(world.manifest.plan(newest).upon);
        world.manifest.pending = Some(newest);
        world.manifest.restored = true;
    }

    /// The time after that of every id that was decided, or forgotten.
    pub(super) fn after_all(&self, world: &World) -> u8 {
        let parts = self.parts(world);
        let times = parts.map(|(_, segment)| segment.decided.max(segment.mark));
        times.max().unwrap_or(0) + 1
    }

    /// A segment is made, or told, in the name of any plan that a task may have read.
    pub(super) fn prepare(&self, world: &mut World, number: u8, index: u8) {
        let Plan {
            base, from, mark, ..
        } = world.manifest.plan(number);
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
            mark: before.mark.max(mark),
            ..before
        };
    }

    /// Whether it would have had to be prepared earlier.
    fn is_refused(&self, world: &World, segment: &Segment, number: u8) -> bool {
        let Plan { from, .. } = world.manifest.plan(number);
        let decided = segment.decided >= from && self.holds(Rule::PrepareComparesDecided);
        let marked = segment.mark >= from && self.holds(Rule::PrepareComparesTheMark);
        segment.exists && segment.layout < number && (decided || marked)
    }

    /// Whether the plan may come into force.
    pub(super) fn is_prepared(&self, world: &World) -> bool {
        let early = self.breaks(Rule::PreparedBeforeCommit);
        let pending = world.manifest.pending;
        let usable = !self.must_restore(world);
        pending.filter(|_| usable).is_some_and(|number| {
            let mut parts = self.parts(world);
            early || parts.all(|(_, segment)| segment.layout >= number)
        })
    }

    pub(super) fn commit(&self, world: &mut World) {
        if self.is_prepared(world) {
            let pending = world.manifest.pending.take();
            world.manifest.layouts.extend(pending);
            world.manifest.restored = false;
            world.manifest.presumed = false;
        }
    }

    /// A task that was told to go by a newer layout has read it.
    pub(super) fn reread(&self, world: &mut World, task: u8) {
        world.task(task).layout = world.manifest.newest();
        self.begin_anew(world, task, Vec::new());
    }

    pub(super) fn may_reread(&self, world: &World, task: u8) -> bool {
        let task = &world.tasks[usize::from(task)];
        task.phase == Phase::Outdated
            && world.manifest.newest() > task.layout
            && !world.manifest.presumed
            && !self.must_restore(world)
    }

    /// The first account's segments.
    pub(super) fn parts<'a>(&self, world: &'a World) -> impl Iterator<Item = (u8, &'a Segment)> {
        let parts = self.config.segments(0, u8::MAX);
        parts.map(move |index| (index, world.segment(index)))
    }
}
