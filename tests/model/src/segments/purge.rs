//! The mark, and the ids dropped at and below it: the bound on memory.

use super::{
    Rule, SegmentsModel, World,
    state::{Credit, Outcome},
};

impl SegmentsModel {
    pub(super) fn purge(&self, world: &mut World, segment: u8) {
        world.left.purges -= 1;
        let segment = world.segment_mut(segment);
        segment.mark += 1;
        for (index, operation) in self.config.operations.iter().enumerate() {
            if operation.time > segment.mark {
                continue;
            }
            let entry = &mut segment.entries[index];
            *entry = entry.filter(|entry| entry.outcome == Outcome::Held);
            let pinned =
                |credit: &Credit| *credit == Credit::Pinned && self.holds(Rule::PinnedIsNotPurged);
            let credit = &mut segment.credits[index];
            *credit = credit.filter(pinned);
        }
    }
}
