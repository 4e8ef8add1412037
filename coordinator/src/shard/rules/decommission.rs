//! Slots of a shard that was declared dead.

use ringfence_ring::Slot;

use super::{head::Head, millis, sightings::Sightings, slots::Slots};
use crate::{
    ids::Token,
    shard::{ForceOpen, ForcedOpen, Mode, ShardError, SlotState},
};

/// Opens slots without a request to the shard that had them. Grace begins once per epoch, and concerns these
/// slots alone, unless another one runs.
pub(crate) fn force_open(
    head: &mut Head,
    slots: &mut Slots,
    force: &ForceOpen,
    now_ms: u64,
) -> Result<ForcedOpen, ShardError> {
    head.see_record(force.incarnation, &force.copy)?;
    let armed = head.armed_mut()?;
    let open = SlotState {
        mode: Mode::Open,
        epoch: force.epoch,
    };
    let rises = |slot: &Slot| slots.get(*slot).guard() < open.guard();
    if force.slots.iter().any(rises) {
        if armed.forced < force.epoch {
            armed.forced = force.epoch;
            if !armed.grace.runs(now_ms) {
                armed.grace_from = force.epoch;
            }
            armed.grace.extend(millis(force.grace_for), now_ms);
            armed.seen = Sightings::default();
        }
        armed.tokens.raise(Token::new(force.epoch, 0));
    }
    armed.quiet = None;
    let grace_left = armed.grace.left(now_ms);
    head.see_epoch(force.epoch);
    let is_refused = |slot: &Slot| !slots.change(*slot, open);
    Ok(ForcedOpen {
        grace_left,
        refused: force.slots.iter().copied().filter(is_refused).collect(),
    })
}
