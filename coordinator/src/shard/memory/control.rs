//! Requests for control.

use futures_util::FutureExt as _;

use super::state::Memory;
use crate::{
    ids::Token,
    shard::{
        Control, ControlReply, Counters, Inspect, ShardError,
        whole::{self, AboutKeys, ChangeWhole, Needs, OfCounters, Whole},
    },
};

impl Memory {
    pub(super) fn control(
        &mut self,
        control: Control,
        now_ms: u64,
    ) -> Result<ControlReply, ShardError> {
        if let Control::Arm(arm) = &control {
            let pointer = &mut self.whole.affiliation.pointer;
            pointer.get_or_insert_with(|| arm.topology.clone());
        }
        let mut at = At {
            memory: self,
            now_ms,
        };
        let made = whole::control(&mut at, control).now_or_never();
        let about_keys = match made.expect("it does not wait")? {
            Ok(reply) => return Ok(reply),
            Err(about_keys) => about_keys,
        };
        Ok(match about_keys {
            AboutKeys::Inspect(Inspect(key)) => ControlReply::Inspect(self.inspect(&key, now_ms)?),
            AboutKeys::List(list) => ControlReply::List(self.list(&list, now_ms)?),
            AboutKeys::Scan(scan) => ControlReply::Scan(self.scan(&scan, now_ms)?),
            AboutKeys::StillHeld(still) => {
                ControlReply::StillHeld(self.still_held(&still, now_ms)?)
            }
            AboutKeys::AskGroups(ask) => ControlReply::AskGroups(self.groups(&ask)?),
            AboutKeys::CopyOut(copy) => ControlReply::CopyOut(self.copy_out(&copy)?),
            AboutKeys::CopyIn(copy) => ControlReply::CopyIn(self.copy_in(copy, now_ms)?),
            AboutKeys::Arrive(arrive) => ControlReply::Arrive(self.arrive(&arrive)?),
            AboutKeys::DropGroups(drop) => ControlReply::DropGroups(self.drop_groups(&drop)?),
        })
    }

    fn change_counters(&mut self, change: OfCounters, is_first: bool) {
        match change {
            OfCounters::Unchanged => {}
            OfCounters::Armed(Counters::Never) => self.counters.complete = true,
            OfCounters::Armed(Counters::Kept) => self.counters.complete &= is_first,
            OfCounters::Armed(Counters::Lost) | OfCounters::Incomplete => {
                self.counters.complete = false;
            }
            OfCounters::Leaving(slots) => {
                for slot in slots {
                    let epoch = self.whole.slots.get(slot).epoch;
                    self.counters.drop_asides(&[slot], epoch);
                }
            }
        }
    }
}

/// A memory at a time.
struct At<'a> {
    memory: &'a mut Memory,
    now_ms: u64,
}

impl ChangeWhole for At<'_> {
    async fn change<T: Send>(
        &mut self,
        _needs: Needs<'_>,
        rule: impl Fn(&mut Whole, u64) -> Result<T, ShardError> + Send + Sync,
    ) -> Result<T, ShardError> {
        let up_ms = self.memory.up_ms(self.now_ms);
        let whole = &mut self.memory.whole;
        whole.up_ms = up_ms;
        let is_first = whole.head.armed.is_none();
        let changed = rule(whole, self.now_ms);
        let counters = std::mem::take(&mut whole.counters);
        self.memory.change_counters(counters, is_first);
        changed
    }

    async fn last_token(&mut self) -> Result<Token, ShardError> {
        Ok(self.memory.whole.head.armed()?.tokens.last())
    }
}
