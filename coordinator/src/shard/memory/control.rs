//! Requests for control.

use super::state::Memory;
use crate::shard::{
    AskArmed, Control, ControlReply, ForceOpen, ForcedOpen, Inspect, ShardError, rules,
};

impl Memory {
    pub(super) fn control(
        &mut self,
        control: Control,
        now_ms: u64,
    ) -> Result<ControlReply, ShardError> {
        let Self { head, slots, .. } = self;
        Ok(match control {
            Control::Arm(arm) => ControlReply::Arm(self.arm(&arm, now_ms)?),
            Control::AskArmed(AskArmed) => ControlReply::AskArmed(self.is_armed(now_ms)),
            Control::MarkQuiet(mark) => {
                ControlReply::MarkQuiet(rules::mark_quiet(head, slots, &mark, now_ms)?)
            }
            Control::Declare(declare) => {
                ControlReply::Declare(rules::declare(head, &declare, now_ms)?)
            }
            Control::Raise(raise) => {
                ControlReply::Raise(rules::raise(head, raise.incarnation, raise.epoch)?)
            }
            Control::Inspect(Inspect(key)) => ControlReply::Inspect(self.inspect(&key, now_ms)?),
            Control::List(list) => ControlReply::List(self.list(&list, now_ms)?),
            Control::Step(step) => ControlReply::Step(self.step(&step, now_ms)?),
            Control::Scan(scan) => ControlReply::Scan(self.scan(&scan, now_ms)?),
            Control::Listing(listing) => {
                ControlReply::Listing(rules::take_list(head, slots, &listing)?)
            }
            Control::StillHeld(still) => ControlReply::StillHeld(self.still_held(&still, now_ms)?),
            Control::AskGroups(ask) => ControlReply::AskGroups(self.groups(&ask)?),
            Control::CopyOut(copy) => ControlReply::CopyOut(self.copy_out(&copy)?),
            Control::CopyIn(copy) => ControlReply::CopyIn(self.copy_in(copy, now_ms)?),
            Control::Arrive(arrive) => ControlReply::Arrive(self.arrive(&arrive)?),
            Control::DropGroups(drop) => ControlReply::DropGroups(self.drop_groups(&drop)?),
            Control::Admit(admit) => ControlReply::Admit(self.admit(&admit)?),
            Control::ForceOpen(force) => ControlReply::ForceOpen(self.force_open(&force, now_ms)?),
        })
    }

    fn force_open(&mut self, force: &ForceOpen, now_ms: u64) -> Result<ForcedOpen, ShardError> {
        let forced = rules::force_open(&mut self.head, &mut self.slots, force, now_ms)?;
        self.counters.complete &= forced.refused.len() == force.slots.len();
        Ok(forced)
    }
}
