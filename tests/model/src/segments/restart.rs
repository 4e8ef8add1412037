//! A restart that loses the last change.

use super::{SegmentsModel, World};

impl SegmentsModel {
    pub(super) fn lose(&self, world: &mut World, segment: u8) {
        let Some(earlier) = world.earlier[usize::from(segment)].take() else {
            return;
        };
        world.left.losses -= 1;
        *world.segment_mut(segment) = earlier;
        world.segment_mut(segment).doubtful = true;
    }

    /// Keeps what a restart may bring back.
    pub(super) fn remember(&self, world: &mut World, before: &World) {
        if world.left.losses == 0 {
            return;
        }
        for ((earlier, now), before) in world
            .earlier
            .iter_mut()
            .zip(&world.segments)
            .zip(&before.segments)
        {
            if now != before {
                *earlier = Some(*before);
            }
        }
    }
}
