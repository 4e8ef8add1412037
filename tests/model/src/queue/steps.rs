//! What happens: to which verb an action, a request, a reply and a push belong.

use super::{
    Action, Answer, Ask, Push, QueueModel, Reply, Request, Survival, World,
    state::{Memory, Slot},
};

impl QueueModel {
    /// It happens.
    pub(super) fn happen(&self, world: &mut World, action: Action) {
        match action {
            Action::Tick => self.tick(world),
            Action::Acquire(process) => self.acquire(world, process),
            Action::Recheck(process) => self.recheck(world, process),
            Action::Abandon(process) => self.abandon(world, process),
            Action::Renew(process) => self.renew(world, process),
            Action::Reserve(process) => self.reserve(world, process),
            Action::GrantLocally(process) => self.grant_locally(world, process),
            Action::Linger(process) => self.linger(world, process),
            Action::Release(process) => self.release(world, process),
            Action::Crash(process) => self.crash(world, process),
            Action::Deliver(request) => self.deliver(world, request),
            Action::Answer(reply) => {
                world.network.replies.remove(&reply);
                self.answer(world, reply);
            }
            Action::Push(push) => self.receive(world, push),
            Action::Restart(survival) => self.restart(world, survival),
            Action::Arm => self.arm(world),
            Action::Seal => world.shard.slot = Slot::Sealed,
            Action::ProveAbsence => world.shard.slot = Slot::Absent,
            Action::GrantElsewhere(process) => self.grant_elsewhere(world, process),
        }
    }

    /// The shard's scripts, each one atomic step.
    fn deliver(&self, world: &mut World, request: Request) {
        let Request { nonce, ask, age } = request;
        world.network.take(&request);
        let before = (world.restarts > 0).then(|| world.shard.memory.clone());
        let answer = match ask {
            Ask::Acquire => self.acquire_at_shard(world, nonce, age),
            Ask::Stay => Some(self.stay_at_shard(world, nonce, age)),
            Ask::Renew(token) => Some(self.renew_at_shard(world, nonce, token)),
            Ask::Reserve(number) => Some(self.reserve_at_shard(world, nonce, number)),
            Ask::Release => {
                self.release_at_shard(world, nonce);
                None
            }
        };
        self.remember(world, before);
        let reply = answer.map(|answer| Reply { nonce, age, answer });
        match reply {
            Some(reply) if self.config.answers_at_once => self.answer(world, reply),
            reply => world.network.replies.extend(reply),
        }
    }

    /// Keeps what a restart may bring back.
    fn remember(&self, world: &mut World, before: Option<Memory>) {
        let needed = self.config.survives.contains(&Survival::AllButTheLast);
        if let Some(before) = before.filter(|before| needed && *before != world.shard.memory) {
            world.shard.earlier = Some(before);
        }
    }

    /// The one place where a process judges a reply.
    fn answer(&self, world: &mut World, reply: Reply) {
        let Reply { nonce, age, answer } = reply;
        match answer {
            Answer::Reserved {
                number,
                block,
                contended,
            } => self.reserved(world, (nonce, age), number, block, contended),
            _ if !world.is_alive(nonce) => {}
            Answer::Granted(grant) => self.granted(world, nonce, age, grant),
            Answer::Held => self.held(world, nonce, age),
            Answer::Renewed { contended } => self.renewed(world, nonce, age, contended),
            Answer::Lost => self.lose(world, nonce.process),
        }
    }

    fn receive(&self, world: &mut World, push: Push) {
        match push {
            Push::Turn { nonce, grant, age } => self.take_turn(world, nonce, grant, age),
            Push::Contended(nonce) if world.is_alive(nonce) => {
                if let Some(guard) = world.process(nonce).guard() {
                    guard.contended = true;
                }
            }
            Push::Contended(_) => {}
        }
    }
}
