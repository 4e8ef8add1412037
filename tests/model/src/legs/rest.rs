//! Whether a state is one from which everything is still finished.

use super::{
    LegsModel, World,
    state::{Answer, Credit, Entry, FUNDS, LEGS, Request},
};

impl LegsModel {
    /// Whether one process alone, once the reservation's deadline is past, leaves nothing half done.
    pub(super) fn finishes(&self, world: &World) -> bool {
        let mut world = world.clone();
        if world.source.entry == Entry::Held {
            world.source.value += FUNDS;
            world.source.entry = Entry::Over;
        }
        self.arrive(&mut world, Request::Cancel);
        if let Entry::Committed(attempt) = world.source.entry {
            let mut refused = 0;
            for leg in 0..LEGS as u8 {
                let answer = self.arrive(&mut world, Request::Give(leg, attempt));
                refused |= u8::from(answer == Answer::Refused) << leg;
            }
            self.arrive(&mut world, Request::Finish(refused));
        }
        for (leg, attempt) in self.legs() {
            self.arrive(&mut world, Request::Forget(leg, attempt));
        }
        let is_open = |credit| matches!(credit, Credit::Promised | Credit::Pinned);
        let is_ended = matches!(world.source.entry, Entry::Paid { .. } | Entry::Over);
        is_ended && !self.legs().any(|(leg, at)| is_open(world.credit(leg, at)))
    }
}
