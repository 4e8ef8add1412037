//! Time, and what a prompt process has done before it goes on.

use super::{
    Pace, QueueModel, Rule, World,
    state::{Memory, Phase, Process},
};

impl QueueModel {
    /// Whether a process's messages take no time, and it never forgets to renew.
    pub(super) fn is_prompt(&self, process: u8) -> bool {
        match self.config.pace {
            Pace::Free => false,
            Pace::FirstPrompt => process == 0,
            Pace::AllPrompt => true,
        }
    }

    /// Whether time may go on.
    pub(super) fn may_tick(&self, world: &World) -> bool {
        match self.config.pace {
            Pace::Free => true,
            Pace::FirstPrompt => is_up_to_date(world, &world.processes[0]),
            Pace::AllPrompt => {
                world.shard.armed
                    && world.network.requests.is_empty()
                    && world.network.replies.is_empty()
                    && (world.processes.iter())
                        .all(|process| is_up_to_date(world, process) && has_moved_on(process))
            }
        }
    }

    /// One tick, at the shard, at every process, and for all that is under way.
    pub(super) fn tick(&self, world: &mut World) {
        self.count_orphan(world);
        for process in 0..self.config.processes.len() {
            self.tick_process(world, process as u8);
        }
        let shard = &mut world.shard;
        shard.grace = shard.grace.saturating_sub(1);
        let skew = u8::from(self.breaks(Rule::TurnNeverByTheShardsClock));
        let age_max = self.config.lease + skew;
        for memory in std::iter::once(&mut shard.memory).chain(&mut shard.earlier) {
            tick_memory(memory, age_max);
        }
        world.network.age(age_max);
    }

    fn tick_process(&self, world: &mut World, index: u8) {
        let prompt = self.is_prompt(index);
        let timed = self.config.pace == Pace::AllPrompt;
        let age_max = self.config.lease;
        let lingers_on = self.breaks(Rule::NoLocalGrantPastTheDeadline);
        match &mut world.processes[usize::from(index)].phase {
            Phase::Idle => {}
            Phase::Waiting(attempt) => {
                attempt.fresh &= !prompt;
                attempt.waited += u8::from(timed && attempt.waited <= self.config.wait_max);
                attempt.counts_from = attempt.counts_from.map(|age| age_max.min(age + 1));
            }
            Phase::Holding(guard) => {
                guard.fresh &= !prompt;
                guard.held += u8::from(timed && guard.busy);
                guard.left = guard.left.saturating_sub(1);
                match guard.left {
                    0 if guard.busy => self.lose(world, index),
                    0 if !lingers_on => self.abandon(world, index),
                    _ => {}
                }
            }
        }
    }

    /// For how long there has been a record that its process does not know of.
    fn count_orphan(&self, world: &mut World) {
        if self.config.pace != Pace::AllPrompt {
            return;
        }
        let orphan = self.orphan(world).map(|record| record.nonce);
        world.ledger.orphan = orphan.map(|nonce| match world.ledger.orphan {
            Some((same, ticks)) if same == nonce => (nonce, ticks + 1),
            _ => (nonce, 1),
        });
    }
}

fn is_up_to_date(world: &World, process: &Process) -> bool {
    let renewed = match process.phase {
        Phase::Holding(guard) => guard.fresh || !guard.busy,
        _ => true,
    };
    renewed && !world.network.is_busy(process.nonce)
}

/// No process holds for longer than a tick, waits without a re-check, or lingers while another waits.
fn has_moved_on(process: &Process) -> bool {
    match process.phase {
        Phase::Idle => true,
        Phase::Waiting(attempt) => attempt.fresh,
        Phase::Holding(guard) if guard.busy => guard.held == 0,
        Phase::Holding(guard) => !guard.contended,
    }
}

fn tick_memory(memory: &mut Memory, age_max: u8) {
    if let Some(record) = &mut memory.record {
        record.left -= 1;
    }
    memory.record = memory.record.filter(|record| record.left > 0);
    for ticket in &mut memory.queue {
        ticket.left = ticket.left.saturating_sub(1);
        ticket.age = age_max.min(ticket.age + 1);
    }
}
