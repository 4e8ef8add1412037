//! A is gone for good, under leased views. It cannot be told: so its clients must know by themselves.

use super::{
    Action, RedlockModel, Token, World,
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
        match (removal.declared, removal.forced) {
            (None, _) => actions.push(Action::DeclareGone),
            (Some(_), false) => actions.push(Action::ForceOpen),
            (Some(_), true) => {
                if !removal.raised && world.shard(B).shut == 0 {
                    actions.push(Action::RaiseAgain);
                }
            }
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

    /// B waits until every view has lapsed, and then for holders to come.
    pub(super) fn force_open(&self, world: &mut World) {
        let Some(epoch) = world.removal.declared else {
            return;
        };
        world.removal.forced = true;
        let token = world.shard(B).token.max(Token::none_of(epoch));
        *world.shard_mut(B) = Shard {
            shut: self.view_lease(),
            grace: self.view_lease() + self.config.lease,
            ..Shard::new(Mode::Open, epoch, token)
        };
    }

    /// No view has A any more: what is granted from now on is above what it may have confirmed.
    pub(super) fn raise_again(&self, world: &mut World) {
        world.removal.raised = true;
        let epoch = world.fresh_epoch();
        world.shard_mut(B).raise(Token::none_of(epoch));
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
