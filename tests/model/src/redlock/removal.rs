//! A is gone for good, under leased views. It cannot be told: so its clients must know by themselves.

use super::{
    Action, RedlockModel, Rule, Token, World,
    state::{A, B, Client, Mode, Phase, Shard},
};

impl RedlockModel {
    fn view_lease(&self) -> u8 {
        self.config.view_lease.unwrap_or_default()
    }

    pub(super) fn enabled_removal(&self, world: &World, actions: &mut Vec<Action>) {
        if self.config.view_lease.is_none() {
            return;
        }
        let removal = world.removal;
        match (removal.declared, removal.second) {
            (None, _) => actions.push(Action::DeclareGone),
            (Some(_), None) if removal.views == 0 => actions.push(Action::AllotAgain),
            (Some(_), None) => {}
            (Some(_), Some(_)) if world.shard(B).is_armed() => actions.push(Action::ForceOpen),
            (Some(_), Some(_)) => {}
        }
        for (index, client) in (0..).zip(&world.clients) {
            if removal.declared.is_some() && !client.knows_removal {
                actions.push(Action::Look(index));
            }
        }
    }

    /// The client has a new view.
    pub(super) fn look(&self, world: &mut World, client: u8) {
        world.client_mut(client).knows_removal = true;
    }

    pub(super) fn declare_gone(&self, world: &mut World) {
        world.removal.declared = Some(world.fresh_epoch());
        world.removal.views = self.view_lease();
    }

    /// No view has A any more: what is granted from now on is above what it may have confirmed.
    pub(super) fn allot_again(&self, world: &mut World) {
        world.removal.second = match self.holds(Rule::SecondEpochAfterRemoval) {
            true => Some(world.fresh_epoch()),
            false => world.removal.declared,
        };
    }

    /// B waits for holders to come. If it was armed since, it does so already.
    pub(super) fn force_open(&self, world: &mut World) {
        let shard = *world.shard(B);
        let Some(epoch) = world.removal.second.filter(|_| shard.mode != Mode::Open) else {
            return;
        };
        *world.shard_mut(B) = Shard {
            grace: self.config.lease,
            ..Shard::new(Mode::Open, epoch, shard.token.max(Token::none_of(epoch)))
        };
    }

    /// Whether a client makes nothing of an answer: its view has no such shard.
    pub(super) fn is_dropped(&self, client: &Client, shard: u8) -> bool {
        client.knows_removal && shard == A
    }

    /// A tick: the last views of before the removal lapse, and end guards and attempts.
    pub(super) fn tick_views(&self, world: &mut World) {
        if world.removal.views == 0 {
            return;
        }
        world.removal.views -= 1;
        if world.removal.views > 0 {
            return;
        }
        for client in &mut world.clients {
            if !client.knows_removal && client.phase != Phase::Idle {
                client.ranks = Default::default();
                client.phase = Phase::Lost;
            }
            client.knows_removal = true;
        }
    }
}
