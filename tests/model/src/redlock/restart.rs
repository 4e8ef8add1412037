//! Restarts that lose everything, and fresh epochs.

use super::{
    Action, RedlockModel, Rule, Token, World,
    state::{A, B, Client, Life, MOVE_EPOCH, Mode, SHARDS, Shard},
};

impl RedlockModel {
    pub(super) fn enabled_restarts(&self, world: &World, actions: &mut Vec<Action>) {
        if world.left.restarts > 0 {
            let restarting = self.config.restarting.iter().copied();
            let may = |shard: &u8| !self.config.forgets || self.is_known(world, *shard);
            actions.extend(restarting.filter(may).map(Action::Restart));
        }
        let unarmed = (0..SHARDS).filter(|shard| !world.shard(*shard).is_armed());
        actions.extend(unarmed.map(Action::Arm));
        if world.left.raises > 0 {
            actions.extend(self.config.raising.map(Action::Raise));
        }
    }

    /// The shard is back, empty. Requests under way to it are lost with their connections.
    pub(super) fn restart(&self, world: &mut World, index: u8) {
        world.left.restarts -= 1;
        if self.config.forgets {
            world.epoch = self.greatest_answered(world, index);
        }
        let epoch = world.fresh_epoch();
        *world.shard_mut(index) = Shard {
            life: Life::Unarmed(epoch),
            ..Shard::new(Mode::Shut, 0, Token::default())
        };
        if index == B {
            world.migration.imported = false;
        }
        world
            .late
            .retain(|message| message.shard != index || message.answer.is_some());
    }

    /// The topology was lost with the shard: the greatest epoch that the other shards answer.
    fn greatest_answered(&self, world: &World, lost: u8) -> u8 {
        let others = (0..SHARDS).filter(|shard| *shard != lost);
        let epochs = others.map(|index| {
            let shard = world.shard(index);
            let (Life::Armed(epoch) | Life::Unarmed(epoch)) = shard.life;
            if self.holds(Rule::FenceAnswersTokenEpochs) {
                epoch.max(shard.token.epoch)
            } else {
                epoch
            }
        });
        epochs.max().unwrap_or_default()
    }

    /// Whether another shard has the token epoch of every token that a client may yet confirm.
    fn is_known(&self, world: &World, lost: u8) -> bool {
        let others = (0..SHARDS).filter(|shard| *shard != lost);
        let greatest = others.map(|shard| world.shard(shard).token.epoch).max();
        let tokens = world.clients.iter().filter_map(Client::token);
        tokens.max().map(|token| token.epoch) <= greatest
    }

    pub(super) fn arm(&self, world: &mut World, index: u8) {
        let Life::Unarmed(epoch) = world.shard(index).life else {
            return;
        };
        let second = world.removal.second;
        let moved = world.migration.finished || second.is_some();
        let mode = match index {
            A if moved || world.removal.declared.is_some() => Mode::Shut,
            A if self.config.moves => Mode::Sealed,
            B if moved => Mode::Open,
            B if self.config.moves => Mode::Import,
            B => Mode::Shut,
            _ => Mode::Open,
        };
        let graces = self.holds(Rule::GraceAfterRestart);
        let epoch = epoch.max(MOVE_EPOCH).max(second.unwrap_or_default());
        *world.shard_mut(index) = Shard {
            grace: if graces { self.config.lease } else { 0 },
            ..Shard::new(mode, epoch, Token::none_of(epoch))
        };
    }

    /// A shard's counter is at its end: a fresh epoch for all that it grants.
    pub(super) fn raise(&self, world: &mut World, shard: u8) {
        world.left.raises -= 1;
        let epoch = world.fresh_epoch();
        world.shard_mut(shard).raise(Token::none_of(epoch));
    }
}
