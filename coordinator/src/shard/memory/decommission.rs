//! Slots of a shard that was declared dead.

use ringfence_ring::Slot;

use super::{armed::Armed, millis, state::Memory};
use crate::{
    ids::Token,
    shard::{ForceOpen, ForcedOpen, Mode, ShardError, SlotState},
};

impl Memory {
    /// Opens slots without asking the shard that had them.
    pub(super) fn force_open(
        &mut self,
        force: &ForceOpen,
        now_ms: u64,
    ) -> Result<ForcedOpen, ShardError> {
        self.hear_of(force.incarnation, &force.copy)?;
        let armed = self.armed.as_mut().ok_or(ShardError::Unarmed)?;
        let open = SlotState {
            mode: Mode::Open,
            epoch: force.epoch,
        };
        let rises = |slot: &Slot| armed.slots.get(*slot).guard() < open.guard();
        if force.slots.iter().any(rises) {
            armed.wait_for(force, now_ms);
            armed.raise(Token::new(force.epoch, 0));
        }
        armed.quiet = None;
        let is_refused = |slot: &Slot| !armed.change(*slot, open);
        let forced = ForcedOpen {
            refused: force.slots.iter().copied().filter(is_refused).collect(),
            grace_left: armed.grace_left(now_ms),
        };
        self.saw(force.epoch);
        Ok(forced)
    }
}

impl Armed {
    /// Begins to wait for engines that believe in the other shard, unless it did for this epoch or
    /// a later one.
    fn wait_for(&mut self, force: &ForceOpen, now_ms: u64) {
        if self.forced >= force.epoch {
            return;
        }
        self.forced = force.epoch;
        self.set_timers(0, millis(force.shut_for), now_ms);
        self.set_timers(
            self.shut_ms.saturating_add(millis(force.grace_for)),
            0,
            now_ms,
        );
    }
}
