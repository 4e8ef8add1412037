//! What happens: to which verb an action, a request and a reply belong.

use super::{
    Action, Answer, Ask, Nonce, Reply, Request, Rule, SlotModel, World,
    state::{Call, Mode},
};

impl SlotModel {
    /// It happens.
    pub(super) fn happen(&self, world: &mut World, action: Action) {
        match action {
            Action::Tick => self.tick(world),
            Action::Acquire { process, shard } => self.acquire(world, process, shard),
            Action::AcquireWithProof(process) => self.acquire_with_proof(world, process),
            Action::Prove(process) => self.prove(world, process),
            Action::Renew(process) => self.renew(world, process),
            Action::Repeat(process) => self.repeat(world, process),
            Action::GiveUp(process) => self.give_up(world, process),
            Action::Release(process) => self.release(world, process),
            Action::Look(process) => self.look(world, process),
            Action::Deliver(request) => self.deliver(world, request),
            Action::Lose(request) => world.network.take(&request),
            Action::Answer(reply) => {
                world.network.replies.remove(&reply);
                self.answer(world, reply);
            }
            Action::Plan => self.plan(world),
            Action::Abort => self.abort(world),
            Action::Step { migration, step } => self.step(world, migration, step),
            Action::Restart { shard, survival } => self.restart(world, shard, survival),
            Action::Record(shard) => self.record_life(world, shard),
            Action::Arm { shard, late } => self.arm(world, shard, late),
            Action::Raise(shard) => self.raise(world, shard),
            Action::DeclareGone => self.declare_gone(world),
            Action::AllotAgain => self.allot_again(world),
            Action::ForceOpen => self.force_open(world),
        }
    }

    /// A process asks, and waits for the answer.
    pub(super) fn call(&self, world: &mut World, nonce: Nonce, shard: u8, ask: Ask) {
        let watched = self.breaks(Rule::DeadlineFromItsSend);
        world.process(nonce).call = Some(Call {
            shard,
            ask,
            repeated: false,
            last_sent: watched.then_some(0),
        });
        self.send(world, nonce, shard, ask);
    }

    /// The same request again.
    fn repeat(&self, world: &mut World, process: u8) {
        let prompt = self.is_prompt(process);
        let client = &mut world.processes[usize::from(process)];
        let nonce = client.nonce;
        let Some(call) = &mut client.call else {
            return;
        };
        if !prompt {
            world.left.repeats -= 1;
            call.repeated = true;
        }
        call.last_sent = call.last_sent.map(|_| 0);
        let Call { shard, ask, .. } = *call;
        self.send(world, nonce, shard, ask);
    }

    /// A process asks.
    pub(super) fn send(&self, world: &mut World, nonce: Nonce, shard: u8, ask: Ask) {
        let old = self.breaks(Rule::HandshakePerConnection) && nonce.process == 1;
        let life = if old { 0 } else { world.shard(shard).life };
        world.network.send(Request {
            nonce,
            shard,
            life,
            ask,
            age: 0,
        });
    }

    /// The shard's scripts, each one atomic step.
    fn deliver(&self, world: &mut World, request: Request) {
        world.network.take(&request);
        let before = world.shard(request.shard).memory();
        let answer = self.answer_at_shard(world, &request);
        self.remember(world, request.shard, before);
        if world.is_awaited(&request) {
            let reply = Reply {
                to: request,
                answer,
            };
            if self.config.answers_at_once {
                self.answer(world, reply);
            } else {
                world.network.replies.insert(reply);
            }
        }
    }

    fn answer_at_shard(&self, world: &mut World, request: &Request) -> Answer {
        let slot = *world.shard(request.shard).slot_of(request.life);
        let Some(slot) = slot.filter(|slot| slot.mode != Mode::Shut) else {
            return Answer::Refused;
        };
        match request.ask {
            Ask::Acquire { proof } => return self.acquire_at_shard(world, request, slot, proof),
            Ask::Renew(token) => return self.renew_at_shard(world, request, slot, token),
            Ask::Adopt { token, epoch } => {
                return self.adopt_at_shard(world, request, slot, token, epoch);
            }
            Ask::Remove { epoch } => self.remove_at_shard(world, request, slot, epoch),
            Ask::Release => self.release_at_shard(world, request),
        }
        Answer::Refused
    }

    /// The one place where a process judges a reply.
    fn answer(&self, world: &mut World, reply: Reply) {
        let Reply { to, answer } = reply;
        if !world.is_awaited(&to) {
            return;
        }
        let Some(call) = world.process(to.nonce).call.take() else {
            return;
        };
        if self.is_dropped(world, &to) {
            return;
        }
        let age = call.last_sent.unwrap_or(to.age);
        let left = self.config.lease.saturating_sub(age);
        match answer {
            Answer::Granted(token) => self.granted(world, &to, token, left),
            Answer::Absent { epoch, to: shard } => self.proven(world, &to, epoch, shard),
            Answer::Renewed { moving } => self.renewed(world, &to, moving, left),
            Answer::Lost => self.lose(world, to.nonce),
            Answer::Adopted => {
                if let Ask::Adopt { epoch, .. } = to.ask {
                    self.adopted(world, &to, epoch, left);
                }
            }
            Answer::Refused => {}
        }
    }
}
