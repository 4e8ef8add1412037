//! A resize takes the slot away while a ticket is queued: another shard grants once this one proved
//! that the key is free.

use super::{
    Action, Event, QueueModel, Token, World,
    network::Grant,
    state::{Phase, Process, Slot},
};

/// Above every epoch of this shard.
const EPOCH_ELSEWHERE: u8 = u8::MAX;

impl QueueModel {
    /// The next step of the move, if the slot moves.
    pub(super) fn enabled_seal(&self, world: &World, actions: &mut Vec<Action>) {
        match world.shard.slot {
            Slot::Open if self.config.seals => actions.push(Action::Seal),
            Slot::Sealed if self.live_record(world).is_none() => {
                actions.push(Action::ProveAbsence);
            }
            Slot::Absent => {
                let acquires = |process: &&Process| {
                    process.phase == Phase::Idle && process.budget.acquisitions > 0
                };
                let processes = world.processes.iter().filter(acquires);
                actions
                    .extend(processes.map(|process| Action::GrantElsewhere(process.nonce.process)));
            }
            _ => {}
        }
    }

    /// The other shard grants, which is as far as the model follows it.
    pub(super) fn grant_elsewhere(&self, world: &mut World, process: u8) {
        world.shard.slot = Slot::Moved;
        let process = &mut world.processes[usize::from(process)];
        process.budget.acquisitions -= 1;
        process.nonce.sequence += 1;
        let nonce = process.nonce;
        let token = Token {
            epoch: EPOCH_ELSEWHERE,
            counter: 1,
        };
        let grant = Grant {
            token,
            last: token.counter,
            contended: false,
        };
        if !world.shard.memory.queue.is_empty() {
            world.ledger.happened = Some(Event::GrantedElsewhere);
        }
        world.ledger.reserved(token, token.counter);
        world.ledger.granted = Some(nonce);
        self.believe(world, nonce, grant, self.config.lease);
    }
}
