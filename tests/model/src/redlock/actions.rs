//! What may happen next.

use super::{
    Ask, Message, RedlockModel, Rule, World,
    state::{A, B, Client, LEAD, Mode, Phase, RANKS, SHARDS},
};

/// One step. Numbers are clients, ranks or shards.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A client sends a request to one rank.
    Send {
        /// The client.
        client: u8,
        /// The rank.
        rank: u8,
        /// The shard.
        shard: u8,
        /// The request.
        verb: Verb,
        /// When the request and its answer arrive.
        how: How,
    },
    /// A client gives its nonce up at every rank; at one shard the release may come late.
    Release {
        /// The client.
        client: u8,
        /// That shard.
        late: Option<u8>,
    },
    /// A client gives every rank but the lead back, and keeps its nonce.
    GiveBack {
        /// The client.
        client: u8,
        /// The shard where the release comes late.
        late: Option<u8>,
    },
    /// A client's lead is the next rank.
    PassOver(u8),
    /// A client forgets its nonce and releases nothing.
    Abandon(u8),
    /// A late message arrives.
    Deliver(Message),
    /// A shard's clock steps, and its record ends.
    Step(u8),
    /// An operator releases the lock by force, and does not reach a rank.
    Force(Option<u8>),
    /// The client looks at the topology.
    Look(u8),
    /// A mover's step: A is sealed.
    Seal,
    /// … B imports.
    Import,
    /// … B is opened.
    Open,
    /// … A is shut, and the move finished.
    Finish,
    /// A shard comes back empty, and the topology allots an epoch to it.
    Restart(u8),
    /// It is armed.
    Arm(u8),
    /// A shard's tokens get a fresh epoch.
    Raise(u8),
    /// The topology says that A is gone for good.
    DeclareGone,
    /// Its views have lapsed: the topology allots a second fresh epoch.
    AllotAgain,
    /// B takes its rank.
    ForceOpen,
}

/// What a client asks.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Verb {
    /// A grant.
    Acquire,
    /// A full lease, and its token confirmed.
    Renew,
    /// A full lease, and its token as it was.
    Extend,
    /// A record where there is none.
    Install,
    /// A record at the next shard.
    Adopt,
    /// Greater tokens only (broken rule).
    WriteBack,
}

/// When a request and its answer arrive.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum How {
    /// At once.
    Prompt,
    /// The request at any later time, its answer then.
    LateRequest,
    /// The answer at any later time.
    LateAnswer,
}

impl RedlockModel {
    /// Everything that may happen.
    pub(super) fn enabled(&self, world: &World, actions: &mut Vec<Action>) {
        if self.is_at_rest(world) {
            actions.push(Action::Tick);
            let steps = (0..RANKS).filter(|_| world.left.steps > 0);
            actions.extend(steps.map(Action::Step));
        }
        for (index, client) in (0..).zip(&world.clients) {
            self.enabled_sends(world, index, client, actions);
            self.enabled_lead(world, index, actions);
            self.enabled_ends(world, index, client, actions);
        }
        actions.extend(world.late.iter().copied().map(Action::Deliver));
        self.enabled_steps(world, actions);
        self.enabled_restarts(world, actions);
        self.enabled_removal(world, actions);
        self.enabled_force(world, actions);
    }

    pub(super) fn enabled_sends(
        &self,
        world: &World,
        index: u8,
        client: &Client,
        actions: &mut Vec<Action>,
    ) {
        for rank in 0..RANKS {
            for (shard, verb) in self.requests(world, client, rank) {
                let hows: &[How] = if world.left.late > 0 && self.config.lates.contains(&verb) {
                    &[How::Prompt, How::LateRequest, How::LateAnswer]
                } else {
                    &[How::Prompt]
                };
                actions.extend(hows.iter().map(|how| Action::Send {
                    client: index,
                    rank,
                    shard,
                    verb,
                    how: *how,
                }));
            }
        }
    }

    /// What a client may ask about a rank, and where.
    fn requests(&self, world: &World, client: &Client, rank: u8) -> Vec<(u8, Verb)> {
        let known = client.rank(rank);
        let mut requests = Vec::new();
        if self.may_acquire(world, client, rank) {
            let shards = self.shards(world, client, rank);
            let shards = shards.filter(|shard| !self.overtakes(world, client, *shard));
            requests.extend(shards.map(|shard| (shard, Verb::Acquire)));
        }
        if client.token().is_none() {
            return requests;
        }
        let any_time = match client.phase {
            Phase::Holding(_) => self.breaks(Rule::ReclaimBeforeItsDeadline),
            _ => self.breaks(Rule::ConfirmBeforeItsDeadline),
        };
        if known.left > 0 || any_time {
            requests.push((self.renewed_at(client, rank), Verb::Renew));
            if self.config.extends {
                requests.push((self.renewed_at(client, rank), Verb::Extend));
            }
        }
        if client.holds() && self.may_install(client, rank) {
            requests.extend(
                self.shards(world, client, rank)
                    .map(|shard| (shard, Verb::Install)),
            );
        }
        if rank == 0 && self.may_adopt(world, client) {
            requests.push((B, Verb::Adopt));
        }
        if client.is_acquiring() && self.breaks(Rule::ConfirmOnItsOwnRecord) {
            requests.extend(
                self.shards(world, client, rank)
                    .map(|shard| (shard, Verb::WriteBack)),
            );
        }
        requests
    }

    fn may_acquire(&self, world: &World, client: &Client, rank: u8) -> bool {
        let [first, second] = self.config.acquisitions;
        if first == second && client.nonce.process == 1 && world.client(0).nonce.sequence == 0 {
            // The clients are alike: the one that begins is the first.
            return false;
        }
        match client.phase {
            Phase::Idle | Phase::Lost => client.acquisitions > 0,
            Phase::Acquiring => self.may_ask(world, client, rank),
            Phase::Holding(_) => false,
        }
    }

    /// A moving rank's holder moves itself, and confirms at the shard that it moves to.
    fn may_adopt(&self, world: &World, client: &Client) -> bool {
        let known = client.rank(0);
        let acknowledged = known.left > 0 || self.breaks(Rule::AdoptTheAcknowledged);
        let from = if known.moved {
            Mode::Import
        } else {
            Mode::Sealed
        };
        let at = if known.moved { B } else { A };
        acknowledged && world.shard(at).mode == from && world.shard(B).mode != Mode::Shut
    }

    /// Where a rank may be, by some picture of the ring; by a view, where it is.
    fn shards(&self, world: &World, client: &Client, rank: u8) -> impl Iterator<Item = u8> + use<> {
        let removed = client.knows_removal;
        let moving = self.config.moves && world.shard(B).mode != Mode::Shut;
        let a = rank != 0 || !removed;
        let b = rank == 0 && (removed || moving);
        [a.then_some(rank), b.then_some(B)].into_iter().flatten()
    }

    pub(super) fn renewed_at(&self, client: &Client, rank: u8) -> u8 {
        let moved = rank == 0 && (client.rank(0).moved || client.knows_removal);
        if moved { B } else { rank }
    }

    /// Whether an acquire would overtake a release of its own nonce.
    fn overtakes(&self, world: &World, client: &Client, shard: u8) -> bool {
        let is_it = |message: &Message| {
            message.nonce == client.nonce && message.shard == shard && message.ask == Ask::Release
        };
        let acquiring = client.is_acquiring() && self.holds(Rule::AcquireBehindItsRelease);
        acquiring && world.late.iter().any(is_it)
    }

    fn enabled_ends(&self, world: &World, index: u8, client: &Client, actions: &mut Vec<Action>) {
        if client.phase == Phase::Idle {
            return;
        }
        let recorded = |shard: &u8| {
            let record = world.shard(*shard).record;
            record.is_some_and(|record| record.nonce == client.nonce)
        };
        let releases_late = world.left.late > 0 && self.config.releases_late;
        let shards = || (0..SHARDS).filter(recorded).filter(|_| releases_late);
        let lates = || shards().map(Some).chain([None]);
        if self.config.crashes {
            actions.push(Action::Abandon(index));
        }
        actions.extend(lates().map(|late| Action::Release {
            client: index,
            late,
        }));
        if client.is_acquiring() && world.left.give_backs > 0 {
            let lates = lates().filter(|late| *late != Some(LEAD));
            actions.extend(lates.map(|late| Action::GiveBack {
                client: index,
                late,
            }));
        }
    }

    /// It happens; none if nothing comes of it.
    pub(super) fn happen(&self, world: &mut World, action: Action) -> Option<()> {
        match action {
            Action::Tick => self.tick(world),
            Action::Send {
                client,
                rank,
                shard,
                verb,
                how,
            } => return self.send(world, client, (rank, shard), verb, how),
            Action::Release { client, late } => self.release(world, client, late),
            Action::GiveBack { client, late } => self.give_back(world, client, late),
            Action::PassOver(client) => self.pass_over(world, client),
            Action::Abandon(client) => world.client_mut(client).end(),
            Action::Deliver(message) => self.deliver(world, message),
            Action::Step(shard) => self.step(world, shard),
            Action::Force(out_of_reach) => return self.force(world, out_of_reach),
            Action::Look(client) => self.look(world, client),
            Action::Seal => self.seal(world),
            Action::Import => self.import(world),
            Action::Open => self.open(world),
            Action::Finish => self.finish(world),
            Action::Restart(shard) => self.restart(world, shard),
            Action::Arm(shard) => self.arm(world, shard),
            Action::Raise(shard) => self.raise(world, shard),
            Action::DeclareGone => self.declare_gone(world),
            Action::AllotAgain => self.allot_again(world),
            Action::ForceOpen => self.force_open(world),
        }
        Some(())
    }
}
