//! The effect of an action, and the shard's side of a request.

use super::{Action, Ask, Nonce, Request, SharesModel, World, state::Mode};

impl SharesModel {
    /// It happens.
    pub(super) fn happen(&self, world: &mut World, action: Action) {
        match action {
            Action::Tick => self.tick(world),
            Action::Acquire {
                process,
                shard,
                capacity,
            } => self.acquire(world, process, shard, capacity),
            Action::Recheck { process, shard } => self.recheck(world, process, shard),
            Action::Prove(process) => self.prove(world, process),
            Action::Renew(process) => self.renew(world, process),
            Action::Join(process) => self.join(world, process),
            Action::Downgrade(process) => self.downgrade(world, process),
            Action::Release(process) => self.release(world, process),
            Action::Deliver(request) => self.deliver(world, request),
            Action::Lose(request) => world.network.take(&request),
            Action::Turn(turn) => {
                world.network.turns.remove(&turn);
                self.take_turn(world, turn);
            }
            Action::Plan => self.plan(world),
            Action::Step(step) => self.step(world, step),
            Action::Restart { shard, survival } => self.restart(world, shard, survival),
            Action::Arm(shard) => self.arm(world, shard),
        }
    }

    /// A process asks.
    pub(super) fn send(&self, world: &mut World, nonce: Nonce, shard: u8, ask: Ask) {
        world.process(nonce).asked |= 1 << shard;
        world.network.send(Request {
            nonce,
            shard,
            ask,
            age: 0,
        });
    }

    /// The shard's scripts, each one atomic step with the process's side of the reply.
    fn deliver(&self, world: &mut World, request: Request) {
        world.network.take(&request);
        let before = world.shard(request.shard).memory.clone();
        self.run(world, &request);
        self.remember(world, request.shard, before);
    }

    fn run(&self, world: &mut World, request: &Request) {
        let slot = world.shard(request.shard).slot;
        let Some(slot) = slot.filter(|slot| slot.mode != Mode::Shut) else {
            return;
        };
        match request.ask {
            Ask::Acquire { terms, proof } => {
                self.acquire_at_shard(world, request, slot, terms, proof);
            }
            Ask::Renew { token, shares } => {
                self.renew_at_shard(world, request, slot, token, shares);
            }
            Ask::Adopt { token, shares } => {
                self.adopt_at_shard(world, request, slot, token, shares);
            }
            Ask::Remove => self.remove_at_shard(world, request, slot),
            Ask::Release => self.release_at_shard(world, request),
        }
    }
}
