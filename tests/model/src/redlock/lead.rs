//! The lead: by its grant a majority counts. Another rank leads once it is of no use.
//!
//! If leads change, a tick comes only when no client can do anything but wait, and nothing is under way: a lead is passed
//! over long before a lease ends.

use stateright::Model;

use super::{
    Action, Event, RedlockModel, Rule, World,
    state::{Client, Mode, RANKS, Shard},
};

impl RedlockModel {
    /// Whether a majority counts for the client.
    pub(super) fn has_turn(&self, world: &World, client: &Client) -> bool {
        let (leads, lead) = (self.config.leads, client.lead());
        let any = !self.config.queues && !leads || self.breaks(Rule::MajorityWithTheLead);
        let is_dead = !leads && !may_grant(world.shard(lead));
        any || is_dead || client.rank(lead).left > 0
    }

    /// Whether an attempt may ask `rank`. While it waits at the lead, it asks nowhere else. What passed to it, it finds.
    pub(super) fn may_ask(&self, world: &World, client: &Client, rank: u8) -> bool {
        let lead = client.lead();
        let waits = rank != lead && client.rank(lead).held;
        let known = client.rank(rank);
        let mut nonces = world.shard(rank).nonces();
        let passed = self.config.queues && nonces.any(|nonce| nonce == client.nonce);
        !waits && (!known.asked || (self.config.leads || passed) && known.left == 0)
    }

    /// `rank` did not grant. None if nothing comes of it.
    pub(super) fn refused(&self, world: &mut World, index: u8, rank: u8) -> Option<()> {
        let orders = self.config.leads || self.config.queues;
        if !orders || !is_others(world, world.client(index), rank) {
            return None;
        }
        let client = world.client_mut(index);
        client.ranks[usize::from(rank)].passed &= self.breaks(Rule::ReturnToTheLead);
        let leads = client.lead() == rank;
        let known = &mut client.ranks[usize::from(rank)];
        known.asked = false;
        known.held = self.config.leads;
        leads.then_some(())
    }

    /// What must happen about the lead before time goes on.
    fn lead_action(&self, world: &World, index: u8) -> Option<Action> {
        let client = world.client(index);
        let lead = client.lead();
        let mut others = (0..RANKS).filter(|rank| *rank != lead);
        if !self.config.leads || !client.is_acquiring() {
            None
        } else if self.is_lead_useless(world, client) {
            Some(Action::PassOver(index))
        } else {
            let gives_back =
                client.rank(lead).held && others.any(|rank| client.rank(rank).left > 0);
            let (client, late) = (index, None);
            gives_back.then_some(Action::GiveBack { client, late })
        }
    }

    pub(super) fn enabled_lead(&self, world: &World, index: u8, actions: &mut Vec<Action>) {
        let client = world.client(index);
        let may_doubt = client.is_acquiring() && client.rank(client.lead()).left == 0;
        let doubt = Some(Action::PassOver(index)).filter(|_| world.left.doubts > 0 && may_doubt);
        actions.extend(self.lead_action(world, index).or(doubt));
    }

    /// Whether the lead's shard is dead, or the client has the lead and another client has the rest. An attempt does not
    /// have the rest for so long.
    fn is_lead_useless(&self, world: &World, client: &Client) -> bool {
        let lead = client.lead();
        if !may_grant(world.shard(lead)) {
            return self.holds(Rule::PassOverADeadLead);
        }
        let mut others = (0..RANKS).filter(|rank| *rank != lead);
        let is_rest_held = others.all(|rank| is_others(world, client, rank))
            && !world.client(1 - client.nonce.process).is_acquiring();
        client.rank(lead).left > 0 && is_rest_held && self.holds(Rule::GiveAUselessLeadBack)
    }

    /// The next rank leads. If the client had the lead, it gives that back.
    pub(super) fn pass_over(&self, world: &mut World, index: u8) {
        let doubts = !self.is_lead_useless(world, world.client(index));
        world.left.doubts -= u8::from(doubts);
        let client = world.client_mut(index);
        let rank = &mut client.ranks[usize::from(client.lead())];
        rank.passed = true;
        rank.held = false;
        let has_lead = rank.left > 0;
        if client.ranks.iter().all(|rank| rank.passed) {
            client.ranks.iter_mut().for_each(|rank| rank.passed = false);
        }
        if has_lead {
            self.give_back(world, index, None);
            self.note(world, Event::PassedOver);
        }
        self.decide(world, index);
    }

    /// Whether time may go on.
    pub(super) fn is_at_rest(&self, world: &World) -> bool {
        if !self.config.leads {
            return true;
        }
        let mut acts = Vec::new();
        for (index, client) in (0..).zip(&world.clients) {
            acts.extend(self.lead_action(world, index));
            if client.is_acquiring() || client.holds() {
                self.enabled_sends(world, index, client, &mut acts);
            }
        }
        let mut world = world.clone();
        world.ledger.happened = None;
        let changes = |act| self.next_state(&world, act).is_some();
        world.late.is_empty() && !acts.into_iter().any(changes)
    }

    /// Whether time may go on while a client wants the lock, nobody holds it, and all records are of clients that want it. At
    /// most one shard is dead.
    pub(super) fn is_stuck(&self, world: &World) -> bool {
        let wants = |client: &Client| client.is_acquiring();
        let mut nonces = world.shards.iter().flat_map(Shard::nonces);
        let all_want = nonces.all(|nonce| {
            let client = world.client(nonce.process);
            client.nonce == nonce && wants(client)
        });
        let is_wanted = all_want && world.clients.iter().any(wants);
        let is_held = world.clients.iter().any(Client::holds);
        self.config.leads && is_wanted && !is_held && self.is_at_rest(world)
    }

    /// A shard's clock steps: its record ends.
    pub(super) fn step(&self, world: &mut World, shard: u8) {
        world.left.steps -= 1;
        world.shard_mut(shard).record = None;
    }
}

pub(super) fn may_grant(shard: &Shard) -> bool {
    shard.is_armed() && shard.mode == Mode::Open && shard.grace == 0
}

fn is_others(world: &World, client: &Client, rank: u8) -> bool {
    let record = world.shard(rank).record;
    record.is_some_and(|record| record.nonce != client.nonce)
}
